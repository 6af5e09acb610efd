package ubt

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A builder makes the same tree as the naive implementation, for any number of
// batches and of values per stem, and refuses keys out of order.
func TestBuilder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 40, builderBatch, 2*builderBatch + 300} {
		for _, perStem := range []int{1, 3, 200} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(perStem)))
			m := model{}
			var k Key
			for i := range n {
				if i%perStem == 0 { // half of the stems share long prefixes
					for at := r.IntN(2) * (StemSize - 2); at < StemSize; at++ {
						k[at] = byte(r.Uint32())
					}
				}
				k[StemSize]++
				m[k] = [32]byte{byte(i), byte(i >> 8), 1}
			}
			b := NewBuilder(sha)
			keys := m.keys()
			for _, k := range keys {
				require.NoError(t, b.Add(k, m[k]))
			}
			if len(keys) > 0 {
				require.ErrorIs(t, b.Add(keys[len(keys)-1], [32]byte{9}), ErrOrder)
			}
			tree, err := b.Tree()
			require.NoError(t, err)
			checkSame(t, tree, m)
		}
	}
}
