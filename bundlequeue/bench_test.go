package bundlequeue_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
)

// ops are what a builder does to a bundle, in order. A benchmark plays the whole life of batch after batch and times one of them.
type ops interface {
	enqueue(n uint64)
	dequeue()
	markSubmitted(pkg jamq.PackageHash)
	guaranteed(pkg jamq.PackageHash)
	accumulated(pkg jamq.PackageHash)
	finalized(pkg jamq.PackageHash)
	timeouts()
	stats()
}

// ours is the queue.
type ours struct {
	s    *told.Simple[int]
	jobs []told.Job[int]
	now  time.Time
}

func newOurs(b *testing.B, depth int) *ours {
	cfg := bundlequeue.DefaultConfig(jamq.Full())
	cfg.MaxQueueDepth = depth
	cfg.Cores = cfg.Cores[:0]
	for core := range cfg.Spec.Cores {
		cfg.Cores = append(cfg.Cores, jamq.CoreIndex(core))
	}
	s, err := told.New[int](cfg, told.DefaultConfig(cfg.Spec))
	if err != nil {
		b.Fatal(err)
	}
	return &ours{s: s, now: jamq.CommonEra()}
}

func must(_ []bundlequeue.Effect, err error) {
	if err != nil {
		panic(err)
	}
}

func (o *ours) enqueue(n uint64) { must(o.s.Enqueue(o.now, n, common.Hash{}, 0)) }
func (o *ours) dequeue() {
	job, ok := o.s.Dequeue()
	if !ok {
		panic("nothing to submit")
	}
	o.jobs = append(o.jobs, job)
}
func (o *ours) markSubmitted(pkg jamq.PackageHash) {
	job := o.jobs[0]
	o.jobs = o.jobs[1:]
	must(o.s.MarkSubmitted(o.now, job, pkg, jamq.RefineContext{Prerequisites: job.Prerequisites}, 0))
}
func (o *ours) guaranteed(pkg jamq.PackageHash)  { must(o.s.OnGuaranteed(o.now, pkg)) }
func (o *ours) accumulated(pkg jamq.PackageHash) { must(o.s.OnAccumulated(o.now, pkg)) }
func (o *ours) finalized(pkg jamq.PackageHash)   { must(o.s.OnFinalized(o.now, pkg)) }
func (o *ours) timeouts()                        { must(o.s.CheckTimeouts(o.now)) }
func (o *ours) stats()                           { _ = o.s.Stats() }

// scanned is a queue as public builders have it: bundles in a map by number, scanned from end to end for everything.
type scanned struct {
	bundles map[uint64]*scannedBundle
	jobs    []*scannedBundle
	now     time.Time
}

type scannedBundle struct {
	state    bundlequeue.State
	packages []jamq.PackageHash
	since    time.Time
}

func (s *scanned) enqueue(n uint64) { s.bundles[n] = &scannedBundle{} }

func (s *scanned) dequeue() {
	least, found := uint64(0), false
	for n, b := range s.bundles {
		if b.state == bundlequeue.Reserved && (!found || n < least) {
			least, found = n, true
		}
	}
	b := s.bundles[least]
	b.state = bundlequeue.Building
	s.jobs = append(s.jobs, b)
}

func (s *scanned) markSubmitted(pkg jamq.PackageHash) {
	b := s.jobs[0]
	s.jobs = s.jobs[1:]
	b.state, b.since, b.packages = bundlequeue.Submitted, s.now, append(b.packages, pkg)
}

func (s *scanned) move(pkg jamq.PackageHash, to bundlequeue.State) {
	for _, b := range s.bundles {
		for _, p := range b.packages {
			if p == pkg {
				b.state, b.since = to, s.now
				return
			}
		}
	}
}

func (s *scanned) guaranteed(pkg jamq.PackageHash)  { s.move(pkg, bundlequeue.Guaranteed) }
func (s *scanned) accumulated(pkg jamq.PackageHash) { s.move(pkg, bundlequeue.Accumulated) }

func (s *scanned) finalized(pkg jamq.PackageHash) {
	for n, b := range s.bundles {
		for _, p := range b.packages {
			if p == pkg {
				delete(s.bundles, n)
				return
			}
		}
	}
}

func (s *scanned) timeouts() {
	for _, b := range s.bundles {
		if b.state == bundlequeue.Submitted && s.now.Sub(b.since) > time.Hour {
			b.state = bundlequeue.Queued
		}
	}
}

func (s *scanned) stats() {
	var counts [bundlequeue.NumStates]int
	for _, b := range s.bundles {
		counts[b.state]++
	}
}

// BenchmarkOps times each operation on a queue that holds 12, 1,000 and 100,000 bundles, beside the scanned one. Submit is Dequeue and
// MarkSubmitted together, three steps of the queue: a package is built, sent and taken. Dequeue alone includes the stopwatch.
func BenchmarkOps(b *testing.B) {
	for _, op := range []string{"Enqueue", "Dequeue", "Submit", "GuaranteeOwn", "GuaranteeForeign", "Accumulated", "TimeoutsNothingDue", "Stats"} {
		for _, held := range []int{12, 1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d/jamq", op, held), func(b *testing.B) {
				benchmarkOp(b, newOurs(b, 2*held+10_000), op, held)
			})
			b.Run(fmt.Sprintf("%s/%d/scanned", op, held), func(b *testing.B) {
				benchmarkOp(b, &scanned{bundles: map[uint64]*scannedBundle{}, now: jamq.CommonEra()}, op, held)
			})
		}
	}
}

func packageOf(n uint64) (pkg jamq.PackageHash) {
	binary.LittleEndian.PutUint64(pkg[:], n*0x9e3779b97f4a7c15)
	return pkg
}

func benchmarkOp(b *testing.B, o ops, op string, held int) {
	batch := min(held, 256)
	next, oldest := uint64(1), uint64(1)
	for range held {
		o.enqueue(next)
		next++
	}
	timed := func(name string, f func(n uint64)) {
		if name == op {
			b.StartTimer()
		}
		for i := range batch {
			f(oldest + uint64(i))
		}
		if name == op {
			b.StopTimer()
		}
	}
	one := func(name string, f func()) {
		if name == op {
			b.StartTimer()
			f()
			b.StopTimer()
		} else {
			f()
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	for done := 0; done < b.N; done += batch {
		timed("Enqueue", func(uint64) { o.enqueue(next); next++ })
		timed("Submit", func(n uint64) { // a build names the package of the one before it, so these two go in turns
			one("Dequeue", func() { o.dequeue() })
			o.markSubmitted(packageOf(n))
		})
		timed("GuaranteeForeign", func(n uint64) { o.guaranteed(packageOf(1<<62 + n)) })
		timed("GuaranteeOwn", func(n uint64) { o.guaranteed(packageOf(n)) })
		timed("TimeoutsNothingDue", func(uint64) { o.timeouts() })
		timed("Stats", func(uint64) { o.stats() })
		timed("Accumulated", func(n uint64) { o.accumulated(packageOf(n)) })
		timed("Finalized", func(n uint64) { o.finalized(packageOf(n)) })
		oldest += uint64(batch)
	}
}

// BenchmarkForeignBlock feeds a queue of 100,000 bundles, of which 341 are submitted, full blocks of others' reports.
func BenchmarkForeignBlock(b *testing.B) {
	cfg := bundlequeue.DefaultConfig(jamq.Full())
	cfg.MaxQueueDepth = 100_000
	q, err := bundlequeue.New[int](cfg, jamq.Block{Hash: jamq.HeaderHash{1}})
	if err != nil {
		b.Fatal(err)
	}
	now := jamq.CommonEra()
	for q.CanEnqueue() {
		must(q.Step(now, bundlequeue.Enqueue[int]{Number: q.Next()}))
	}
	block := jamq.Block{Hash: jamq.HeaderHash{1}}
	for core := range cfg.Spec.Cores {
		block.Reported = append(block.Reported, jamq.Report{Core: jamq.CoreIndex(core)})
	}
	b.ReportAllocs()
	for b.Loop() {
		block.Parent, block.Slot = block.Hash, block.Slot+1
		binary.LittleEndian.PutUint32(block.Hash[4:], uint32(block.Slot))
		for i := range block.Reported {
			block.Reported[i].Package = packageOf(uint64(block.Slot)<<10 + uint64(i))
		}
		must(q.Step(now, bundlequeue.Imported{Block: block, Best: block.Hash}))
		must(q.Step(now, bundlequeue.FinalizedBlock{Hash: block.Parent}))
		if block.Slot == 1 {
			for core := range cfg.Spec.Cores {
				block.Available = append(block.Available, jamq.CoreIndex(core))
			}
		}
	}
}
