package statetrie

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// between returns an honest node's answer: the entries of a range, and the nodes
// on the paths to its ends.
func between(trie *Trie, all []Entry, first, last Key) ([]Entry, []Node) {
	var entries []Entry
	for _, e := range all {
		if bytes.Compare(first[:], e.Key[:]) <= 0 && bytes.Compare(e.Key[:], last[:]) <= 0 {
			entries = append(entries, e)
		}
	}
	return entries, append(trie.Prove(first), trie.Prove(last)...)
}

// A range proves with all that is in it, and with nothing else.
func TestStateRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) (k Key) {
			k[0], k[1], k[30] = rapid.Byte().Draw(t, "first"), rapid.ByteRange(0, 1).Draw(t, "second"), rapid.ByteRange(0, 3).Draw(t, "last")
			return k
		})
		var trie *Trie
		var all []Entry
		for _, k := range rapid.SliceOfNDistinct(key, 0, 30, func(k Key) Key { return k }).Draw(t, "keys") {
			e := Entry{Key: k, Value: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "value")}
			trie = trie.Set(e.Key, e.Value)
			all = append(all, e)
		}
		slices.SortFunc(all, func(a, b Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		first, last := key.Draw(t, "from"), key.Draw(t, "to")
		if bytes.Compare(first[:], last[:]) > 0 {
			first, last = last, first
		}
		entries, nodes := between(trie, all, first, last)
		require.NoError(t, VerifyRange(trie.Root(), first, last, entries, nodes))

		refused := func(change string, entries []Entry, nodes []Node) {
			require.ErrorIs(t, VerifyRange(trie.Root(), first, last, entries, nodes), ErrProof, change)
		}
		if len(entries) > 0 {
			i := rapid.IntRange(0, len(entries)-1).Draw(t, "spoiled")
			refused("one left out", slices.Delete(slices.Clone(entries), i, i+1), nodes)
			changed := slices.Clone(entries)
			changed[i].Value = append([]byte{1}, changed[i].Value...)
			refused("one changed", changed, nodes)
			refused("one twice", slices.Insert(slices.Clone(entries), i, entries[i]), nodes)
		}
		if k := key.Draw(t, "more"); !slices.ContainsFunc(all, func(e Entry) bool { return e.Key == k }) {
			more := append(slices.Clone(entries), Entry{Key: k})
			slices.SortFunc(more, func(a, b Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
			refused("one more", more, nodes)
		}
		if len(entries) < len(all) {
			refused("no nodes", entries, nil)
		}
	})
}

// Whatever nodes and value come, nothing panics, and only what the state holds is proved.
func FuzzStateRange(f *testing.F) {
	trie := trieOf(randomEntries(3, 20))
	key := ChapterKey(ChapterSlot)
	trie = trie.Set(key, []byte("slot"))
	nodes := trie.Prove(key)
	f.Add([]byte("slot"), nodes[0][:], nodes[len(nodes)-1][:])
	f.Fuzz(func(t *testing.T, value, a, b []byte) {
		var more [2]Node
		copy(more[0][:], a)
		copy(more[1][:], b)
		boundary := append(more[:], nodes...)
		if err := VerifyRange(trie.Root(), key, key, []Entry{{key, value}}, boundary); (err == nil) != (string(value) == "slot") {
			t.Fatalf("%q: %v", value, err)
		}
		if VerifyRange(trie.Root(), key, key, nil, boundary) == nil {
			t.Fatal("the key is proved absent")
		}
	})
}

// A root that is not honest may lead to one node again and again, by two ways at each level. That
// is refused before the ways are counted.
func TestStateRangeOfARepeatedNode(t *testing.T) {
	var nodes []Node
	var below common.Hash
	for range 200 {
		n := branch(below, below)
		nodes = append(nodes, n)
		below = n.hash()
	}
	last := Key{}
	require.ErrorIs(t, VerifyRange(below, Key{}, Key(last.fill(0)), nil, nodes), ErrProof)
}
