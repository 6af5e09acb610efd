package statedb

import "math/bits"

// The 256 values of a stem are hashed in groups of 16. A stem with many values keeps the hashes of its groups, so that a write costs
// one group instead of 511 hashes; for fewer than cacheGroupsFrom values the 512 bytes are not worth it.
const (
	groupCount      = 16
	groupSize       = 16
	cacheGroupsFrom = 24
)

// leaf holds the values under one stem: those whose bit is set in present, packed in the order of their index. It never changes
// once it is made.
type leaf struct {
	stem    [StemSize]byte
	present [4]uint64
	values  [][32]byte
	root    hash              // of the binary tree over the 256 values
	groups  *[groupCount]hash // of the groups, or nil
}

func (l *leaf) get(i byte) (value [32]byte, ok bool) {
	if l.present[i/64]>>(i%64)&1 == 0 {
		return value, false
	}
	return l.values[l.rank(int(i))], true
}

// rank returns how many values stand before index i, which is below 256.
func (l *leaf) rank(i int) int {
	n := bits.OnesCount64(l.present[i/64] & (1<<(i%64) - 1))
	for _, word := range l.present[:i/64] {
		n += bits.OnesCount64(word)
	}
	return n
}

// index returns where the value of the given rank stands.
func (l *leaf) index(rank int) byte {
	for word, set := range l.present {
		n := bits.OnesCount64(set)
		if rank >= n {
			rank -= n
			continue
		}
		for ; rank > 0; rank-- {
			set &= set - 1
		}
		return byte(word*64 + bits.TrailingZeros64(set))
	}
	return 0 // no value has this rank
}

// with returns the values after the writes, which are sorted, distinct and all of this stem: l if nothing changes, nil if none is left.
func (l *leaf) with(p *Profile, writes []write) *leaf {
	next := &leaf{stem: l.stem, present: l.present}
	var dirty [groupCount]bool
	changed := false
	for i := range writes {
		w := &writes[i]
		sub := w.key[StemSize]
		if value, present := l.get(sub); present == !w.deleted && (w.deleted || value == w.value) {
			continue
		}
		changed, dirty[sub/groupSize] = true, true
		if bit := uint64(1) << (sub % 64); w.deleted {
			next.present[sub/64] &^= bit
		} else {
			next.present[sub/64] |= bit
		}
	}
	if !changed {
		return l
	}
	if next.present == ([4]uint64{}) {
		return nil
	}
	next.fill(l, writes)
	next.hash(p, l.groups, &dirty)
	return next
}

// fill sets the values that are present: of a write where there is one, else of old.
func (l *leaf) fill(old *leaf, writes []write) {
	count := 0
	for _, word := range l.present {
		count += bits.OnesCount64(word)
	}
	l.values = make([][32]byte, 0, count)
	for word, set := range l.present {
		for ; set != 0; set &= set - 1 {
			sub := byte(word*64 + bits.TrailingZeros64(set))
			for len(writes) > 0 && writes[0].key[StemSize] < sub {
				writes = writes[1:]
			}
			if len(writes) > 0 && writes[0].key[StemSize] == sub {
				l.values = append(l.values, writes[0].value)
				continue
			}
			value, _ := old.get(sub)
			l.values = append(l.values, value)
		}
	}
}

// hash computes the root. Groups that are not dirty are taken from known, if it is there.
func (l *leaf) hash(p *Profile, known *[groupCount]hash, dirty *[groupCount]bool) {
	var groups [groupCount]hash
	for i := range groups {
		if known != nil && !dirty[i] {
			groups[i] = known[i]
		} else {
			groups[i] = l.group(p, i)
		}
	}
	if len(l.values) >= cacheGroupsFrom {
		kept := groups
		l.groups = &kept
	}
	l.root = fold(p, &groups)
}

// group hashes the n-th group of values.
func (l *leaf) group(p *Profile, n int) hash {
	first := n * groupSize
	set := l.present[first/64] >> (first % 64) & (1<<groupSize - 1)
	if set == 0 {
		return hash{}
	}
	var hashes [groupSize]hash
	for rank := l.rank(first); set != 0; set &= set - 1 {
		hashes[bits.TrailingZeros64(set)] = p.Leaf(l.values[rank])
		rank++
	}
	return fold(p, &hashes)
}

// fold hashes sixteen neighbours to one, in place.
func fold(p *Profile, hashes *[16]hash) hash {
	for width := len(hashes) / 2; width > 0; width /= 2 {
		for i := range width {
			hashes[i] = p.inner(hashes[2*i], hashes[2*i+1])
		}
	}
	return hashes[0]
}
