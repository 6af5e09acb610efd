package ubt

import "fmt"

// Prove returns the proof of the values at the keys in uses, which must be in strictly ascending
// order. The error wraps one of these:
//
//   - ErrOrder: the uses are not in order.
//   - ErrHidden: the tree was opened from a proof, and cannot prove anything itself.
//   - ErrProof: a key is both set and deleted, or the proof would contain a stem that begins with
//     twelve zero bytes, which Open refuses.
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

// prover writes a proof, and opener reads it. Both follow these rules.
//
// Each node begins with two bits for its kind. An inner node is followed by its
// used sides, left before right. For an unused side, a bit marks whether the side
// is empty, and its hash follows if it is not.
//
// A hash does not show the kind of its node. Without further rules, a stem could
// pass for an inner node, and a node between the values of a stem could pass for a
// node of the tree. The proof therefore shows an existing leaf below every nonempty
// node that it enters. The number of hashes between a node and the leaf then proves
// the kind of the node, because a leaf is the hash of 32 bytes, and all other nodes
// are hashes of 64 bytes. If no key leads to such a leaf, the proof opens the first
// leaf below the node. An attacker may still choose a stem whose 64 bytes read as
// two hashes; see isEmbedding.
//
// For the same reason, the proof enters an unused side if the other side is empty
// before or after the writes. A verifier must then know whether only a stem is
// left, because a stem without a sibling moves up.
type prover struct {
	Proof
	h   *Hasher
	err error
}

// node writes everything into the proof that a verifier needs about r.
func (p *prover) node(r ref, depth int, uses []Use) (emptied bool) {
	if r.empty() {
		p.bits.put(opEmpty, opBits)
		return !anySets(uses)
	}
	// Without requested keys below the node, the proof shows the first value below
	// it.
	switch n := r.node.(type) {
	case *inner:
		p.bits.put(opInner, opBits)
		return p.inner(n, depth, uses)
	case *stem:
		return p.stem(n, uses)
	}
	// The node is a chain or a partial stem.
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

// oneSide writes an inner node whose requested keys are all on one side.
func (p *prover) oneSide(used, other ref, depth int, uses []Use) (emptied bool) {
	// All requested keys are on the side used. Write that side first, and then as much of the
	// other side as a verifier needs to compute the root.
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

// sibling writes the hash of a subtree that the proof does not enter.
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

// ownOp writes the kind and the position of a stem with a requested value.
func (p *prover) ownOp(n *stem, own []Use, before int, last bool) {
	if !hasAny(n, own) {
		return // it is opened instead
	}
	p.bits.put(opOwn, opBits)
	// The proof tells which of the requested stems this is: before is how many of them come
	// first, and last means that no other follows.
	p.bits.put(0, before)
	if !last {
		p.bits.put(1, 1)
	}
}

// hasAny reports whether a stem has a value at one of the requested keys.
func hasAny(n *stem, own []Use) bool {
	for i := range own {
		if n.present.has(own[i].Key.sub()) {
			return true
		}
	}
	return false
}

// first returns the index of the first value of the stem.
func (s *stem) first() byte {
	for sub := range s.present.all {
		return sub
	}
	return 0 // never reached, because no stem is empty
}

func (s *stem) firstKey() (k Key) {
	copy(k[:], s.name())
	k[StemSize] = s.first()
	return k
}

// valueProver writes one stem into a proof: the values at the indices in known,
// and hashes for the values between them.
type valueProver struct {
	*prover
	stem     *stem
	known    set
	opened   byte // index of the opened leaf, if isOpened
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
