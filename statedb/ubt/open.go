package ubt

import "fmt"

// Open returns the part of a tree that a proof shows. uses are the keys for which
// the proof was made, in strictly ascending order. The caller must compare the root
// of the result with a trusted root. If they are equal, Get returns the right
// values for these keys, and Apply with writes that match the uses returns a tree
// with the right root. For any other key, Get and Apply return ErrHidden, unless
// the proof happens to show its value, which is then also correct.
//
// Open accepts a proof only in the form that Prove returns. It refuses a stem or a
// hash that begins with twelve zero bytes, because the data that EIP-7864 hashes to
// a stem begins in this way and must not pass for a node. A party that can choose
// other stems freely can still create a stem that reads as a node; see the package
// documentation. The error wraps ErrOrder or ErrProof.
func Open(h *Hasher, p *Proof, uses []Use) (Tree, error) {
	if err := checkUses(uses); err != nil {
		return Tree{}, err
	}
	o := opener{p: p}
	var root ref
	if len(uses) == 0 {
		root.sum = o.sibling()
	} else {
		root, _ = o.node(place{}, uses)
	}
	switch {
	case o.err != nil:
		return Tree{}, o.err
	case o.bit != p.bits.count || o.opened != len(p.opened) || o.hashed != len(p.hashes) || o.valued != len(p.values):
		return Tree{}, fmt.Errorf("%w: proof has more than the tree needs", ErrProof)
	}
	root.sum = sealAll(h, root, 0, len(p.values))
	return Tree{root}, nil
}

// opener reads a proof by the rules in the comment of prover. After the first error
// it reads zeros, so that its callers need not check after each read.
type opener struct {
	p                           *Proof
	bit, opened, hashed, valued int // number of items read so far from each stream
	err                         error
}

// place is the position of a node in the tree. The first depth bits of path lead from
// the root to the node, where 0 means left and 1 means right.
type place struct {
	path  Key
	depth int
}

func (at place) left() place { return place{at.path, at.depth + 1} }

func (at place) right() place {
	at.path[at.depth/8] |= 0x80 >> (at.depth % 8)
	return place{at.path, at.depth + 1}
}

// leads reports whether the path to the key k goes through this place.
func (at *place) leads(k *Key) bool {
	for i := range at.depth {
		if bit(k[:], i) != bit(at.path[:], i) {
			return false
		}
	}
	return true
}

func (o *opener) fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: %s", ErrProof, fmt.Sprintf(format, args...))
	}
}

func (o *opener) bits(n int) (v int) {
	for range n {
		if o.bit == o.p.bits.count {
			o.fail("too few bits")
			return 0
		}
		v = v<<1 | int(bit(o.p.bits.bytes, o.bit))
		o.bit++
	}
	return v
}

func take[T any](o *opener, from []T, read *int, what string) (v T) {
	if *read == len(from) {
		o.fail("too few %s", what)
		return v
	}
	*read++
	return from[*read-1]
}

// sibling reads the hash of a subtree that the proof does not enter.
func (o *opener) sibling() Hash {
	if o.bits(1) == 0 {
		return Hash{}
	}
	sum := take(o, o.p.hashes, &o.hashed, "hashes")
	if isEmbedding(sum) {
		o.fail("hash %s begins with %d zero bytes, like the data of a stem", sum, embeddingZeros)
	}
	return sum
}

// node reads a node from the proof; uses are the keys below its position.
func (o *opener) node(at place, uses []Use) (r ref, emptied bool) {
	if o.err != nil {
		return ref{}, false
	}
	// The second result, emptied, reports whether the writes would leave this subtree empty.
	// The parent then needs its other child to compute the root after the writes.
	switch o.bits(opBits) {
	case opEmpty:
		if len(uses) == 0 {
			o.fail("empty node, want an opened leaf")
		}
		return ref{}, !anySets(uses)
	case opInner:
		if at.depth == stemBits {
			o.fail("inner node below the last bit of a stem")
			return ref{}, false
		}
		return o.inner(at, uses)
	case opOwn:
		return o.own(uses)
	}
	return o.foreign(at, uses)
}

func (o *opener) inner(at place, uses []Use) (_ ref, emptied bool) {
	left, right := splitUses(uses, at.depth)
	var l, r ref
	switch {
	case len(uses) == 0:
		if o.bits(1) == 0 {
			r, _ = o.node(at.right(), nil)
		} else {
			l, _ = o.node(at.left(), nil)
			r.sum = o.sibling()
		}
	case len(left) == 0:
		r, l, emptied = o.oneSide(at.right(), at.left(), right)
	case len(right) == 0:
		l, r, emptied = o.oneSide(at.left(), at.right(), left)
	default:
		var leftEmptied, rightEmptied bool
		l, leftEmptied = o.node(at.left(), left)
		r, rightEmptied = o.node(at.right(), right)
		emptied = leftEmptied && rightEmptied
	}
	if alone, is := onlyChild(l, r); is {
		return o.fold(at, alone, r.empty()), emptied
	}
	return ref{newInner(l, r), unsealed}, emptied
}

// fold returns an inner node with only one child as a chain.
func (o *opener) fold(at place, alone ref, isLeft bool) ref {
	if alone.empty() || isStem(alone.node) {
		o.fail("inner node at depth %d over at most one stem", at.depth)
		return ref{}
	}
	// The only child is a chain already. It becomes one node longer, which takes less memory
	// than another inner node.
	if _, is := alone.node.(*chain); is {
		return alone
	}
	below := at.right()
	if isLeft {
		below = at.left()
	}
	return ref{&chain{path: below.path, end: below.depth, below: alone}, unsealed}
}

func (o *opener) oneSide(usedAt, otherAt place, uses []Use) (used, other ref, emptied bool) {
	used, emptied = o.node(usedAt, uses)
	switch {
	case o.err != nil:
	case !used.empty() && !emptied:
		other.sum = o.sibling()
		return used, other, false
	case o.bits(1) == 1:
		other, _ = o.node(otherAt, nil)
		return used, other, false
	}
	return used, ref{}, emptied
}

// own reads a stem from the proof that has at least one of the requested keys.
func (o *opener) own(uses []Use) (ref, bool) {
	if len(uses) == 0 {
		o.fail("stem without a key")
		return ref{}, false
	}
	group, rest := nextStem(uses)
	for len(rest) > 0 && o.bits(1) == 0 {
		group, rest = nextStem(rest)
	}
	o.checkStem(&group[0].Key)
	s := stemOpener{opener: o, partial: partial{name: string(group[0].Key.stem())}}
	s.read(group)
	if s.present == (set{}) {
		o.fail("stem without values at its keys, want an opened leaf")
	}
	return s.done(uses, group)
}

// foreign reads a stem that has no value at any of the used keys.
func (o *opener) foreign(at place, uses []Use) (ref, bool) {
	// None of the requested keys is in this stem. The proof shows its first value instead, so
	// that the verifier knows that the node is a stem and not an inner node.
	k := take(o, o.p.opened, &o.opened, "opened leaves")
	if !at.leads(&k) {
		o.fail("opened leaf %x does not belong at depth %d", k, at.depth)
	}
	o.checkStem(&k)
	var group []Use
	for rest := uses; len(rest) > 0; {
		var g []Use
		if g, rest = nextStem(rest); string(g[0].Key.stem()) == string(k.stem()) {
			group = g
		}
	}
	s := stemOpener{opener: o, partial: partial{name: string(k.stem())}, first: k.sub(), isOpened: true}
	for i := range group {
		if group[i].Key.sub() == k.sub() {
			o.fail("opened leaf %x is one of the keys", k)
		}
	}
	s.known.add(k.sub())
	s.read(group)
	if want := (set{}); o.err == nil {
		if want.add(k.sub()); s.present != want {
			o.fail("opened leaf of a stem that has values at its keys")
		}
	}
	return s.done(uses, group)
}

// checkStem refuses a stem that begins with twelve zero bytes.
func (o *opener) checkStem(k *Key) {
	// An attacker can choose a stem so that it looks like an inner node of the tree. Such
	// stems begin with the same bytes as the data that is hashed to a stem: see isEmbedding.
	if isEmbedding(*k) {
		o.fail("stem of %x begins with %d zero bytes, like the data of a stem", *k, embeddingZeros)
	}
}

// stemOpener reads one stem, with up to 256 values, from a proof that is being
// verified. The proof contains the values at the indices in known, and hashes in
// place of the values between them.
type stemOpener struct {
	*opener
	partial
	first    byte // index of the opened leaf, if isOpened
	isOpened bool
}

func (s *stemOpener) read(group []Use) {
	for i := range group {
		s.known.add(group[i].Key.sub())
	}
	s.span(allValues)
}

// span reads a range of a stem's values, or one hash for the range.
func (s *stemOpener) span(at span) {
	switch {
	case s.err != nil:
		return
	// The proof need not show any value of this range.
	case !at.anyOf(&s.known):
		sum := s.sibling()
		if sum == (Hash{}) {
			return
		}
		if s.isOpened && at.first < s.first {
			s.fail("opened leaf is not the first of its stem")
		}
		if s.others == nil {
			s.others = make(map[span]Hash)
		}
		s.others[at] = sum
		return
	case at.length > 1:
		left, right := at.halves()
		s.span(left)
		s.span(right)
		return
	}
	if opened := s.isOpened && at.first == s.first; !opened && s.bits(1) == 0 {
		return
	}
	value := take(s.opener, s.p.values, &s.valued, "values")
	s.present.add(at.first)
	s.values = append(s.values, value)
}

// done returns the stem, and whether the writes would leave no value in it.
func (s *stemOpener) done(uses, group []Use) (ref, bool) {
	if s.err != nil {
		return ref{}, false
	}
	gone := 0
	for i := range group {
		if group[i].Deletes && s.present.has(group[i].Key.sub()) {
			gone++
		}
	}
	p := s.partial
	return ref{&p, unsealed}, !anySets(uses) && len(p.others) == 0 && gone == p.present.len()
}
