package ubt

import "fmt"

// Prove returns the proof for the uses, which are sorted by key and distinct. The error wraps ErrOrder, ErrProof where a key is both set and
// deleted, or ErrHidden: a tree from a proof proves nothing.
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

// prover writes a proof. It and opener, which reads one, are two sides of one set of rules:
//
// A node is two bits. Below an inner node the sides that are used come first, left before right; then of a side that is not, whether it is
// there, and its hash. That hash does not say what kind of node it is, and hashes without tags would let a stem pass for an inner node, or
// a node between the values of a stem for one of the tree. So each node that the proof enters, and that is not empty, is shown by a leaf that is there
// below it: the number of hashes from a node down to a leaf tells what it is, because a leaf hashes 32 bytes and all others 64. Where the
// keys lead to no such leaf, the first leaf is opened. (This says what a node is, and not that a leaf is no node: a stem that somebody chose so that
// its 64 bytes read as two hashes needs other means, see ZeroPrefixed.) In particular a side that is not used is entered all the same if the other one is empty
// before the writes, and also if it is empty after them: then it must be known whether a stem is left alone, which moves up.
type prover struct {
	Proof
	h   *Hasher
	err error
}

// node writes the node at a depth with the uses below it, or without any if its first leaf is to be opened. It returns whether nothing is
// left there after the writes.
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
	p.err = fmt.Errorf("%w: a tree from a proof proves nothing", ErrHidden)
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

// oneSide writes the side that all uses are of, and then the other one.
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

// sibling writes the hash of what is not looked into, or that nothing is there.
func (p *prover) sibling(sum Hash) {
	p.bits.putBool(sum != Hash{})
	if sum != (Hash{}) {
		p.hashes = append(p.hashes, sum)
	}
}

func (p *prover) stem(n *stem, uses []Use) (emptied bool) {
	sets := anySets(uses)
	var own []Use
	before := 0 // stems before the own one
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

// ownOp writes that the stem is that of the keys after so many others.
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

// hasAny reports whether the stem has a value at one of the keys, which are its own.
func hasAny(n *stem, own []Use) bool {
	for i := range own {
		if n.present.has(own[i].Key.sub()) {
			return true
		}
	}
	return false
}

// first returns the index of the first value.
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

// valueProver writes what a stem has at known indices, and the hashes of the spans between them.
type valueProver struct {
	*prover
	stem     *stem
	known    set
	opened   byte // known, and there without saying
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
