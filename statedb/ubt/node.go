package ubt

// node is a node of the tree: an inner node or a stem. A tree that was opened from
// a proof has two more kinds: a partial is a stem for which the proof shows only
// some values, and a chain stands for several inner nodes. Nodes never change after
// they are published, so readers need no lock.
type node interface{ isNode() }

func (*inner) isNode()   {}
func (*chain) isNode()   {}
func (*stem) isNode()    {}
func (*partial) isNode() {}

// ref refers to a node of the tree and contains the node's hash. The hash is in the
// reference and not in the node, so that a write need not read the nodes that it
// does not change. It is computed before the node is published. A zero hash means
// an empty subtree. A hash without a node means a hidden subtree, which the proof
// does not show.
type ref struct {
	node node
	sum  Hash
}

func (r *ref) empty() bool  { return r.sum == Hash{} }
func (r *ref) hidden() bool { return r.node == nil && r.sum != Hash{} }

// opaque reports whether a proof hides the node that r refers to, or some values of that node.
func (r *ref) opaque() bool {
	_, isPartial := r.node.(*partial)
	return isPartial || r.hidden()
}

// inner is an inner node. It stores the nodes and the hashes of its children in separate arrays, so
// that a walk down the tree reads half as much memory.
type inner struct {
	nodes [2]node
	sums  [2]Hash
}

func newInner(left, right ref) *inner {
	return &inner{[2]node{left.node, right.node}, [2]Hash{left.sum, right.sum}}
}

func (n *inner) left() ref  { return ref{n.nodes[0], n.sums[0]} }
func (n *inner) right() ref { return ref{n.nodes[1], n.sums[1]} }

// chain stands for a row of inner nodes, one below the other, each with one empty
// side. The row begins at the position of the chain and ends above the node below.
// In a proof, such an inner node takes only three bits. Without chains, Open could
// therefore create 200 MB of inner nodes for a forged proof of 1 MB.
type chain struct {
	path  Key // leads to below
	end   int // depth of below
	below ref
}

// children returns the two sides of the first node of the chain, which is at the
// given depth. One side is empty, because a chain stands for inner nodes with one
// empty side. The other side is the node below the chain or, if the chain has more
// nodes, the rest of the chain, whose hash is not computed.
func (c *chain) children(depth int) (left, right ref) {
	rest := ref{c, unsealed}
	if depth+1 == c.end {
		rest = c.below
	}
	return c.sides(rest, depth)
}

// sides returns the left and the right side of one node of the chain, at the given
// depth. The path of the chain decides which of the two sides is rest; the other
// one is empty.
func (c *chain) sides(rest ref, depth int) (left, right ref) {
	if bit(c.path[:], depth) == 0 {
		return rest, ref{}
	}
	return ref{}, rest
}

// leads reports whether the path to the key k leads through the whole chain to the
// node below it. The caller has followed the path to the chain at the given depth.
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

// onlyChild checks whether an inner node has fewer than two children. If left or
// right is empty, is is true, and alone is the other child, which may be empty too.
func onlyChild(left, right ref) (alone ref, is bool) {
	switch {
	case left.empty():
		return right, true
	case right.empty():
		return left, true
	}
	return ref{}, false
}
