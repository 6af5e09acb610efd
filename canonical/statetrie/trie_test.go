package statetrie

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"
	"pgregory.net/rapid"
)

// randomEntries returns entries whose keys share long beginnings, so that the trie is deep.
func randomEntries(seed uint64, n int) []entry {
	r := rand.New(rand.NewPCG(seed, 0))
	entries := make([]entry, n)
	for i := range entries {
		for j := range entries[i].Key {
			entries[i].Key[j] = byte(r.IntN(2))
		}
		entries[i].Key[30] = byte(i)
		entries[i].Value = make([]byte, r.IntN(70))
		for j := range entries[i].Value {
			entries[i].Value[j] = byte(r.IntN(256))
		}
	}
	return entries
}

// entry is a key of a test's state with its value.
type entry struct {
	Key   Key
	Value []byte
}

func trieOf(entries []entry) *Trie {
	var t *Trie
	for _, e := range entries {
		t = t.Set(e.Key, e.Value)
	}
	return t
}

func TestStateTrieByHand(t *testing.T) {
	var empty *Trie
	require.Zero(t, empty.Root())
	require.Empty(t, empty.Prove(Key{}))
	key := Key{0xaa}
	one := empty.Set(key, []byte{1, 2, 3})
	node := slices.Concat([]byte{0x83, 0xaa}, make([]byte, 30), []byte{1, 2, 3}, make([]byte, 29))
	require.Equal(t, common.Hash(blake2b.Sum256(node)), one.Root())
	require.NoError(t, VerifyAbsent(common.Hash{}, key, nil))
	require.ErrorIs(t, Verify(common.Hash{}, key, nil, nil), ErrProof)

	// Two keys that part at the second bit: a branch with one empty side above another.
	other := Key{0xea}
	two := one.Set(other, make([]byte, 33))
	long := blake2b.Sum256(make([]byte, 33))
	right := blake2b.Sum256(slices.Concat([]byte{0xc0, 0xea}, make([]byte, 30), long[:]))
	left := one.Root()
	left[0] &= 0x7f
	inner := blake2b.Sum256(slices.Concat(left[:], right[:]))
	require.Equal(t, common.Hash(blake2b.Sum256(slices.Concat(make([]byte, 32), inner[:]))), two.Root())
	require.NotEqual(t, one.Root(), two.Root())
	_, ok := one.Get(other)
	require.False(t, ok, "a trie never changes")
}

// A state in which keys were set and deleted again, in any order, is the one in which they never
// were.
func TestDeleteUndoesSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := randomEntries(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 40).Draw(t, "n"))
		kept := entries[:rapid.IntRange(0, len(entries)).Draw(t, "kept")]
		trie := trieOf(rapid.Permutation(entries).Draw(t, "set"))
		whole := trie.Root()
		less := trie
		for _, e := range rapid.Permutation(entries[len(kept):]).Draw(t, "deleted") {
			less = less.Delete(e.Key)
			require.Equal(t, less.Root(), less.Delete(e.Key).Root(), "an absent key")
		}
		require.Equal(t, trieOf(kept).Root(), less.Root())
		require.Equal(t, whole, trie.Root(), "a trie never changes")
	})
}

// The trie against a plain map: whatever the order of writes, the root is that of the contents, and
// all is proved.
func TestStateProofs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := randomEntries(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 40).Draw(t, "n"))
		trie := trieOf(entries)
		root := trie.Root()
		shuffled := rapid.Permutation(entries).Draw(t, "order")
		again := trieOf(append(shuffled, shuffled[0]))
		require.Equal(t, root, again.Root())

		e := rapid.SampledFrom(entries).Draw(t, "entry")
		have, ok := trie.Get(e.Key)
		require.True(t, ok)
		require.Equal(t, string(e.Value), string(have))
		nodes := trie.Prove(e.Key)
		require.NoError(t, Verify(root, e.Key, e.Value, nodes))
		require.ErrorIs(t, VerifyAbsent(root, e.Key, nodes), ErrProof)
		require.ErrorIs(t, Verify(root, e.Key, append([]byte{9}, e.Value...), nodes), ErrProof)
		require.ErrorIs(t, Verify(root, e.Key, e.Value, nodes[:len(nodes)-1]), ErrProof)
		require.ErrorIs(t, Verify(root, e.Key, e.Value, append(nodes[:len(nodes):len(nodes)], Node{})), ErrProof)

		absent := e.Key
		absent[rapid.IntRange(0, 29).Draw(t, "byte")] |= 0x40
		nodes = trie.Prove(absent)
		require.NoError(t, VerifyAbsent(root, absent, nodes))
		require.ErrorIs(t, Verify(root, absent, e.Value, nodes), ErrProof)
		for i := range nodes {
			require.ErrorIs(t, VerifyAbsent(root, absent, nodes[:i]), ErrProof, "a truncated proof shows nothing")
		}
	})
}

func TestEveryBitOfAStateProofMatters(t *testing.T) {
	entries := randomEntries(1, 9)
	trie := trieOf(entries)
	root, nodes := trie.Root(), trie.Prove(entries[3].Key)
	for i := range nodes {
		for bit := range 8 * len(nodes[i]) {
			nodes[i][bit/8] ^= 1 << (bit % 8)
			require.ErrorIs(t, Verify(root, entries[3].Key, entries[3].Value, nodes), ErrProof)
			nodes[i][bit/8] ^= 1 << (bit % 8)
		}
	}
	require.NoError(t, Verify(root, entries[3].Key, entries[3].Value, nodes))
}

// A proof is found among the nodes of a whole trie, whether or not its leaf is among them.
func TestCollectState(t *testing.T) {
	entries := randomEntries(3, 30)
	trie := trieOf(entries)
	var pool []Node
	for i := len(entries) - 1; i >= 0; i-- {
		pool = append(pool, trie.Prove(entries[i].Key)...)
	}
	branches := slices.DeleteFunc(slices.Clone(pool), func(n Node) bool { return n[0]&leafBit != 0 })
	for _, e := range entries {
		for _, nodes := range [][]Node{pool, branches} {
			path, err := Collect(trie.Root(), e.Key, e.Value, nodes)
			require.NoError(t, err)
			require.Equal(t, trie.Prove(e.Key), path)
		}
		_, err := Collect(trie.Root(), e.Key, append([]byte{1}, e.Value...), pool)
		require.ErrorIs(t, err, ErrProof, "another value")
		_, err = Collect(common.Hash{1}, e.Key, e.Value, pool)
		require.ErrorIs(t, err, ErrProof, "another root")
	}
	_, err := Collect(trie.Root(), entries[0].Key, entries[0].Value, pool[:1])
	require.ErrorIs(t, err, ErrProof, "nodes are missing")
	_, err = Collect(trie.Root(), Key{0xff}, nil, pool)
	require.ErrorIs(t, err, ErrProof, "an absent key")
}

func FuzzVerifyState(f *testing.F) {
	f.Add([]byte{1}, []byte{2}, make([]byte, 64))
	f.Fuzz(func(t *testing.T, key, value, data []byte) {
		var k Key
		copy(k[:], key)
		var nodes []Node
		for ; len(data) >= 64; data = data[64:] {
			nodes = append(nodes, Node(data[:64]))
		}
		var root common.Hash
		if len(nodes) > 0 {
			root = nodes[0].hash()
		}
		if Verify(root, k, value, nodes) == nil && VerifyAbsent(root, k, nodes) == nil {
			t.Fatal("present and absent at once")
		}
	})
}

// Requests, preimages and storage differ in the mark in front of their keys (GP D.2).
func TestKeysOfAService(t *testing.T) {
	hash := blake2b.Sum256([]byte("preimage"))
	require.Equal(t, PreimageKey(7, hash), RequestKey(7, hash, preimageMark))
	require.Equal(t, StorageKey(7, hash[:]), RequestKey(7, hash, storageMark))
	require.NotEqual(t, RequestKey(7, hash, 8), RequestKey(7, hash, 9))
	require.NotEqual(t, RequestKey(7, hash, 8), RequestKey(8, hash, 8))
}
