package statedb

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb/ubt"
)

// benchLeaves is the size of the measured state. internal/bench compares it
// with go-ethereum's trie.
const benchLeaves = 1_000_000

// randomWrites returns sorted writes of random keys, with perStem keys per
// stem.
func randomWrites(seed byte, n, perStem int) []ubt.Write {
	source := rand.NewChaCha8([32]byte{seed})
	writes := make([]ubt.Write, n)
	for i := range writes {
		if w := &writes[i]; i%perStem == 0 {
			_, _ = source.Read(w.Key[:])
		} else {
			w.Key = writes[i-1].Key
			w.Key[StemSize]++
		}
		binary.BigEndian.PutUint64(writes[i].Value[:], uint64(i)+1)
	}
	sortWrites(writes)
	return writes
}

func sortWrites(writes []ubt.Write) {
	slices.SortFunc(writes, func(a, b ubt.Write) int { return a.Key.Compare(b.Key) })
}

// some returns writes of n of the keys, with other values.
func some(of []ubt.Write, n int, round int) []ubt.Write {
	r := rand.New(rand.NewPCG(1, uint64(round)))
	writes := make([]ubt.Write, n)
	for i, at := range r.Perm(len(of))[:n] {
		writes[i] = ubt.Write{Key: of[at].Key, Value: [32]byte{byte(round), byte(round >> 8), 1}}
	}
	sortWrites(writes)
	return writes
}

func apply(b *testing.B, tree ubt.Tree, writes []ubt.Write) ubt.Tree {
	tree, err := tree.Apply(&hasher, writes)
	require.NoError(b, err)
	return tree
}

func perWrite(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/write")
}

func BenchmarkLoad(b *testing.B) {
	writes := randomWrites(1, benchLeaves, 1)
	b.ResetTimer()
	for range b.N {
		apply(b, ubt.Tree{}, writes)
	}
	perWrite(b, benchLeaves)
}

func BenchmarkUpdate(b *testing.B) {
	writes := randomWrites(1, benchLeaves, 1)
	tree := apply(b, ubt.Tree{}, writes)
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				batch := some(writes, n, i)
				runtime.GC() // and caches are cold
				b.StartTimer()
				apply(b, tree, batch)
			}
			perWrite(b, n)
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	tree := apply(b, ubt.Tree{}, randomWrites(1, benchLeaves, 1))
	batch := randomWrites(2, 10_000, 1)
	b.ResetTimer()
	for range b.N {
		apply(b, tree, batch)
	}
	perWrite(b, len(batch))
}

func BenchmarkGet(b *testing.B) {
	writes := randomWrites(1, benchLeaves, 1)
	tree := apply(b, ubt.Tree{}, writes)
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(writes))
	b.ResetTimer()
	for i := range b.N {
		if _, ok, err := tree.Get(writes[order[i%len(order)]].Key); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// heap returns the bytes in use.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func BenchmarkHeapPerLeaf(b *testing.B) {
	for _, perStem := range []int{1, 4} {
		b.Run(fmt.Sprint(perStem), func(b *testing.B) {
			writes := randomWrites(1, benchLeaves, perStem)
			for range b.N {
				before := heap()
				tree := apply(b, ubt.Tree{}, writes)
				b.ReportMetric((heap()-before)/benchLeaves, "B/leaf")
				runtime.KeepAlive(tree)
			}
			runtime.KeepAlive(writes)
		})
	}
}

// A block of 1,000 random writes that is retained.
func BenchmarkHeapPerBlock(b *testing.B) {
	writes := randomWrites(1, benchLeaves, 1)
	tree := apply(b, ubt.Tree{}, writes)
	const blocks = 20
	for range b.N {
		before := heap()
		var kept []ubt.Tree
		at := tree
		for i := range blocks {
			at = apply(b, at, some(writes, 1000, i))
			kept = append(kept, at)
		}
		b.ReportMetric((heap()-before)/blocks, "B/block")
		runtime.KeepAlive(kept)
	}
	runtime.KeepAlive(writes)
}

// benchView is a view with staged writes and reads.
func benchView(b *testing.B) *View {
	v := open(b, NewStore())
	for i := range byte(100) {
		v.SetStorage(common.Address{i}, common.Hash{}, common.Hash{1})
		v.Storage(common.Address{i}, common.Hash{1})
	}
	return v
}

func BenchmarkViews(b *testing.B) {
	v := benchView(b)
	for name, f := range map[string]func() *View{
		"Copy":          v.Copy,
		"CopyForPhase2": v.CopyForPhase2,
		"Store.View":    func() *View { return viewOf(b, v.store, EmptyRoot) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if f() == nil {
					b.Fatal()
				}
			}
		})
	}
	b.Run("heap of 10000", func(b *testing.B) {
		for range b.N {
			before := heap()
			live := make([]*View, 10_000)
			for i := range live {
				live[i] = v.Copy()
			}
			b.ReportMetric(heap()-before, "B")
			runtime.KeepAlive(live)
		}
	})
}

// A transfer on a view, with and without its log of reads.
func BenchmarkTransfer(b *testing.B) {
	for name, start := range map[string]func(*View){"logged": func(*View) {}, "unlogged": (*View).DisableReadLog} {
		b.Run(name, func(b *testing.B) {
			v := open(b, NewStore())
			start(v)
			for i := range b.N {
				for _, a := range []common.Address{{byte(i), byte(i >> 8)}, {1, byte(i), byte(i >> 8)}} {
					account := v.Account(a)
					account.Nonce++
					account.Balance = uint256.NewInt(uint64(i))
					if err := v.SetAccount(a, account); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// A witness of random reads and writes of a large state: half of the keys are only read.
func BenchmarkWitness(b *testing.B) {
	writes := randomWrites(1, benchLeaves, 1)
	store := NewStore()
	tree := apply(b, ubt.Tree{}, writes)
	store.roots[tree.Root()] = &published{tree: ready(tree)}
	for _, n := range []int{100, 1000} {
		v := viewOf(b, store, tree.Root())
		for i, w := range some(writes, n, 0) {
			v.Get(w.Key)
			if i%2 == 0 {
				v.Set(w.Key, w.Value)
			}
		}
		w, err := v.Witness()
		require.NoError(b, err)
		b.Run(fmt.Sprint("build ", n), func(b *testing.B) {
			for range b.N {
				_, err := v.Witness()
				require.NoError(b, err)
			}
			b.ReportMetric(float64(w.Proof.Size()), "B")
		})
		staged := v.Writes()
		b.Run(fmt.Sprint("verify ", n), func(b *testing.B) {
			for range b.N {
				_, err := Verify(w, tree.Root(), staged)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprint("verify reads of ", n), func(b *testing.B) {
			v.Reset()
			for i := range w.Entries {
				v.Get(w.Entries[i].Key)
			}
			w, err := v.Witness()
			require.NoError(b, err)
			b.ResetTimer()
			for range b.N {
				_, err := Verify(w, tree.Root(), nil)
				require.NoError(b, err)
			}
		})
	}
}
