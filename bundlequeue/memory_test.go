package bundlequeue

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// A bundle that was sent costs at most a kibibyte besides what the host put into it, as finalized
// history or under way.
func TestMemoryPerBundle(t *testing.T) {
	const n = 20_000
	cfg := DefaultConfig(jamq.Tiny())
	cfg.RetentionWindow = n
	q, err := New(cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
	require.NoError(t, err)
	now, slot, parent := jamq.CommonEra(), jamq.Slot(0), jamq.HeaderHash{'g'}
	block := func(fill func(*jamq.Block)) {
		slot++
		b := jamq.Block{Hash: jamq.HeaderHash{1, byte(slot), byte(slot >> 8), byte(slot >> 16)}, Parent: parent, Slot: slot}
		fill(&b)
		_, err := q.Step(now, Imported{Block: b, Best: b.Hash})
		require.NoError(t, err)
		_, err = q.Step(now, FinalizedBlock{Hash: parent})
		require.NoError(t, err)
		parent = b.Hash
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range 8 {
		block(func(*jamq.Block) {})
	}
	before := heap()
	for i := uint64(1); i <= n; i++ {
		effects, err := q.Step(now, Enqueue{Number: i, Commitment: common.Hash(packageOf(i)), Parent: common.Hash(packageOf(i - 1))})
		require.NoError(t, err)
		build := effects[len(effects)-1].(Build)
		pkg := packageOf(i)
		effects, err = q.Step(now, Built{Ticket: build.Ticket, Package: pkg, Context: jamq.RefineContext{
			Anchor: build.Anchor.Hash, LookupAnchorSlot: slot, Prerequisites: build.Prerequisites,
		}})
		require.NoError(t, err)
		_, err = q.Step(now, Sent{Ticket: effects[len(effects)-1].(Send).Ticket, OK: true})
		require.NoError(t, err)
		block(func(b *jamq.Block) { b.Reported = []jamq.Report{{Package: pkg}} })
		block(func(b *jamq.Block) { b.Available = []jamq.CoreIndex{0} })
	}
	per := (heap() - before) / n
	t.Logf("%d bytes per bundle", per)
	require.LessOrEqual(t, per, uint64(1200))
	require.Equal(t, n, q.Stats().Count[Finalized]+q.Stats().Count[Accumulated])
	runtime.KeepAlive(q)
}

// packageOf returns another package hash for each number.
func packageOf(n uint64) (pkg jamq.PackageHash) {
	binary.LittleEndian.PutUint64(pkg[:], n*0x9e3779b97f4a7c15)
	return pkg
}
