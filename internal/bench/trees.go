package main

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie/bintrie"
	"github.com/ethereum/go-ethereum/triedb"

	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/ubt"
)

// tree is a state tree under test.
type tree interface {
	// apply applies writes, which may be in any order, and returns the root.
	apply(writes []ubt.Write) common.Hash
	get(k statedb.Key) bool
	// forget drops all versions except the newest.
	forget()
}

// growerNames are the columns of the table of statedb. cosmos-sdk has no such
// tree.
var growerNames = []string{"geth", "cosmos", "jamq"}

// growers creates the kinds of trees, in the order of growerNames.
var growers = []func() tree{
	func() tree {
		nodes := triedb.NewDatabase(rawdb.NewMemoryDatabase(), triedb.UBTDefaults)
		t, err := bintrie.NewBinaryTrie(types.EmptyBinaryHash, nodes, 1)
		must(err)
		return &gethTree{t, make([][]byte, 256)}
	},
	nil,
	func() tree { return new(jamqTree) },
}

// gethTree is go-ethereum's binary trie, which is modified in place.
type gethTree struct {
	trie   *bintrie.BinaryTrie
	values [][]byte // of one stem; all nil between calls
}

func (g *gethTree) apply(writes []ubt.Write) common.Hash {
	for i := range writes {
		w := &writes[i]
		g.values[w.Key[statedb.StemSize]] = w.Value[:]
		must(g.trie.UpdateStem(w.Key[:statedb.StemSize], g.values))
		g.values[w.Key[statedb.StemSize]] = nil
	}
	return g.trie.Hash()
}

func (g *gethTree) forget() {} // it has no other

func (g *gethTree) get(k statedb.Key) bool {
	value, err := g.trie.GetWithHashedKey(k[:])
	must(err)
	return value != nil
}

// sha is the hasher of both trees.
var sha = ubt.SHA256()

// jamqTree is the tree of statedb, which creates a new version for each batch.
// Old versions are kept, as in a store until its retention drops them.
type jamqTree struct {
	ubt.Tree
	older []ubt.Tree
}

func (j *jamqTree) apply(writes []ubt.Write) common.Hash {
	writes = slices.Clone(writes)
	slices.SortFunc(writes, func(a, b ubt.Write) int { return a.Key.Compare(b.Key) })
	j.older = append(j.older, j.Tree)
	var err error
	j.Tree, err = j.Apply(&sha, writes)
	must(err)
	return j.Root()
}

func (j *jamqTree) forget() { j.older = nil }

func (j *jamqTree) get(k statedb.Key) bool {
	_, ok, err := j.Get(k)
	must(err)
	return ok
}

// randomWrites returns writes of n random keys, perStem for each stem.
func randomWrites(seed byte, n, perStem int) []ubt.Write {
	source := rand.NewChaCha8([32]byte{seed})
	writes := make([]ubt.Write, n)
	for i := range writes {
		if w := &writes[i]; i%perStem == 0 {
			_, _ = source.Read(w.Key[:])
		} else {
			w.Key = writes[i-1].Key
			w.Key[statedb.StemSize]++
		}
		binary.BigEndian.PutUint64(writes[i].Value[:], uint64(i)+1)
	}
	return writes
}

// someOf returns writes of n of the keys, with other values.
func someOf(of []ubt.Write, n, round int) []ubt.Write {
	r := rand.New(rand.NewPCG(1, uint64(round)))
	writes := make([]ubt.Write, n)
	for i := range writes {
		// One key of each n-th part, so that the keys are distinct.
		at := i*len(of)/n + r.IntN(len(of)/n)
		writes[i] = ubt.Write{Key: of[at].Key, Value: [32]byte{byte(round), byte(round >> 8), 1}}
	}
	r.Shuffle(n, func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	return writes
}
