package ubt

import (
	"slices"
	"sync"
)

// unsealed marks a new node whose hash is not computed yet; seal replaces the mark
// by the hash. The mark must not be zero, because zero means an empty subtree.
var unsealed = Hash{1}

// seal computes the hashes of all new nodes in the subtree r.
func seal(h *Hasher, r ref, depth int) Hash {
	// This changes the nodes, so they must not be published yet.
	s := sealer{h: h}
	return s.seal(r, depth)
}

// sealAll does the same as seal, but with several goroutines for many values.
func sealAll(h *Hasher, r ref, depth, values int) Hash {
	n, isInner := r.node.(*inner)
	// values is roughly the number of values in the subtree.
	if !isInner || depth > parallelDepth || values < 2*parallelWrites {
		return seal(h, r, depth)
	}
	var done sync.WaitGroup
	done.Go(func() { n.sums[0] = sealAll(h, n.left(), depth+1, values/2) })
	right := sealAll(h, n.right(), depth+1, values/2)
	done.Wait()
	n.sums[1] = right
	return h.Inner(n.sums[0], n.sums[1])
}

// sealer computes the hashes of new nodes level by level, with all nodes of a level
// in one batch. Independent hashes are much cheaper in a batch than one at a time;
// see Hasher.Pairs. A sealer can be used several times, and then allocates memory
// only if a batch is larger than all earlier ones.
type sealer struct {
	h       *Hasher
	levels  []level // by depth
	folding []folding
	loose   []pending[loose]
	in      [][32]byte
	out     [][32]byte
	places  []leafPlace
	sums    [][32]byte
}

// pending is a new node, and the variable that receives its hash.
type pending[T any] struct {
	node T
	sum  *Hash
}

// level contains the new nodes at one depth.
type level struct {
	inner  []pending[*inner]
	chains []folding // chains that end at the next depth
}

// folding is a chain whose hash is being computed. A chain is a row of inner nodes
// with one child each, and the computation goes from its lower end up to the depth
// top. sum is the hash so far.
type folding struct {
	*chain
	sum *Hash
	top int
}

// looseBatch is the number of small stems that are hashed together. Larger batches
// are hardly faster, and each further stem needs memory, which raises the cost of a
// hostile proof.
const looseBatch = 64

// loose is a small stem whose values are all known, so that it can be hashed in a batch
// with others. It is either a stem of a tree (stem) or a stem that was read from a proof
// (partial); the other field is nil.
type loose struct {
	stem    *stem
	partial *partial
}

func (l loose) name() string {
	if l.stem != nil {
		return l.stem.name()
	}
	return l.partial.name
}

func (l loose) present() *set {
	if l.stem != nil {
		return &l.stem.present
	}
	return &l.partial.present
}

// at returns the value at a position among the present values, counted from 0.
func (l loose) at(rank int) [32]byte {
	if l.stem != nil {
		return l.stem.at(rank)
	}
	return l.partial.values[rank]
}

// leafPlace is the position of a value: the stem's index in its batch, and the
// value's index in the stem.
type leafPlace struct {
	stem int
	at   uint8
}

func (s *sealer) seal(r ref, depth int) Hash {
	for i := range s.levels {
		s.levels[i] = level{s.levels[i].inner[:0], s.levels[i].chains[:0]}
	}
	s.collect(r, depth, &r.sum)
	s.stems()
	for depth := len(s.levels) - 1; depth >= 0; depth-- {
		s.level(depth)
	}
	return r.sum
}

// collect finds the new nodes of a subtree and groups them by depth.
func (s *sealer) collect(r ref, depth int, sum *Hash) {
	if r.sum != unsealed {
		return
	}
	switch n := r.node.(type) {
	case *inner:
		at := s.at(depth)
		at.inner = append(at.inner, pending[*inner]{n, sum})
		s.collect(n.left(), depth+1, &n.sums[0])
		s.collect(n.right(), depth+1, &n.sums[1])
	case *chain:
		at := s.at(n.end - 1)
		at.chains = append(at.chains, folding{n, sum, depth})
		s.collect(n.below, n.end, &n.below.sum)
	case *stem:
		s.add(loose{stem: n}, sum)
	case *partial:
		// A batch can only hash stems whose values are all known. A proof hides some values of
		// this stem, so it is hashed by itself.
		if len(n.others) > 0 || n.present == (set{}) {
			*sum = n.hash(s.h)
			return
		}
		s.add(loose{partial: n}, sum)
	}
}

// add adds a small stem to the next batch, and hashes a full batch.
func (s *sealer) add(l loose, sum *Hash) {
	if s.loose = append(s.loose, pending[loose]{l, sum}); len(s.loose) == looseBatch {
		s.stems()
	}
}

// at returns the level for a depth, and creates it if it is missing.
func (s *sealer) at(depth int) *level {
	for len(s.levels) <= depth {
		s.levels = append(s.levels, level{})
	}
	return &s.levels[depth]
}

// level hashes all new inner nodes at one depth in a batch, together with one node of each
// chain that reaches this depth.
func (s *sealer) level(depth int) {
	// The nodes below have been hashed before.
	nodes := s.levels[depth].inner
	for _, c := range s.levels[depth].chains {
		*c.sum = c.below.sum
		s.folding = append(s.folding, c)
	}
	s.in = s.in[:0]
	for _, p := range nodes {
		s.in = append(s.in, p.node.sums[0], p.node.sums[1])
	}
	for _, c := range s.folding {
		left, right := c.sides(ref{sum: *c.sum}, depth)
		s.in = append(s.in, left.sum, right.sum)
	}
	sums := s.pairs()
	for i, p := range nodes {
		*p.sum = sums[i]
	}
	on := s.folding[:0]
	for i, c := range s.folding {
		if *c.sum = sums[len(nodes)+i]; depth > c.top {
			on = append(on, c)
		}
	}
	s.folding = on
}

// pairs hashes each pair of consecutive elements of s.in, in order.
func (s *sealer) pairs() [][32]byte {
	n := len(s.in) / 2
	if cap(s.out) < n {
		s.out = make([][32]byte, n)
	}
	s.out = s.out[:n]
	if s.h.Pairs != nil && n > 0 {
		s.h.Pairs(s.out, s.in)
		return s.out
	}
	for i := range s.out {
		s.out[i] = s.h.Inner(s.in[2*i], s.in[2*i+1])
	}
	return s.out
}

// stems hashes the batch of small stems.
func (s *sealer) stems() {
	defer func() { s.loose = s.loose[:0] }()
	// Hash the values of all stems in one batch. Then hash the eight levels of the trees above
	// the values, each level in one batch for all stems.
	leaves := 0
	for _, p := range s.loose {
		leaves += p.node.present().len()
	}
	places, sums := slices.Grow(s.places[:0], leaves), slices.Grow(s.sums[:0], leaves)
	s.in = slices.Grow(s.in[:0], 2*leaves)
	for i, p := range s.loose {
		rank := 0
		for sub := range p.node.present().all {
			places = append(places, leafPlace{i, sub})
			sums = append(sums, s.h.Leaf(p.node.at(rank)))
			rank++
		}
	}
	s.places, s.sums = places, sums
	for range 8 {
		s.in = s.in[:0]
		kept := places[:0]
		for i := 0; i < len(places); i++ {
			p := places[i]
			switch {
			case p.at%2 == 1:
				s.in = append(s.in, [32]byte{}, sums[i])
			case i+1 < len(places) && places[i+1] == leafPlace{p.stem, p.at + 1}:
				s.in = append(s.in, sums[i], sums[i+1])
				i++
			default:
				s.in = append(s.in, sums[i], [32]byte{})
			}
			kept = append(kept, leafPlace{p.stem, p.at / 2})
		}
		places = kept
		sums = append(sums[:0], s.pairs()...)
	}
	if !s.h.StemsArePairs {
		for i, p := range s.loose {
			*p.sum = s.h.Stem([StemSize]byte([]byte(p.node.name())), sums[i])
		}
		return
	}
	s.in = s.in[:0]
	for i, p := range s.loose {
		s.in = append(s.in, [32]byte{}, sums[i])
		copy(s.in[2*i][:], p.node.name())
	}
	for i, sum := range s.pairs() {
		*s.loose[i].sum = sum
	}
}
