package ubt

import (
	"strings"
)

// The 256 values of a stem are hashed in groups of 16. A stem with at least
// cacheGroupsFrom values stores the hashes of its groups, so that a write has to
// hash only one group again instead of all 511 nodes. For a stem with fewer values,
// the gain is not worth the 512 bytes.
const (
	groupCount      = 16
	groupSize       = 16
	cacheGroupsFrom = 24
	valueSize       = 32
)

// stem is a node that holds all values whose keys have the same first 31 bytes.
type stem struct {
	present set
	// packed is the stem's name, with which all its keys begin, followed by its
	// present values in order. One string holds both, because it needs only one
	// allocation and contains no pointers for the garbage collector.
	packed   string
	groups   *[groupCount]Hash // hashes of the groups; nil if they are not stored
	nameSize uint8
}

func (s *stem) name() string { return s.packed[:s.nameSize] }

func (s *stem) get(i byte) (value [32]byte, ok bool) {
	if !s.present.has(i) {
		return value, false
	}
	return s.at(s.present.rank(int(i))), true
}

// at returns a present value by its position among the present values.
func (s *stem) at(rank int) (value [32]byte) {
	copy(value[:], s.packed[int(s.nameSize)+rank*valueSize:])
	return value
}

// newStem returns a new stem with the values in writes.
func newStem(h *Hasher, writes []Write) ref {
	s := &stem{nameSize: StemSize}
	var b strings.Builder
	b.Grow(StemSize + len(writes)*valueSize)
	b.Write(writes[0].Key.stem())
	// The writes are in ascending order of their keys and belong to one stem.
	for i := range writes {
		if w := &writes[i]; !w.Deleted {
			s.present.add(w.Key.sub())
			b.Write(w.Value[:])
		}
	}
	// All writes are deletions.
	if s.present == (set{}) {
		return ref{}
	}
	s.packed = b.String()
	return s.sealed(h, nil, nil)
}

// with applies writes, in ascending order of keys, and returns the new stem.
func (s *stem) with(h *Hasher, sum Hash, writes []Write) ref {
	next := &stem{present: s.present, nameSize: s.nameSize}
	var dirty [groupCount]bool
	changed := false
	for i := range writes {
		w := &writes[i]
		sub := w.Key.sub()
		if value, present := s.get(sub); present == !w.Deleted && (w.Deleted || value == w.Value) {
			continue
		}
		changed, dirty[sub/groupSize] = true, true
		if w.Deleted {
			next.present.remove(sub)
		} else {
			next.present.add(sub)
		}
	}
	switch {
	// The last value was removed.
	case next.present == set{}:
		return ref{}
	case !changed:
		return ref{s, sum}
	}
	next.fill(s, writes)
	return next.sealed(h, s.groups, &dirty)
}

// fill stores the values of a new stem: the written and the old ones.
func (s *stem) fill(old *stem, writes []Write) {
	var b strings.Builder
	b.Grow(int(s.nameSize) + s.present.len()*valueSize)
	b.WriteString(old.name())
	for sub := range s.present.all {
		for len(writes) > 0 && writes[0].Key.sub() < sub {
			writes = writes[1:]
		}
		if len(writes) > 0 && writes[0].Key.sub() == sub {
			b.Write(writes[0].Value[:])
			continue
		}
		at := int(old.nameSize) + old.present.rank(int(sub))*valueSize
		b.WriteString(old.packed[at : at+valueSize])
	}
	s.packed = b.String()
}

// sealed returns a reference to the new stem, and hashes a large stem.
func (s *stem) sealed(h *Hasher, known *[groupCount]Hash, dirty *[groupCount]bool) ref {
	if s.present.len() < cacheGroupsFrom {
		return ref{s, unsealed}
	}
	// A stem with many values stores the hashes of its 16 groups.
	s.groups = new([groupCount]Hash)
	for i := range s.groups {
		// Only the groups in dirty have changed since known.
		if known != nil && !dirty[i] {
			s.groups[i] = known[i]
		} else {
			s.groups[i] = s.values(h, span{uint8(i * groupSize), groupSize})
		}
	}
	return ref{s, h.Stem([StemSize]byte([]byte(s.name())), s.subtree(h, allValues))}
}

// subtree returns the hash of a range of values, with stored group hashes.
func (s *stem) subtree(h *Hasher, at span) Hash {
	if s.groups == nil || at.length < groupSize {
		return s.values(h, at)
	}
	var groups [groupCount]Hash
	n := copy(groups[:], s.groups[at.first/groupSize:][:at.length/groupSize])
	return fold(h, groups[:n])
}

// values returns the hash of a range of values without the stored group hashes.
func (s *stem) values(h *Hasher, at span) Hash {
	switch {
	case !at.anyOf(&s.present):
		return Hash{}
	case at.length == 1:
		return h.Leaf(s.at(s.present.rank(int(at.first))))
	}
	left, right := at.halves()
	return h.inner(s.values(h, left), s.values(h, right))
}

// fold combines neighboring hashes until one is left, and overwrites the slice.
func fold(h *Hasher, hashes []Hash) Hash {
	// The number of hashes is a power of two.
	for width := len(hashes) / 2; width > 0; width /= 2 {
		for i := range width {
			hashes[i] = h.inner(hashes[2*i], hashes[2*i+1])
		}
	}
	return hashes[0]
}
