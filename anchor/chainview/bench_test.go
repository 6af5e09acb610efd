package chainview_test

import (
	"encoding/binary"
	"testing"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// BenchmarkForeignBlock imports blocks of the full chain in which every core's report becomes
// available and another takes its place, none of them ours, with finality three blocks behind.
func BenchmarkForeignBlock(b *testing.B) {
	spec := jamq.Full()
	v, _ := chainview.New(&spec, jamq.Block{Hash: numbered(0)})
	_, _ = v.Watch(jamq.PackageHash{1}, chainview.Package{Anchor: numbered(0)})
	block := jamq.Block{Reported: make([]jamq.Report, spec.Cores)}
	for i := range spec.Cores {
		block.Available = append(block.Available, jamq.CoreIndex(i))
	}
	n := uint32(0)
	next := func() {
		n++
		block.Hash, block.Parent, block.Slot = numbered(n), numbered(n-1), jamq.Slot(n)
		for i := range block.Reported {
			r := &block.Reported[i]
			r.Core = jamq.CoreIndex(i)
			binary.LittleEndian.PutUint64(r.Package[:], (uint64(n)*uint64(spec.Cores)+uint64(i))*0x9e3779b97f4a7c15)
		}
		if err := v.ImportBest(&block, block.Hash); err != nil {
			b.Fatal(err)
		}
		if n > 3 {
			if err := v.Finalize(numbered(n - 3)); err != nil {
				b.Fatal(err)
			}
		}
	}
	for range spec.EpochLength + 10 {
		next()
	}
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}

func numbered(n uint32) jamq.HeaderHash {
	var h jamq.HeaderHash
	binary.BigEndian.PutUint32(h[1:], n)
	h[0] = 'n'
	return h
}
