//go:build unix

package pebblestate_test

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble"
	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/pebble/pebblestate"
	"github.com/jamq/jamq/statedb"
)

// processor returns the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	durableSlots  = 1_000_000
	slotsPerBlock = 1000
	measured      = 400 // blocks, enough for the database to write tables
)

func slotOf(n uint64) (a common.Address, slot common.Hash) {
	binary.BigEndian.PutUint64(slot[8:], n)
	return common.Address{1}, slot
}

// blocks executes n blocks on a store: each reads and writes random slots, is
// committed, and becomes canonical.
func blocks(b *testing.B, store *statedb.Store, n int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		v, err := store.View(store.Canonical())
		require.NoError(b, err)
		for range slotsPerBlock {
			a, slot := slotOf(r.Uint64N(durableSlots) << 8)
			v.Storage(a, slot)
			v.SetStorage(a, slot, common.Hash{1, byte(seed), byte(i), byte(i >> 8)})
		}
		root, err := v.Commit()
		require.NoError(b, err)
		require.NoError(b, store.SetCanonical(root))
	}
}

// fill writes a million slots, in a million stems, to an empty store.
func fill(b *testing.B, store *statedb.Store) {
	v, err := store.View(statedb.EmptyRoot)
	require.NoError(b, err)
	for n := range uint64(durableSlots) {
		a, slot := slotOf(n << 8)
		v.SetStorage(a, slot, common.Hash{1})
	}
	root, err := v.Commit()
	require.NoError(b, err)
	require.NoError(b, store.SetCanonical(root))
}

// filled returns a store with a million slots in a million stems, and some
// blocks above them.
func filled(b *testing.B, disk statedb.Disk) *statedb.Store {
	store, err := statedb.Open(statedb.Config{Retention: 8, Disk: disk})
	require.NoError(b, err)
	fill(b, store)
	blocks(b, store, 20, 7)
	return store
}

// BenchmarkDurable reports the processor time of a block of 1,000 random slots
// in memory and in Pebble, on a state of a million slots, and their ratio. It
// includes all work in the background, and writing the last memory table.
func BenchmarkDurable(b *testing.B) {
	for range b.N {
		runtime.GC()
		store := filled(b, nil)
		runtime.GC()
		began := processor(b)
		blocks(b, store, measured, 1)
		memory := processor(b) - began
		store = nil

		db, err := pebble.Open(b.TempDir(), &pebble.Options{
			MemTableSize: pebblestate.MemTableSize, Logger: pebbledb.Silent,
		})
		require.NoError(b, err)
		disk, err := pebblestate.Open("", pebblestate.Options{DB: db})
		require.NoError(b, err)
		store = filled(b, disk)
		// The work for the first values is not that of a block.
		require.NoError(b, db.Compact([]byte{0}, []byte{0xff}, false))
		runtime.GC()
		began = processor(b)
		blocks(b, store, measured, 1)
		require.NoError(b, db.Flush())
		require.NoError(b, db.Close())
		durable := processor(b) - began
		b.ReportMetric(float64(memory.Microseconds())/measured, "memory-µs/block")
		b.ReportMetric(float64(durable.Microseconds())/measured, "disk-µs/block")
		b.ReportMetric(float64(durable)/float64(memory), "disk/memory")
	}
}

// BenchmarkOpen reports the processor time of opening a store of a million
// slots in a million stems from Pebble, the memory that it has then, and the
// peak of the memory while it opens, sampled.
func BenchmarkOpen(b *testing.B) {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{Logger: pebbledb.Silent})
	require.NoError(b, err)
	disk, err := pebblestate.Open("", pebblestate.Options{DB: db})
	require.NoError(b, err)
	store, err := statedb.Open(statedb.Config{Disk: disk})
	require.NoError(b, err)
	fill(b, store)
	require.NoError(b, db.Compact([]byte{0}, []byte{0xff}, false))
	store = nil
	for range b.N {
		before := inUse()
		stop, peak := make(chan struct{}), make(chan float64)
		go func() { peak <- highest(stop) }()
		began := processor(b)
		store, err := statedb.Open(statedb.Config{Disk: disk})
		require.NoError(b, err)
		took := processor(b) - began
		close(stop)
		top := <-peak
		final := inUse()
		b.ReportMetric(float64(took.Milliseconds()), "cpu-ms")
		b.ReportMetric((final-before)/1e6, "final-MB")
		b.ReportMetric((top-before)/(final-before), "peak/final")
		runtime.KeepAlive(store)
	}
	require.NoError(b, db.Close())
}

// inUse returns the bytes of the heap in use after a collection.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	return heapBytes()
}

// heapBytes returns the bytes of the heap, garbage included.
func heapBytes() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// highest samples the heap until stop is closed, and returns its highest size.
func highest(stop chan struct{}) (most float64) {
	for {
		most = max(most, heapBytes())
		select {
		case <-stop:
			return most
		case <-time.After(20 * time.Millisecond):
		}
	}
}
