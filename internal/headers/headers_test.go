package headers

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
)

// Whatever is added and made final, the finalized block's line is kept as far back as anchors go,
// all above it descends from it, and nothing else is kept.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const recent = uint64(3)
		made := byte(1)
		tree := New(jamq.HeaderHash{made}, jamq.HeaderHash{}, 0, int(recent), "")
		for made < 30 {
			var all []*Block[string]
			for n := byte(1); n <= made; n++ {
				if b := tree.Get(jamq.HeaderHash{n}); b != nil && b.Descends(tree.Finalized()) {
					all = append(all, b)
				}
			}
			at := rapid.SampledFrom(all).Draw(t, "at")
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				tree.Finalize(at)
				require.True(t, tree.Best().Descends(at))
			case 1:
				tree.SetBest(at)
				require.Equal(t, at.Hash, tree.BestHash())
			default:
				made++
				tree.Add(at.Child(jamq.HeaderHash{made}, at.Slot+1, ""))
			}
			final := tree.Finalized()
			require.Equal(t, min(recent+1, final.Height-(recent+1)), final.Height-tree.Oldest().Height, "since the root")
			for b := range tree.All() {
				require.True(t, b.Descends(final) || final.Descends(b))
				require.LessOrEqual(t, final.Height, b.Height+recent+1)
				require.Same(t, b, tree.Get(b.Hash))
				if b.Parent != nil {
					require.Same(t, b.Parent, tree.Get(b.Parent.Hash), "no parent that is forgotten")
				}
			}
		}
	})
}

// The sink's best block stays until SetBest, and the tree has room for all blocks
// before the root that can be anchors.
func TestRestart(t *testing.T) {
	tree := New(jamq.HeaderHash{1}, jamq.HeaderHash{9}, 50, 8, 0)
	require.True(t, tree.Rests())
	require.Equal(t, jamq.HeaderHash{9}, tree.BestHash())
	room := 0
	for tree.Precede(jamq.HeaderHash{2, byte(room)}, jamq.Slot(49-room), 0) {
		room++
	}
	require.Equal(t, 9, room)
	require.Equal(t, jamq.Slot(41), tree.Oldest().Slot)
	b := tree.Best().Child(jamq.HeaderHash{3}, 51, 0)
	tree.Add(b)
	require.Equal(t, jamq.HeaderHash{9}, tree.BestHash())
	tree.SetBest(b)
	require.False(t, tree.Rests())
	require.Equal(t, b.Hash, tree.BestHash())
}

// Once it is delivered, the sink's best block is the tree's best block; and finality, which may
// have passed it by, ends the matter.
func TestRestartOnAKnownBest(t *testing.T) {
	tree := New(jamq.HeaderHash{1}, jamq.HeaderHash{2}, 50, 8, 0)
	tree.Add(tree.Best().Child(jamq.HeaderHash{3}, 51, 0))
	require.True(t, tree.Rests())
	tree.Add(tree.Best().Child(jamq.HeaderHash{2}, 52, 0))
	require.False(t, tree.Rests())
	require.Equal(t, jamq.HeaderHash{2}, tree.Best().Hash)

	tree = New(jamq.HeaderHash{1}, jamq.HeaderHash{2}, 50, 8, 0)
	b := tree.Best().Child(jamq.HeaderHash{3}, 51, 0)
	tree.Add(b)
	tree.Finalize(b)
	require.False(t, tree.Rests())
	require.Equal(t, b.Hash, tree.BestHash())
}
