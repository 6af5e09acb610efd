package ubt

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// sha is the hasher of EIP-7864 with SHA-256.
var sha = &Hasher{
	Leaf: func(value [32]byte) Hash { return sha256.Sum256(value[:]) },
	Inner: func(l, r Hash) Hash {
		var data [64]byte
		copy(data[:], l[:])
		copy(data[32:], r[:])
		return sha256.Sum256(data[:])
	},
	Pairs: sha256Pairs,
	Stem: func(stem [StemSize]byte, values Hash) Hash {
		var data [64]byte
		copy(data[:], stem[:])
		copy(data[32:], values[:])
		return sha256.Sum256(data[:])
	},
	StemsArePairs: true,
}

// model is a state as a map.
type model map[Key][32]byte

// apply is the naive second implementation of writing and deleting.
func (m model) apply(writes []Write) {
	for _, w := range writes {
		if w.Deleted {
			delete(m, w.Key)
		} else {
			m[w.Key] = w.Value
		}
	}
}

func (m model) keys() []Key { return slices.SortedFunc(maps.Keys(m), Key.Compare) }

// root hashes the values straight from the text of EIP-7864, without any tree.
func (m model) root() common.Hash { return m.naiveTree(m.keys(), 0) }

func (m model) naiveTree(keys []Key, depth int) common.Hash {
	switch {
	case len(keys) == 0:
		return common.Hash{}
	case [31]byte(keys[0][:31]) == [31]byte(keys[len(keys)-1][:31]):
		var level [256]common.Hash
		for _, k := range keys {
			v := m[k]
			level[k[31]] = sha256.Sum256(v[:])
		}
		for width := 256; width > 1; width /= 2 {
			for i := range width / 2 {
				level[i] = naivePair(level[2*i], level[2*i+1])
			}
		}
		return sha256.Sum256(slices.Concat(keys[0][:31], []byte{0}, level[0][:]))
	}
	var left, right []Key
	for _, k := range keys {
		if k[depth/8]>>(7-depth%8)&1 == 0 {
			left = append(left, k)
		} else {
			right = append(right, k)
		}
	}
	return naivePair(m.naiveTree(left, depth+1), m.naiveTree(right, depth+1))
}

func naivePair(l, r common.Hash) common.Hash {
	if l == (common.Hash{}) && r == (common.Hash{}) {
		return common.Hash{}
	}
	return sha256.Sum256(slices.Concat(l[:], r[:]))
}

// drawKey makes keys that share long prefixes often. They do not begin with
// twelve zero bytes, so that they can be proved.
func drawKey(t *rapid.T) (k Key) {
	copy(k[:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}), 0, 4).Draw(t, "prefix"))
	k[embeddingZeros-1] = 1
	k[30] = rapid.SampledFrom([]byte{0, 1, 2}).Draw(t, "late")
	k[31] = rapid.SampledFrom([]byte{0, 1, 64, 255}).Draw(t, "sub")
	return k
}

// drawWrites draws sorted, distinct writes, among them zeros and deletions,
// also of existing keys.
func drawWrites(t *rapid.T, m model, n int) []Write {
	known := m.keys()
	writes := map[Key]Write{}
	for range rapid.IntRange(0, n).Draw(t, "writes") {
		k := drawKey(t)
		if len(known) > 0 && rapid.Bool().Draw(t, "known") {
			k = rapid.SampledFrom(known).Draw(t, "key")
		}
		w := Write{Key: k, Value: [32]byte{rapid.Byte().Draw(t, "value")}}
		if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
			w = Write{Key: k, Deleted: true}
		}
		writes[k] = w
	}
	return sorted(writes)
}

func sorted(writes map[Key]Write) []Write {
	return slices.SortedFunc(maps.Values(writes), func(a, b Write) int { return a.Key.Compare(b.Key) })
}

// fatal is what *testing.T and *rapid.T have.
type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

func mustApply(t fatal, tree Tree, writes []Write) Tree {
	t.Helper()
	next, err := tree.Apply(sha, writes)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return next
}

// treeOf is the tree of a model.
func treeOf(t fatal, m model) Tree {
	writes := map[Key]Write{}
	for k, v := range m {
		writes[k] = Write{Key: k, Value: v}
	}
	return mustApply(t, Tree{}, sorted(writes))
}
