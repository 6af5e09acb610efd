package statedb

import (
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// proofDrawer draws a proof by the rules of docs/witness.md, and breaks one of
// them now and then. Such a proof belongs to no state. The verdicts of two
// verifiers on it show whether they have the same rules.
type proofDrawer struct {
	*rand.Rand
	proofWriter
	lie      float64 // probability of breaking a rule
	removing bool    // most keys are deleted, so that places become empty
}

// drawn has the properties of a node that the rules depend on.
type drawn struct{ empty, stem, emptied bool }

// drawMadeUp returns a witness with random entries and a proof of no state.
func drawMadeUp(r *rand.Rand) *Witness {
	d := proofDrawer{Rand: r, lie: []float64{0, 0, 0.02, 0.1}[r.IntN(4)], removing: r.IntN(3) == 0}
	w := &Witness{Entries: drawEntries(r, r.IntN(7), d.removing)}
	if len(w.Entries) == 0 {
		d.besides()
	} else {
		d.node(Key{}, 0, w.Entries)
	}
	proof, err := ubt.ParseProof(d.encode())
	if err != nil {
		panic(err)
	}
	w.Proof = proof
	return w
}

// drawEntries draws keys with long common prefixes and keys of accounts.
func drawEntries(r *rand.Rand, n int, removing bool) (entries []Entry) {
	late := []byte{0, 1, 2, 0x80}
	for range n {
		e := Entry{Access: Access{Kind: AccessKind(r.IntN(9))}}
		if e.Kind > CodeChunkAccess {
			e.Kind = RawAccess
		}
		e.Address = common.Address{byte(r.IntN(3))}
		e.Slot = common.Hash{0: []byte{0, 0, 0xff}[r.IntN(3)], 31: byte(62 + r.IntN(4))}
		e.Chunk = uint32(126 + r.IntN(4))
		e.Key = Key{late[r.IntN(4)], 11: 1, 30: late[r.IntN(4)], 31: []byte{0, 1, 128, 255}[r.IntN(4)]}
		if r.IntN(20) == 0 {
			e.Key[11] = 0 // perhaps an embedding
		}
		e.Access = e.plain()
		if e.Kind != RawAccess {
			e.Key = Key{}
		}
		e.Access = e.derive()
		switch use := r.IntN(8); {
		case removing && use < 7:
			e.Deleted = true
		case use < 2:
			e.Set = true
		case use < 4:
			e.Deleted = true
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Key.Compare(b.Key) })
	return slices.CompactFunc(entries, func(a, b Entry) bool { return a.Key == b.Key })
}

func (d *proofDrawer) lies() bool { return d.Float64() < d.lie }

func (d *proofDrawer) hash() (h [32]byte) {
	for i := range h {
		h[i] = byte(d.Uint32())
	}
	if d.lies() {
		clear(h[:[]int{11, 12, 32}[d.IntN(3)]])
	}
	return h
}

// besides draws whether something is beside the path.
func (d *proofDrawer) besides() bool {
	there := d.IntN(2) == 0
	if d.put(0, 1); there {
		d.bits[len(d.bits)-1] = 1
		d.hashes = append(d.hashes, d.hash())
	}
	return there
}

// node draws the node at a place, with the keys of it.
func (d *proofDrawer) node(path Key, depth int, keys []Entry) drawn {
	// Deeper nodes are often like the ones above, so that chains become long.
	wantsInner := d.IntN(8) != 0
	if depth > 12 && len(keys) < 2 {
		wantsInner = d.IntN(300) > depth
	}
	if wantsInner && (depth < 248 || d.lies() && depth < 255) {
		before := d.proofWriter
		d.put(1, 2)
		if n, legal := d.inner(path, depth, keys); legal || d.lies() {
			return n
		}
		d.proofWriter = before
	}
	switch {
	case len(keys) == 0 && !d.lies(), d.IntN(3) == 0:
		return d.openedStem(path, depth, keys)
	case len(keys) > 0 && d.IntN(3) > 0:
		return d.ownStem(keys)
	}
	d.put(0, 2)
	return drawn{empty: true, emptied: !slices.ContainsFunc(keys, func(e Entry) bool { return e.Set })}
}

// inner draws the sides of an inner node, and reports whether it may have them.
func (d *proofDrawer) inner(path Key, depth int, keys []Entry) (drawn, bool) {
	at, _ := slices.BinarySearchFunc(keys, 1, func(e Entry, _ int) int {
		return int(e.Key[depth/8]>>(7-depth%8)&1) - 1
	})
	below := [2][]Entry{keys[:at], keys[at:]}
	var sides [2]drawn
	enter := func(side int) {
		to := path
		to[depth/8] |= byte(side) << (7 - depth%8)
		sides[side] = d.node(to, depth+1, below[side])
	}
	emptied := false
	beside := func(side int) { sides[side] = drawn{empty: !d.besides()} }
	switch {
	case len(below[0]) > 0 && len(below[1]) > 0:
		enter(0)
		enter(1)
		emptied = sides[0].emptied && sides[1].emptied
	case len(keys) > 0:
		used := 0
		if len(below[0]) == 0 {
			used = 1
		}
		enter(used)
		if !sides[used].empty && !sides[used].emptied {
			beside(1 - used)
			break
		}
		d.put(d.IntN(2), 1)
		if d.bits[len(d.bits)-1] == 1 {
			enter(1 - used)
		} else {
			sides[1-used].empty = true
			emptied = sides[used].emptied
		}
	case d.IntN(2) == 0:
		d.put(0, 1)
		sides[0].empty = true
		enter(1)
	default:
		d.put(1, 1)
		enter(0)
		beside(1)
	}
	lone := sides[0].empty && (sides[1].empty || sides[1].stem) || sides[1].empty && sides[0].stem
	return drawn{emptied: emptied}, !lone
}

func (d *proofDrawer) ownStem(keys []Entry) drawn {
	d.put(2, 2)
	var groups [][]Entry
	for _, e := range keys {
		if n := len(groups); n > 0 && [StemSize]byte(groups[n-1][0].Key[:]) == [StemSize]byte(e.Key[:]) {
			groups[n-1] = append(groups[n-1], e)
			continue
		}
		groups = append(groups, []Entry{e})
	}
	chosen := d.IntN(len(groups))
	d.put(0, chosen)
	if chosen < len(groups)-1 {
		d.put(1, 1)
	}
	s := stemDrawer{proofDrawer: d, opened: -1}
	s.read(groups[chosen])
	sets := slices.ContainsFunc(keys, func(e Entry) bool { return e.Set })
	return drawn{stem: true, emptied: !sets && !s.others && s.there == s.gone}
}

func (d *proofDrawer) openedStem(path Key, depth int, keys []Entry) drawn {
	d.put(3, 2)
	k := path
	if depth < 80 && !d.lies() {
		k[11] |= 1 // no embedding
	}
	if len(keys) > 0 && d.IntN(2) == 0 {
		k = keys[d.IntN(len(keys))].Key
	}
	k[StemSize] = []byte{0, 2, 100, 254}[d.IntN(4)]
	if d.lies() {
		k = Key(d.hash())
	}
	d.opened = append(d.opened, k)
	s := stemDrawer{proofDrawer: d, opened: int(k[StemSize])}
	s.read(slices.DeleteFunc(slices.Clone(keys), func(e Entry) bool { return [StemSize]byte(e.Key[:]) != [StemSize]byte(k[:]) }))
	return drawn{stem: true}
}

// stemDrawer draws the values of a stem.
type stemDrawer struct {
	*proofDrawer
	opened int // sub-index of an opened leaf, or −1
	keys   [256]*Entry
	others bool // a span has a hash
	there  int  // values
	gone   int  // values that are deleted
}

func (s *stemDrawer) read(group []Entry) {
	for i := range group {
		s.keys[group[i].Key[StemSize]] = &group[i]
	}
	s.span(0, 256)
}

func (s *stemDrawer) span(first, length int) {
	known := first <= s.opened && s.opened < first+length
	for _, e := range s.keys[first : first+length] {
		known = known || e != nil
	}
	switch {
	case !known && first < s.opened && !s.lies():
		s.put(0, 1)
	case !known && (s.removing || s.IntN(3) > 0):
		s.put(0, 1)
	case !known:
		s.others = s.besides() || s.others
	case length > 1:
		s.span(first, length/2)
		s.span(first+length/2, length/2)
	case first == s.opened:
		s.values = append(s.values, s.hash())
	default:
		s.value(s.keys[first])
	}
}

func (s *stemDrawer) value(e *Entry) {
	there := s.opened < 0 && s.IntN(4) > 0 || s.lies()
	if !there {
		s.put(0, 1)
		return
	}
	s.put(1, 1)
	s.values = append(s.values, s.hash())
	s.there++
	if e.Deleted {
		s.gone++
	}
}
