package ubt

// node is a node of the tree: an *inner, a *stem, or a *partial, which is a
// stem from a proof that shows some of its values. Nodes never change, so
// readers need no lock.
type node interface{ isNode() }

func (*inner) isNode()   {}
func (*stem) isNode()    {}
func (*partial) isNode() {}

// ref is a reference to a node with the node's hash, which is computed before
// the node is published. The hash is stored here and not in the node, so that a
// write need not read the nodes that it does not change. A zero hash is an
// empty place. A hash without a node is hidden: the proof does not show it.
type ref struct {
	node node
	sum  Hash
}

func (r *ref) empty() bool  { return r.sum == Hash{} }
func (r *ref) hidden() bool { return r.node == nil && r.sum != Hash{} }

// opaque reports whether some of the subtree is hidden.
func (r *ref) opaque() bool {
	_, isPartial := r.node.(*partial)
	return isPartial || r.hidden()
}

// inner stores its children's nodes and hashes separately, so that walking down
// reads half as much memory.
type inner struct {
	nodes [2]node
	sums  [2]Hash
}

func newInner(left, right ref) *inner {
	return &inner{[2]node{left.node, right.node}, [2]Hash{left.sum, right.sum}}
}

func (n *inner) left() ref  { return ref{n.nodes[0], n.sums[0]} }
func (n *inner) right() ref { return ref{n.nodes[1], n.sums[1]} }

func isStem(n node) bool {
	switch n.(type) {
	case *stem, *partial:
		return true
	}
	return false
}

// onlyChild returns the only child that is not empty, or an empty ref if both
// are. is reports whether at most one child is not empty.
func onlyChild(left, right ref) (alone ref, is bool) {
	switch {
	case left.empty():
		return right, true
	case right.empty():
		return left, true
	}
	return ref{}, false
}
