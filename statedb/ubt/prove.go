package ubt

import "fmt"

// Prove returns the proof for uses, which must be strictly ascending by key.
// The error wraps ErrOrder, ErrHidden on a tree from a proof, which can prove
// nothing, or ErrProof if a key is both set and deleted, or if the proof would
// have a stem that begins with twelve zero bytes, which Open refuses.
func (t Tree) Prove(h *Hasher, uses []Use) (*Proof, error) {
	if err := checkUses(uses); err != nil {
		return nil, err
	}
	p := prover{h: h}
	if len(uses) == 0 {
		p.sibling(t.root.sum)
	} else {
		p.node(t.root, 0, uses)
	}
	if p.err != nil {
		return nil, p.err
	}
	return &p.Proof, nil
}

// prover writes a proof, and opener reads one. Both follow these rules.
//
// A node is two bits. Below an inner node the used sides come first, left
// before right. For an unused side follow a bit, whether it is present, and its
// hash.
//
// A hash does not show the kind of its node. Without tags a stem could pass for
// an inner node, and a node between the values of a stem for a node of the
// tree. Therefore every nonempty node that the proof enters has a present leaf
// below it in the proof. The number of hashes from a node down to a leaf shows
// its kind, because a leaf hashes 32 bytes and all other nodes hash 64. If no
// key leads to such a leaf, the first leaf is opened. An attacker may still
// choose a stem so that its 64 bytes read as two hashes; isEmbedding is for that
// case.
//
// In particular, an unused side is entered if the other side is empty before or
// after the writes. It must then be known whether a stem is left alone, because
// such a stem moves up.
type prover struct {
	Proof
	h   *Hasher
	err error
}

// node writes the node r at the given depth with the uses below it. Without
// uses its first leaf is opened. It reports whether the place is empty after
// the writes.
func (p *prover) node(r ref, depth int, uses []Use) (emptied bool) {
	if r.empty() {
		p.bits.put(opEmpty, opBits)
		return !anySets(uses)
	}
	switch n := r.node.(type) {
	case *inner:
		p.bits.put(opInner, opBits)
		return p.inner(n, depth, uses)
	case *stem:
		return p.stem(n, uses)
	}
	// A chain or a partial stem.
	p.err = fmt.Errorf("%w: a tree from a proof cannot prove", ErrHidden)
	return false
}

func (p *prover) inner(n *inner, depth int, uses []Use) (emptied bool) {
	l, r := n.left(), n.right()
	left, right := splitUses(uses, depth)
	switch {
	case len(uses) == 0:
		p.bits.putBool(!l.empty())
		if l.empty() {
			return p.node(r, depth+1, nil)
		}
		p.node(l, depth+1, nil)
		p.sibling(r.sum)
		return false
	case len(left) == 0:
		return p.oneSide(r, l, depth, right)
	case len(right) == 0:
		return p.oneSide(l, r, depth, left)
	}
	leftEmptied := p.node(l, depth+1, left)
	rightEmptied := p.node(r, depth+1, right)
	return leftEmptied && rightEmptied
}

// oneSide writes the side that has all uses, and then the other side.
func (p *prover) oneSide(used, other ref, depth int, uses []Use) (emptied bool) {
	emptied = p.node(used, depth+1, uses)
	switch {
	case other.empty():
		p.bits.putBool(false)
		return emptied
	case used.empty() || emptied:
		p.bits.putBool(true)
		p.node(other, depth+1, nil)
	default:
		p.sibling(other.sum)
	}
	return false
}

// sibling writes the hash of a node that is not entered, or that the place is
// empty.
func (p *prover) sibling(sum Hash) {
	p.bits.putBool(sum != Hash{})
	if sum != (Hash{}) {
		p.hashes = append(p.hashes, sum)
	}
}

func (p *prover) stem(n *stem, uses []Use) (emptied bool) {
	if k := n.firstKey(); isEmbedding(k) {
		p.err = fmt.Errorf("%w: stem of %x begins with %d zero bytes, like the data of a stem", ErrProof, k, embeddingZeros)
		return false
	}
	sets := anySets(uses)
	var own []Use
	before := 0 // stems before the node's
	for rest := uses; len(rest) > 0; before++ {
		var group []Use
		if group, rest = nextStem(rest); n.name() == string(group[0].Key.stem()) {
			own = group
			p.ownOp(n, own, before, len(rest) == 0)
			break
		}
	}
	v := valueProver{prover: p, stem: n}
	gone := 0
	for i := range own {
		v.known.add(own[i].Key.sub())
		if n.present.has(own[i].Key.sub()) && own[i].Deletes {
			gone++
		}
	}
	if !hasAny(n, own) {
		p.bits.put(opOpened, opBits)
		v.opened = n.first()
		v.known.add(v.opened)
		v.isOpened = true
		p.opened = append(p.opened, n.firstKey())
	}
	v.span(allValues)
	return !sets && gone == n.present.len()
}

// ownOp writes that the stem is that of the keys after the given number of
// other stems.
func (p *prover) ownOp(n *stem, own []Use, before int, last bool) {
	if !hasAny(n, own) {
		return // it is opened instead
	}
	p.bits.put(opOwn, opBits)
	p.bits.put(0, before)
	if !last {
		p.bits.put(1, 1)
	}
}

// hasAny reports whether the stem has a value at one of its keys own.
func hasAny(n *stem, own []Use) bool {
	for i := range own {
		if n.present.has(own[i].Key.sub()) {
			return true
		}
	}
	return false
}

// first returns the index of the stem's first value.
func (s *stem) first() byte {
	for sub := range s.present.all {
		return sub
	}
	return 0 // no stem is empty
}

func (s *stem) firstKey() (k Key) {
	copy(k[:], s.name())
	k[StemSize] = s.first()
	return k
}

// valueProver writes the values of a stem at known indices, and the hashes of
// the spans between them.
type valueProver struct {
	*prover
	stem     *stem
	known    set
	opened   byte // known to be present
	isOpened bool
}

func (v *valueProver) span(s span) {
	switch {
	case !s.anyOf(&v.known):
		v.sibling(v.stem.subtree(v.h, s))
	case s.length > 1:
		left, right := s.halves()
		v.span(left)
		v.span(right)
	default:
		value, present := v.stem.get(s.first)
		if !v.isOpened || s.first != v.opened {
			v.bits.putBool(present)
		}
		if present {
			v.values = append(v.values, value)
		}
	}
}
