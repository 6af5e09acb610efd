package bundlequeue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
	"github.com/jamq/jamq/jamtest"
)

// recovery is a builder whose bundles come at a steady pace, and what it measured.
type recovery struct {
	chain    *jamtest.Chain
	queue    *bundlequeue.Queue[string]
	clock    jamq.SlotClock
	now      time.Time
	work     []bundlequeue.Effect
	contexts map[jamq.PackageHash]jamq.RefineContext
	enqueued map[uint64]time.Time
	took     []time.Duration // from enqueue to accumulation
	executed map[string]int  // on the finalized chain
	told     bool
	fresh    bool // takes the newest anchor that there is
}

// policies are the ways to decide when a package is replaced.
var policies = []struct {
	name   string
	told   bool
	change func(*bundlequeue.Config)
}{
	// Two sends are as many as the window of an anchor six blocks old has blocks; more would only put the time-out off.
	{"wall clock, 54 s", true, func(c *bundlequeue.Config) { c.MaxSubmitRetries = 1 }},
	{"chain, table", false, func(*bundlequeue.Config) {}},
	{"chain, anchor.Best", false, func(c *bundlequeue.Config) { c.Anchors = bundlequeue.AdaptiveAnchor }},
}

func newRecovery(loss, skip, lastMoment float64, byClock bool, change func(*bundlequeue.Config)) (*recovery, error) {
	chainConfig := jamtest.DefaultConfig(jamq.Tiny(), 7)
	chainConfig.LossProbability, chainConfig.SkipProbability = loss, skip
	chainConfig.LastMomentProbability = lastMoment
	chainConfig.ReportLatency = [2]jamq.Slot{1, 4}
	chainConfig.AvailabilityLatency = [2]jamq.Slot{1, 2}
	chain, err := jamtest.New(chainConfig)
	if err != nil {
		return nil, err
	}
	cfg := bundlequeue.DefaultConfig(chainConfig.Spec)
	cfg.MaxQueueDepth, cfg.MaxVersionRetries = 1000, 100
	change(&cfg)
	queue, err := bundlequeue.New[string](cfg, chain.Best())
	if byClock {
		var clock *told.Evidence
		if clock, err = told.NewEvidence(cfg.Spec, told.DefaultConfig(cfg.Spec)); err == nil {
			queue, err = bundlequeue.NewWith[string](cfg, clock)
		}
	}
	if err != nil {
		return nil, err
	}
	r := &recovery{
		chain: chain, queue: queue, clock: jamq.NewSlotClock(chainConfig.Spec), told: byClock,
		contexts: make(map[jamq.PackageHash]jamq.RefineContext), enqueued: make(map[uint64]time.Time), executed: make(map[string]int),
	}
	r.now = r.clock.Start(chain.Slot())
	for range 10 { // until anchors of all ages exist
		if err := r.slot(false); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *recovery) step(ev bundlequeue.Event) error {
	effects, err := r.queue.Step(r.now, ev)
	r.work = append(r.work, effects...)
	return err
}

// slot plays one slot, with or without a new bundle.
func (r *recovery) slot(enqueue bool) error {
	if enqueue {
		n := r.queue.Next()
		r.enqueued[n] = r.now
		if err := r.step(bundlequeue.Enqueue[string]{Number: n, Bundle: fmt.Sprint(n)}); err != nil {
			return err
		}
	}
	if err := r.carry(); err != nil {
		return err
	}
	u := r.chain.Advance()
	r.now = r.clock.Start(u.Slot)
	for _, b := range u.Imported {
		if err := r.feed(b, u.Best); err != nil {
			return err
		}
	}
	for _, p := range u.Final {
		r.executed[string(p.Payload)]++
		if r.told {
			if err := r.step(bundlequeue.Told{Package: p.Hash, State: bundlequeue.Finalized}); err != nil {
				return err
			}
		}
	}
	if !r.told {
		if err := r.step(bundlequeue.FinalizedBlock{Hash: u.Finalized}); err != nil {
			return err
		}
	}
	if err := r.step(bundlequeue.Tick{}); err != nil {
		return err
	}
	return r.carry()
}

// feed shows a block to the queue, or tells what is in it.
func (r *recovery) feed(b jamq.Block, best jamq.HeaderHash) error {
	if !r.told {
		return r.step(bundlequeue.Imported{Block: b, Best: best})
	}
	for _, report := range b.Reported {
		if err := r.step(bundlequeue.Told{Package: report.Package, State: bundlequeue.Guaranteed}); err != nil {
			return err
		}
	}
	for _, pkg := range b.Accumulated {
		if err := r.step(bundlequeue.Told{Package: pkg, State: bundlequeue.Accumulated}); err != nil {
			return err
		}
	}
	return nil
}

func (r *recovery) carry() error {
	for len(r.work) > 0 {
		e := r.work[0]
		r.work = r.work[1:]
		var err error
		switch e := e.(type) {
		case bundlequeue.Build[string]:
			err = r.build(e)
		case bundlequeue.Send[string]:
			p := jamtest.Package{Hash: e.Package, Context: r.contexts[e.Package], Payload: []byte(e.Bundle)}
			failure := r.chain.Submit(p, e.Core, e.Attempt)
			err = r.step(bundlequeue.Sent{Ticket: e.Ticket, OK: failure == nil})
		case bundlequeue.Changed:
			if began, waits := r.enqueued[e.Number]; waits && e.To == bundlequeue.Accumulated {
				r.took = append(r.took, r.now.Sub(began))
				delete(r.enqueued, e.Number)
			}
		}
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			return fmt.Errorf("%v: %w", e, err)
		}
	}
	return nil
}

func (r *recovery) build(e bundlequeue.Build[string]) error {
	recent, offset := r.chain.Anchors(), e.Offset
	if r.fresh {
		offset = 1
	}
	context, err := anchor.PickOffset(recent, min(offset, len(recent)-1), r.chain.LookupAnchor(), e.Prerequisites)
	if err != nil {
		return r.step(bundlequeue.BuildFailed{Ticket: e.Ticket})
	}
	hash := jamq.PackageHash(blake2b.Sum256(fmt.Append(nil, e.Number, e.Version, context)))
	r.contexts[hash] = context
	return r.step(bundlequeue.Built[string]{Ticket: e.Ticket, Package: hash, Context: context, Bundle: e.Bundle})
}

// twice returns how many bundles too many the finalized chain has executed.
func (r *recovery) twice() int {
	twice := 0
	for _, n := range r.executed {
		twice += n - 1
	}
	return twice
}

// TestClockExecutesTwice shows what the wall clock risks with fresh anchors where a fifth of the slots is skipped and a tenth of the
// guarantors wait for the last moment. Chain evidence on the same chain executes nothing twice.
func TestClockExecutesTwice(t *testing.T) {
	for i, policy := range policies[:2] {
		r, err := newRecovery(0.1, 0.2, 0.1, policy.told, policy.change)
		require.NoError(t, err)
		r.fresh = r.told
		for slot := range 40_000 {
			require.NoError(t, r.slot(slot%40 == 0))
		}
		fmt.Printf("%-20s last moment 10%%, skipped 20%%: %d of %d bundles executed twice\n", policy.name, r.twice(), len(r.executed))
		if i == 0 {
			require.Positive(t, r.twice())
		} else {
			require.Zero(t, r.twice())
		}
	}
}

// TestRecoveryTime prints how long bundles take from enqueue to accumulation when packages are lost, and how many were executed twice.
// ARCHITECTURE.md shows the table. With chain evidence nothing is ever executed twice; the clock is slower, and under skipped slots it
// is not even safe.
func TestRecoveryTime(t *testing.T) {
	const slots, pace = 40_000, 40
	fmt.Printf("%-20s %6s %8s %10s %10s %8s %8s\n", "policy", "loss", "skipped", "mean", "p99", "bundles", "twice")
	for _, skip := range []float64{0, 0.2} {
		for _, loss := range []float64{0.01, 0.1, 0.3} {
			var means []time.Duration
			for _, policy := range policies {
				r, err := newRecovery(loss, skip, 0, policy.told, policy.change)
				require.NoError(t, err)
				for slot := range slots {
					require.NoError(t, r.slot(slot%pace == 0 && slot < slots-2000))
				}
				twice := r.twice()
				slices.Sort(r.took)
				mean := time.Duration(0)
				for _, d := range r.took {
					mean += d / time.Duration(len(r.took))
				}
				means = append(means, mean)
				fmt.Printf("%-20s %5.0f%% %7.0f%% %10.1fs %9.0fs %8d %8d\n",
					policy.name, 100*loss, 100*skip, mean.Seconds(), r.took[len(r.took)*99/100].Seconds(), len(r.took), twice)
				if !r.told {
					require.Zero(t, twice)
					require.Empty(t, r.enqueued, "every bundle was accumulated")
				}
			}
			require.LessOrEqual(t, means[1], means[0], "evidence is not slower than the clock")
		}
	}
}
