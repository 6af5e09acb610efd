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
	// apply writes in any order, and returns the root.
	apply(writes []ubt.Write) common.Hash
	get(k statedb.Key) bool
	// forget lets go of all versions but the newest.
	forget()
}

// growers are the kinds of trees, in the order of contenders; cosmos-sdk has none like them.
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

// gethTree is go-ethereum's binary trie, which changes in place.
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

// sha is the hasher that both use.
var sha = statedb.EIP7864().Hasher

// jamqTree is this project's, which makes a new tree each time. The older ones are kept, as a store does until its retention lets them go.
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

// randomWrites are writes of random keys, so many to a stem.
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

// someOf are writes of so many of the keys, with other values.
func someOf(of []ubt.Write, n, round int) []ubt.Write {
	r := rand.New(rand.NewPCG(1, uint64(round)))
	writes := make([]ubt.Write, n)
	for i := range writes {
		// Each n-th part of the keys gives one, so that they are distinct.
		at := i*len(of)/n + r.IntN(len(of)/n)
		writes[i] = ubt.Write{Key: of[at].Key, Value: [32]byte{byte(round), byte(round >> 8), 1}}
	}
	r.Shuffle(n, func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	return writes
}
