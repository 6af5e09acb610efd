package bundlequeue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/jamtest"
)

// recovery is a builder that gets bundles at a constant rate, with its
// measurements.
type recovery struct {
	chain    *jamtest.Chain
	queue    *bundlequeue.Queue
	clock    jamq.SlotClock
	now      time.Time
	work     []bundlequeue.Effect
	contexts map[jamq.PackageHash]jamq.RefineContext
	enqueued map[uint64]time.Time
	took     []time.Duration // from enqueue to accumulation
	executed map[string]int  // on the finalized chain
	told     *told.Feed      // nil: the queue sees the blocks
	fresh    bool            // takes the newest anchor that there is
}

// policies are the ways to decide when a package is replaced.
var policies = []struct {
	name   string
	told   bool
	change func(*bundlequeue.Config)
}{
	// Two sends are as many as the window of an anchor six blocks old has blocks; more would only
	// put the time-out off.
	{"clock, 18 s a block", true, func(c *bundlequeue.Config) { c.MaxSubmitRetries = 1 }},
	{"chain", false, func(*bundlequeue.Config) {}},
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
	root := chain.Best()
	var feed *told.Feed
	if byClock {
		if feed, err = told.NewFeed(cfg.Spec, told.DefaultConfig(cfg.Spec)); err != nil {
			return nil, err
		}
		root = feed.Root()
	}
	queue, err := bundlequeue.New(cfg, root)
	if err != nil {
		return nil, err
	}
	r := &recovery{
		chain: chain, queue: queue, clock: jamq.NewSlotClock(chainConfig.Spec), told: feed,
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
		if err := r.enqueue(); err != nil {
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
		if r.told != nil {
			r.told.Tell(p.Hash, bundlequeue.Finalized)
		}
	}
	if r.told == nil {
		if err := r.step(bundlequeue.FinalizedBlock{Hash: u.Finalized}); err != nil {
			return err
		}
	} else {
		for _, ev := range r.told.Advance(r.now) {
			if err := r.step(ev); err != nil {
				return err
			}
		}
	}
	if err := r.step(bundlequeue.Tick{}); err != nil {
		return err
	}
	return r.carry()
}

// enqueue adds a bundle.
func (r *recovery) enqueue() error {
	n := r.queue.Next()
	r.enqueued[n] = r.now
	return r.step(bundlequeue.Enqueue{Number: n, Bundle: []byte(fmt.Sprint(n))})
}

// feed shows a block to the queue, or tells what is in it.
func (r *recovery) feed(b jamq.Block, best jamq.HeaderHash) error {
	if r.told == nil {
		return r.step(bundlequeue.Imported{Block: b, Best: best})
	}
	for _, report := range b.Reported {
		r.told.Tell(report.Package, bundlequeue.Guaranteed)
	}
	for _, pkg := range b.Accumulated {
		r.told.Tell(pkg, bundlequeue.Accumulated)
	}
	return nil
}

func (r *recovery) carry() error {
	for len(r.work) > 0 {
		e := r.work[0]
		r.work = r.work[1:]
		var err error
		switch e := e.(type) {
		case bundlequeue.Build:
			err = r.build(e)
		case bundlequeue.Send:
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

func (r *recovery) build(e bundlequeue.Build) error {
	recent, offset := r.chain.Anchors(), e.Offset
	if r.fresh {
		offset = 1
	}
	context, err := anchor.Pick(recent, recent[max(0, len(recent)-1-offset)].Hash, r.chain.LookupAnchor(), e.Prerequisites)
	if err != nil {
		return r.step(bundlequeue.BuildFailed{Ticket: e.Ticket})
	}
	hash := jamq.PackageHash(blake2b.Sum256(fmt.Append(nil, e.Number, e.Version, context)))
	r.contexts[hash] = context
	if r.told != nil { // the queue knows the blocks of the clock
		context.Anchor, context.LookupAnchorSlot = e.Anchor.Hash, r.queue.Finalized().Slot
		r.told.Sent(jamq.Report{Hash: common.Hash(hash), Package: hash, Core: e.Core, Anchor: e.Anchor.Hash, Prerequisites: e.Prerequisites})
	}
	return r.step(bundlequeue.Built{Ticket: e.Ticket, Package: hash, Context: context, Bundle: e.Bundle})
}

// twice returns how many bundles too many the finalized chain has executed.
func (r *recovery) twice() int {
	twice := 0
	for _, n := range r.executed {
		twice += n - 1
	}
	return twice
}

// TestClockExecutesTwice shows the risk of the clock with new anchors, if
// a fifth of the slots is skipped and a tenth of the guarantors wait until the
// last moment. With evidence from blocks on the same chain, nothing is executed
// twice.
func TestClockExecutesTwice(t *testing.T) {
	for i, policy := range policies {
		r, err := newRecovery(0.1, 0.2, 0.1, policy.told, policy.change)
		require.NoError(t, err)
		r.fresh = policy.told
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

// measured is the result of one policy at one rate of loss.
type measured struct {
	mean, p99 time.Duration
	bundles   int
	twice     int
}

// measure plays a chain on which a bundle comes every pace slots.
func measure(t *testing.T, loss, skip float64, i int) measured {
	t.Helper()
	const pace, rest = 40, 2000 // slots between two bundles, and after the last one
	slots := repeat.Times(80, 950)*pace + rest
	r, err := newRecovery(loss, skip, 0, policies[i].told, policies[i].change)
	require.NoError(t, err)
	for slot := range slots {
		require.NoError(t, r.slot(slot%pace == 0 && slot < slots-rest))
	}
	slices.Sort(r.took)
	m := measured{p99: r.took[len(r.took)*99/100], bundles: len(r.took), twice: r.twice()}
	for _, d := range r.took {
		m.mean += d / time.Duration(len(r.took))
	}
	if r.told == nil {
		require.Zero(t, m.twice)
		require.Empty(t, r.enqueued, "every bundle was accumulated")
	}
	return m
}

// TestRecoveryTime prints how long bundles take from enqueue to accumulation if packages are lost,
// how much of that the losses cost, and how many bundles were executed twice. docs/jam-safety.md
// shows the table of the deep stage. With chain evidence nothing is ever executed twice. The clock
// is slower, and if slots are skipped it is not even safe.
func TestRecoveryTime(t *testing.T) {
	t.Parallel()
	fmt.Printf("%-20s %6s %8s %10s %10s %12s %8s %8s\n", "policy", "loss", "skipped", "mean", "p99", "beyond floor", "bundles", "twice")
	for _, skip := range []float64{0, 0.2} {
		var floor [2]time.Duration
		for _, loss := range []float64{0, 0.01, 0.1, 0.3} {
			var all [2]measured
			for i, policy := range policies {
				m := measure(t, loss, skip, i)
				all[i] = m
				if loss == 0 {
					floor[i] = m.mean
				}
				fmt.Printf("%-20s %5.0f%% %7.0f%% %9.1fs %9.0fs %11.1fs %8d %8d\n",
					policy.name, 100*loss, 100*skip, m.mean.Seconds(), m.p99.Seconds(), (m.mean - floor[i]).Seconds(), m.bundles, m.twice)
			}
			if loss == 0.1 {
				require.LessOrEqual(t, all[1].mean-floor[1], 10*time.Second, "the mean delay that losses cost")
			}
		}
	}
}

// TestThroughputUnderLoss prints how many bundles a slot are accumulated while the queue is always
// full. Lost packages hold up the bundles after them, so it falls faster than the share of packages
// that arrive.
func TestThroughputUnderLoss(t *testing.T) {
	const slots, least = 6000, 0.1
	fmt.Printf("%-20s %6s %18s\n", "policy", "loss", "bundles per slot")
	for _, policy := range policies[1:] {
		for _, loss := range []float64{0, 0.1, 0.3} {
			r, err := newRecovery(loss, 0, 0, false, func(c *bundlequeue.Config) {
				policy.change(c)
				c.MaxQueueDepth = 12
			})
			require.NoError(t, err)
			for range slots {
				for r.queue.Stats().Count[bundlequeue.Queued] < 11 {
					require.NoError(t, r.enqueue())
				}
				require.NoError(t, r.slot(false))
			}
			rate := float64(len(r.took)) / slots
			fmt.Printf("%-20s %5.0f%% %18.2f\n", policy.name, 100*loss, rate)
			require.Greater(t, rate, least)
			require.Zero(t, r.twice())
			require.Zero(t, r.queue.Stats().Totals.Entered(bundlequeue.FailedState))
		}
	}
}
