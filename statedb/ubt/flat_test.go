package ubt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The changed stems, put over the old ones, are the new tree.
func TestChangedStems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, m := Tree{}, model{}
		flat := map[string][]byte{}
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			writes := drawWrites(t, m, 20)
			next := mustApply(t, tree, writes)
			m.apply(writes)
			last := ""
			for stem, values := range next.ChangedStems(tree) {
				if string(stem) <= last {
					t.Fatalf("stem %x after %x", stem, last)
				}
				last = string(stem)
				if flat[last] = values; values == nil {
					delete(flat, last)
				}
			}
			tree = next
			loaded := model{}
			for stem, values := range flat {
				writes, err := DecodeStem([]byte(stem), values)
				if err != nil {
					t.Fatalf("decode: %v", err)
				}
				loaded.apply(writes)
			}
			checkSame(t, tree, loaded)
		}
	})
}

func FuzzDecodeStem(f *testing.F) {
	f.Add(make([]byte, 31), make([]byte, 64))
	f.Fuzz(func(t *testing.T, name, values []byte) {
		writes, err := DecodeStem(name, values)
		if err != nil {
			require.ErrorIs(t, err, ErrStem)
			return
		}
		tree, err := Tree{}.Apply(sha, writes)
		require.NoError(t, err)
		for stem, again := range tree.ChangedStems(Tree{}) {
			require.Equal(t, name, stem)
			require.Equal(t, values, again)
		}
	})
}
