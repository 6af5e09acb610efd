package ubt

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The roots that go-ethereum's own tests expect of its binary trie.
func TestKnownAnswers(t *testing.T) {
	one, two := [32]byte(common.HexToHash("0x0101010101010101010101010101010101010101010101010101010101010101")), [32]byte{}
	for i := range two {
		two[i] = 2
	}
	tree := mustApply(t, Tree{}, []Write{{Value: one}})
	require.Equal(t, common.HexToHash("0xaab1060e04cb4f5dc6f697ae93156a95714debbf77d54238766adc5709282b6f"), tree.Root())
	tree = mustApply(t, tree, []Write{{Key: Key{0x80}, Value: two}})
	require.Equal(t, common.HexToHash("0xdfc69c94013a8b3c65395625a719a87534a7cfd38719251ad8c8ea7fe79f065e"), tree.Root())
}

// After any writes and deletions, in any batches, the root and the values equal
// those of a map, and no earlier tree has changed.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, m := Tree{}, model{}
		var trees []Tree
		var roots []Hash
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			writes := drawWrites(t, m, 20)
			before, old := tree, maps.Clone(m)
			tree = mustApply(t, tree, writes)
			m.apply(writes)
			trees, roots = append(trees, tree), append(roots, m.root())
			checkSame(t, tree, m)
			checkDiff(t, before, old, tree)
			for _, w := range writes {
				value, ok, err := tree.Get(w.Key)
				if err != nil || ok == w.Deleted || ok && value != w.Value {
					t.Fatalf("%x is %x, %v, %v after %+v", w.Key, value, ok, err, w)
				}
			}
		}
		for i := range trees {
			if trees[i].Root() != roots[i] {
				t.Fatalf("an old tree has changed")
			}
		}
	})
}

func checkSame(t fatal, tree Tree, m model) {
	t.Helper()
	if got, want := tree.Root(), m.root(); got != want {
		t.Fatalf("root %s, want %s", got, want)
	}
	keys := m.keys()
	for k, value := range tree.All {
		if len(keys) == 0 || keys[0] != k || m[k] != value {
			t.Fatalf("iteration gives %x at %x", value, k)
		}
		keys = keys[1:]
	}
	if len(keys) > 0 {
		t.Fatalf("iteration leaves %d out", len(keys))
	}
}

// checkDiff checks that the difference leads from old to tree, without repeated
// or superfluous writes.
func checkDiff(t fatal, before Tree, old model, tree Tree) {
	t.Helper()
	var writes []Write
	for w := range tree.Diff(before) {
		if value, ok := old[w.Key]; ok == !w.Deleted && value == w.Value {
			t.Fatalf("the difference has %x, which is the same", w.Key)
		}
		writes = append(writes, w)
	}
	if got := mustApply(t, before, writes).Root(); got != tree.Root() {
		t.Fatalf("the difference leads to %s, want %s", got, tree.Root())
	}
}

// Stems with many values, which store the hashes of groups, are mixed with
// small ones. The root is the same.
func TestDenseStems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, m := Tree{}, model{}
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			writes := map[Key]Write{}
			for range rapid.IntRange(1, 5).Draw(t, "stems") {
				k := Key{rapid.SampledFrom([]byte{7, 8, 9, 0x80}).Draw(t, "stem")}
				first, step := rapid.Byte().Draw(t, "first"), rapid.SampledFrom([]byte{1, 2, 15}).Draw(t, "step")
				deleted := rapid.IntRange(0, 3).Draw(t, "deleted") == 0
				for i := range rapid.SampledFrom([]byte{1, 2, 20, 30, 120, 255}).Draw(t, "values") {
					k[StemSize] = first + i*step
					writes[k] = Write{Key: k, Value: [32]byte{i}, Deleted: deleted}
				}
			}
			tree = mustApply(t, tree, sorted(writes))
			m.apply(sorted(writes))
			checkSame(t, tree, m)
		}
	})
}

// A batch is large enough for several goroutines. Another one deletes the last
// values of half the stems.
func TestLargeBatch(t *testing.T) {
	tree, m := Tree{}, model{}
	writes := map[Key]Write{}
	for i := range 5000 {
		k := Key(sha256.Sum256(fmt.Append(nil, i)))
		writes[k] = Write{Key: k, Value: [32]byte{byte(i), 1}}
	}
	for range 2 {
		tree = mustApply(t, tree, sorted(writes))
		m.apply(sorted(writes))
		checkSame(t, tree, m)
		for k, w := range writes {
			writes[k] = Write{Key: k, Deleted: w.Key[0]%2 == 0, Value: [32]byte{9}}
		}
	}
}

func TestWritesMustBeSorted(t *testing.T) {
	for _, writes := range [][]Write{{{Key: Key{2}}, {Key: Key{1}}}, {{Key: Key{2}}, {Key: Key{2}}}} {
		_, err := Tree{}.Apply(sha, writes)
		require.ErrorIs(t, err, ErrOrder)
	}
}

// A batch that changes nothing gives the very same tree.
func TestNoOpSharesTheTree(t *testing.T) {
	m := model{}
	for i := range 100 {
		m[Key(sha256.Sum256(fmt.Append(nil, i)))] = [32]byte{1}
	}
	tree := treeOf(t, m)
	var same []Write
	for _, k := range m.keys() {
		same = append(same, Write{Key: k, Value: m[k]})
	}
	require.True(t, tree == mustApply(t, tree, same))
}
