package ubt

// node is a node of the tree: an inner node or a stem. A tree that was opened from
// a proof also has partial stems, which show only some values, and chains, which
// stand for several inner nodes. Nodes never change after they are published, so
// readers need no lock.
type node interface{ isNode() }

func (*inner) isNode()   {}
func (*chain) isNode()   {}
func (*stem) isNode()    {}
func (*partial) isNode() {}

// ref refers to a node of the tree and contains the node's hash, so that a write
// need not read the nodes that it does not change. A zero hash means an empty
// subtree. A hash without a node means a subtree that the proof does not show.
type ref struct {
	node node
	sum  Hash
}

func (r *ref) empty() bool  { return r.sum == Hash{} }
func (r *ref) hidden() bool { return r.node == nil && r.sum != Hash{} }

// opaque reports whether a proof hides the node at r or a part of it.
func (r *ref) opaque() bool {
	_, isPartial := r.node.(*partial)
	return isPartial || r.hidden()
}

// inner is an inner node. It stores the nodes and the hashes of its children in
// separate arrays, so that a walk down the tree reads half as much memory.
type inner struct {
	nodes [2]node
	sums  [2]Hash
}

func newInner(left, right ref) *inner {
	return &inner{[2]node{left.node, right.node}, [2]Hash{left.sum, right.sum}}
}

func (n *inner) left() ref  { return ref{n.nodes[0], n.sums[0]} }
func (n *inner) right() ref { return ref{n.nodes[1], n.sums[1]} }

// chain stands for a row of inner nodes, one below the other, that have one empty child
// each. Such a node takes only three bits in a proof, so without chains, a forged proof
// of 1 MB could make Open create 200 MB of inner nodes.
type chain struct {
	path  Key // leads to below
	end   int // depth of below
	below ref
}

// children returns the two sides of the chain's inner node at depth.
func (c *chain) children(depth int) (left, right ref) {
	// One child is empty, and the other one is the rest of the chain. The hash of the rest is
	// not computed yet.
	rest := ref{c, unsealed}
	// This was the last node of the chain, so the other child is the node below it.
	if depth+1 == c.end {
		rest = c.below
	}
	return c.sides(rest, depth)
}

// sides returns rest and an empty subtree, in the order of left and right.
func (c *chain) sides(rest ref, depth int) (left, right ref) {
	// The path of the chain leads to rest.
	if bit(c.path[:], depth) == 0 {
		return rest, ref{}
	}
	return ref{}, rest
}

// leads reports whether the key k passes through the node below the chain.
func (c *chain) leads(k *Key, depth int) bool {
	for ; depth < c.end; depth++ {
		if bit(k[:], depth) != bit(c.path[:], depth) {
			// The tree has no value for k.
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

// onlyChild reports whether one of the two sides is empty, and returns the other.
func onlyChild(left, right ref) (alone ref, is bool) {
	switch {
	case left.empty():
		return right, true
	case right.empty():
		return left, true
	}
	return ref{}, false
}
