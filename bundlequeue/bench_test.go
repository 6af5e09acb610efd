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

// ops holds the operations of a builder on a bundle, in order. A benchmark runs
// the whole life of one batch after another and times one of them.
type ops interface {
	// timed is true if the next operations are timed.
	timed(on bool)

	enqueue(n uint64)
	dequeue()
	markSubmitted(pkg jamq.PackageHash)
	guaranteed(pkgs []jamq.PackageHash)
	accumulated(pkgs []jamq.PackageHash)
	finalized(pkgs []jamq.PackageHash)
	timeouts()
	stats()
}

// ours is the queue. Its packages are guaranteed and accumulated by JAM blocks.
type ours struct {
	s     *told.Simple
	jobs  []told.Job
	now   time.Time
	block jamq.Block
	cores map[jamq.PackageHash]jamq.CoreIndex
}

func newOurs(b *testing.B, depth int) *ours {
	cfg := bundlequeue.DefaultConfig(jamq.Full())
	cfg.MaxQueueDepth = depth
	cfg.Cores = cfg.Cores[:0]
	for core := range cfg.Spec.Cores {
		cfg.Cores = append(cfg.Cores, jamq.CoreIndex(core))
	}
	o := &ours{now: jamq.CommonEra(), block: jamq.Block{Hash: jamq.HeaderHash{1}}, cores: make(map[jamq.PackageHash]jamq.CoreIndex)}
	q, err := bundlequeue.New(cfg, o.block)
	if err != nil {
		b.Fatal(err)
	}
	o.s = told.NewSimple(q)
	o.extend(jamq.Block{})
	return o
}

// extend imports a block with the given content.
func (o *ours) extend(b jamq.Block) {
	b.Parent, b.Slot, b.AccumulatedKnown = o.block.Hash, o.block.Slot+1, true
	binary.LittleEndian.PutUint32(b.Hash[:], uint32(b.Slot)+1)
	must(o.s.Step(o.now, bundlequeue.Imported{Block: b, Best: b.Hash}))
	o.block = b
}

func must(_ []bundlequeue.Effect, err error) {
	if err != nil {
		panic(err)
	}
}

func (o *ours) timed(bool) {}

func (o *ours) enqueue(n uint64) { must(o.s.Enqueue(o.now, n, common.Hash{}, nil)) }
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
	o.cores[pkg] = job.Core
	refine := jamq.RefineContext{Anchor: job.Anchor.Hash, LookupAnchorSlot: job.Anchor.Slot, Prerequisites: job.Prerequisites}
	must(o.s.MarkSubmitted(o.now, job, pkg, refine, nil))
}

func (o *ours) guaranteed(pkgs []jamq.PackageHash) {
	var b jamq.Block
	for _, pkg := range pkgs {
		b.Reported = append(b.Reported, jamq.Report{Package: pkg, Core: o.cores[pkg]})
	}
	o.extend(b)
}

func (o *ours) accumulated(pkgs []jamq.PackageHash) { o.extend(jamq.Block{Accumulated: pkgs}) }

func (o *ours) finalized(pkgs []jamq.PackageHash) {
	clear(o.cores)
	must(o.s.Step(o.now, bundlequeue.FinalizedBlock{Hash: o.block.Hash}))
	o.extend(jamq.Block{})
}

func (o *ours) timeouts() { must(o.s.CheckTimeouts(o.now)) }
func (o *ours) stats()    { _ = o.s.Stats() }

// scanned is a queue as public builders have it: bundles in a map by number, scanned from end to
// end for everything. Its index is for the stages of a bundle's life that are not timed, so that a
// benchmark at 100,000 bundles ends.
type scanned struct {
	bundles map[uint64]*scannedBundle
	jobs    []*scannedBundle
	now     time.Time

	untimed bool
	queued  []uint64
	index   map[jamq.PackageHash]uint64
}

type scannedBundle struct {
	number   uint64
	state    bundlequeue.State
	packages []jamq.PackageHash
	since    time.Time
}

func newScanned() *scanned {
	return &scanned{bundles: map[uint64]*scannedBundle{}, now: jamq.CommonEra(), index: map[jamq.PackageHash]uint64{}}
}

func (s *scanned) timed(on bool) { s.untimed = !on }

func (s *scanned) enqueue(n uint64) {
	s.bundles[n] = &scannedBundle{number: n}
	s.queued = append(s.queued, n)
}

// first returns the number of the first bundle that waits.
func (s *scanned) first() uint64 {
	if s.untimed {
		return s.queued[0]
	}
	least, found := uint64(0), false
	for n, b := range s.bundles {
		if b.state == bundlequeue.Reserved && (!found || n < least) {
			least, found = n, true
		}
	}
	return least
}

func (s *scanned) dequeue() {
	b := s.bundles[s.first()]
	s.queued = s.queued[1:]
	b.state = bundlequeue.Building
	s.jobs = append(s.jobs, b)
}

func (s *scanned) markSubmitted(pkg jamq.PackageHash) {
	b := s.jobs[0]
	s.jobs = s.jobs[1:]
	b.state, b.since, b.packages = bundlequeue.Submitted, s.now, append(b.packages, pkg)
	s.index[pkg] = b.number
}

// find returns the bundle that has a package, or nil.
func (s *scanned) find(pkg jamq.PackageHash) *scannedBundle {
	if s.untimed {
		return s.bundles[s.index[pkg]]
	}
	for _, b := range s.bundles {
		for _, p := range b.packages {
			if p == pkg {
				return b
			}
		}
	}
	return nil
}

func (s *scanned) move(pkg jamq.PackageHash, to bundlequeue.State) {
	if b := s.find(pkg); b != nil {
		b.state, b.since = to, s.now
	}
}

func (s *scanned) guaranteed(pkgs []jamq.PackageHash) {
	for _, pkg := range pkgs {
		s.move(pkg, bundlequeue.Guaranteed)
	}
}

func (s *scanned) accumulated(pkgs []jamq.PackageHash) {
	for _, pkg := range pkgs {
		s.move(pkg, bundlequeue.Accumulated)
	}
}

func (s *scanned) finalized(pkgs []jamq.PackageHash) {
	for _, pkg := range pkgs {
		delete(s.bundles, s.find(pkg).number)
		delete(s.index, pkg)
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

// BenchmarkOps times each operation on a queue that holds 12 and 100,000 bundles, beside the
// scanned one. Submit is Dequeue and MarkSubmitted together, three steps of the queue: a package is
// built, sent and taken. Dequeue alone includes the stopwatch. Packages of a batch are
// guaranteed, and accumulated, by one JAM block. It ends within two minutes.
func BenchmarkOps(b *testing.B) {
	for _, op := range []string{"Enqueue", "Dequeue", "Submit", "GuaranteeOwn", "Accumulated", "TimeoutsNothingDue", "Stats"} {
		for _, held := range []int{12, 100_000} {
			b.Run(fmt.Sprintf("%s/%d/jamq", op, held), func(b *testing.B) {
				benchmarkOp(b, newOurs(b, 2*held+10_000), op, held)
			})
			b.Run(fmt.Sprintf("%s/%d/scanned", op, held), func(b *testing.B) {
				benchmarkOp(b, newScanned(), op, held)
			})
		}
	}
}

// packageOf returns another package hash for each number.
func packageOf(n uint64) (pkg jamq.PackageHash) {
	binary.LittleEndian.PutUint64(pkg[:], n*0x9e3779b97f4a7c15)
	return pkg
}

// stopwatch times one operation and not the others. It keeps its own time, because stopping the
// benchmark's timer takes much longer than an operation.
type stopwatch struct {
	b     *testing.B
	op    string
	o     ops
	batch int
	done  int // timed operations so far
	took  time.Duration
}

// time times f, which is n operations.
func (w *stopwatch) time(n int, f func()) {
	w.o.timed(true)
	began := time.Now()
	f()
	w.took += time.Since(began)
	w.done += n
	w.o.timed(false)
}

// run plays f for each bundle of a batch.
func (w *stopwatch) run(name string, f func(i uint64)) {
	w.all(name, func() {
		for i := range w.batch {
			f(uint64(i))
		}
	})
}

// all plays f, which is one operation for each bundle of a batch.
func (w *stopwatch) all(name string, f func()) {
	if name == w.op {
		w.time(w.batch, f)
	} else {
		f()
	}
}

// many plays an operation that changes nothing, if it is the one that is timed: many times, so that
// the benchmark does not spend its time on the stages around it.
func (w *stopwatch) many(name string, f func(i uint64)) {
	for i := 0; name == w.op && i < 1000 && w.done < w.b.N; i++ {
		w.run(name, f)
	}
}

// one is run for one operation.
func (w *stopwatch) one(name string, f func()) {
	if name == w.op {
		w.time(1, f)
	} else {
		f()
	}
}

func benchmarkOp(b *testing.B, o ops, op string, held int) {
	w := &stopwatch{b: b, op: op, o: o, batch: min(held, 256)}
	next, oldest := uint64(1), uint64(1)
	o.timed(false)
	for range held {
		o.enqueue(next)
		next++
	}
	b.ResetTimer()
	for w.done < b.N {
		w.run("Enqueue", func(uint64) { o.enqueue(next); next++ })
		// A build names the package of the bundle before it, so these two
		// alternate.
		w.run("Submit", func(i uint64) {
			w.one("Dequeue", o.dequeue)
			o.markSubmitted(packageOf(oldest + i))
		})
		var own []jamq.PackageHash
		for i := range w.batch {
			own = append(own, packageOf(oldest+uint64(i)))
		}
		w.all("GuaranteeOwn", func() { o.guaranteed(own) })
		w.many("TimeoutsNothingDue", func(uint64) { o.timeouts() })
		w.many("Stats", func(uint64) { o.stats() })
		w.all("Accumulated", func() { o.accumulated(own) })
		w.all("Finalized", func() { o.finalized(own) })
		oldest += uint64(w.batch)
	}
	b.ReportMetric(float64(w.took.Nanoseconds())/float64(w.done), "ns/op")
}

// BenchmarkForeignBlock feeds a queue of 100,000 bundles, of which 341 are submitted, full blocks
// of others' reports.
func BenchmarkForeignBlock(b *testing.B) {
	cfg := bundlequeue.DefaultConfig(jamq.Full())
	cfg.MaxQueueDepth = 100_000
	q, err := bundlequeue.New(cfg, jamq.Block{Hash: jamq.HeaderHash{1}})
	if err != nil {
		b.Fatal(err)
	}
	now := jamq.CommonEra()
	for q.CanEnqueue() {
		must(q.Step(now, bundlequeue.Enqueue{Number: q.Next()}))
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
