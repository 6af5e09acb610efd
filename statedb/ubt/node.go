package ubt

// node is what stands at a place of the tree: an *inner, a *stem, or a *partial, which is a stem of which a proof shows some values. Nodes never
// change, so that readers need no lock.
type node interface{ isNode() }

func (*inner) isNode()   {}
func (*stem) isNode()    {}
func (*partial) isNode() {}

// ref leads to a node. It has the node's hash, which is computed before anybody else sees it; since it is kept here and not in the node, what
// a write does not touch is not even read. A zero hash is an empty place, and a hash without a node is hidden: a proof does not say what it is.
type ref struct {
	node node
	sum  Hash
}

func (r *ref) empty() bool  { return r.sum == Hash{} }
func (r *ref) hidden() bool { return r.node == nil && r.sum != Hash{} }

// opaque says that not all that is below is known.
func (r *ref) opaque() bool {
	_, isPartial := r.node.(*partial)
	return isPartial || r.hidden()
}

// inner has its children's nodes apart from their hashes, so that a way down reads half as much.
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

// onlyChild returns the one of two subtrees that is there, or an empty one if none is, and whether at most one is.
func onlyChild(left, right ref) (alone ref, is bool) {
	switch {
	case left.empty():
		return right, true
	case right.empty():
		return left, true
	}
	return ref{}, false
}
