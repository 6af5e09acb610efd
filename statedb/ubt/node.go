package ubt

// node is a node of the tree: an *inner, a *stem, or, in a tree from a proof, a
// *partial, which is a stem of which the proof shows some values, or a *chain.
// Nodes never change, so readers need no lock.
type node interface{ isNode() }

func (*inner) isNode()   {}
func (*chain) isNode()   {}
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

// chain stands for inner nodes below each other that all have one empty side,
// from its own place down to the place of below. In a proof such a node takes
// three bits. Without chains, Open could create inner nodes of 200 MB for a
// made-up proof of 1 MB.
type chain struct {
	path  Key // leads to below
	end   int // depth of below
	below ref
}

// children returns the two sides of the chain's first node, which is at the
// given depth. The rest of the chain, if any, is unsealed.
func (c *chain) children(depth int) (left, right ref) {
	rest := ref{c, unsealed}
	if depth+1 == c.end {
		rest = c.below
	}
	return c.sides(rest, depth)
}

// sides returns the sides of a node of the chain, of which one is not empty.
func (c *chain) sides(rest ref, depth int) (left, right ref) {
	if bit(c.path[:], depth) == 0 {
		return rest, ref{}
	}
	return ref{}, rest
}

// leads reports whether the path to k, which passes the given depth of the
// chain, passes its end too.
func (c *chain) leads(k *Key, depth int) bool {
	for ; depth < c.end; depth++ {
		if bit(k[:], depth) != bit(c.path[:], depth) {
			return false
		}
	}
	return true
}

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
