package live

import (
	"testing"
	"time"

	"github.com/jamq/jamq"
)

// BenchmarkPublish makes a snapshot of the full chain with a report on each core in
// each slot. A node does this at most four times a second.
func BenchmarkPublish(b *testing.B) {
	spec := jamq.Full()
	m := newModel(Info{}, spec, 0)
	now := jamq.NewSlotClock(spec).Start(100_000)
	for slot := range jamq.Slot(shownSlots) {
		block := jamq.Block{Hash: hash(byte(slot + 1)), Parent: hash(byte(slot)), Slot: 100_000 - shownSlots + slot}
		for core := range spec.Cores {
			p := jamq.PackageHash{byte(slot), byte(core), byte(core >> 8)}
			m.packages.add(p, name{uint64(slot)*341 + uint64(core), 1})
			block.Reported = append(block.Reported, jamq.Report{Package: p, Core: jamq.CoreIndex(core)})
			block.Available = append(block.Available, jamq.CoreIndex(core))
		}
		m.importBlock(now, block, block.Hash)
	}
	l := levels{pool: Pool{Max: 1}}
	var s *Snapshot
	for b.Loop() {
		now = now.Add(time.Millisecond)
		m.drawn = nil // a block came
		s = newSnapshot(s, m.state(now, &l))
	}
	b.ReportMetric(float64(len(s.Changes(new(Seen)))), "bytes")
}
