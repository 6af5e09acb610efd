package ubt

// node is a node of the tree; nil is an empty place. Nodes are hashed when they are made and never change, so that readers need no lock.
//
// A whole tree has nodes of the types *inner and *stem. One that was opened from a proof also has *hidden, of which only the hash is known,
// and *partial, a stem of which only some values are.
type node interface {
	hash() Hash
}

type inner struct {
	sum         Hash
	left, right node
}

func (n *inner) hash() Hash { return n.sum }

// hidden stands for anything but an empty place.
type hidden struct{ sum Hash }

func (n *hidden) hash() Hash { return n.sum }

func hashOf(n node) Hash {
	if n == nil {
		return Hash{}
	}
	return n.hash()
}

func isStem(n node) bool {
	switch n.(type) {
	case *stem, *partial:
		return true
	}
	return false
}

// join returns the node over two subtrees. One stem alone takes the place of its parent: a stem is as shallow as it can be.
func join(h *Hasher, left, right node) (node, error) {
	if alone, is := onlyChild(left, right); is {
		if isStem(alone) || alone == nil {
			return alone, nil
		}
		if _, unknown := alone.(*hidden); unknown {
			return nil, ErrHidden // it may be a stem
		}
	}
	return &inner{left: left, right: right, sum: h.Inner(hashOf(left), hashOf(right))}, nil
}

// onlyChild returns the one of two nodes that is there, or nil if none is, and whether at most one is.
func onlyChild(left, right node) (alone node, is bool) {
	switch {
	case left == nil:
		return right, true
	case right == nil:
		return left, true
	}
	return nil, false
}
