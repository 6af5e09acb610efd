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

// opaque reports whether a proof hides something at r: the whole node, or some values
// of a stem.
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

// children returns the two sides of the first inner node that the chain stands
// for, which is at the given depth. One side is empty. The other is the rest of
// the chain, whose hash is not computed yet. If the chain has no more nodes, it is
// the node below the chain instead.
func (c *chain) children(depth int) (left, right ref) {
	rest := ref{c, unsealed}
	if depth+1 == c.end {
		rest = c.below
	}
	return c.sides(rest, depth)
}

// sides returns the two sides of one inner node in the chain, at the given depth: rest
// on the side to which the path of the chain leads, and an empty subtree on the other.
func (c *chain) sides(rest ref, depth int) (left, right ref) {
	if bit(c.path[:], depth) == 0 {
		return rest, ref{}
	}
	return ref{}, rest
}

// leads reports whether the key k, whose path reaches the chain at the given
// depth, also passes through the node below the chain. If not, the tree has no
// value for k.
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

// onlyChild reports whether one of the two sides is empty, and returns the other
// side, which may be empty as well.
func onlyChild(left, right ref) (alone ref, is bool) {
	switch {
	case left.empty():
		return right, true
	case right.empty():
		return left, true
	}
	return ref{}, false
}
