package jip2

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/service"
)

// queueSink is a driver without a clock: it feeds a queue what the feed delivers, at the chain's
// own time, and carries effects out at once.
type queueSink struct {
	*follower
	queue  *bundlequeue.Queue
	clock  jamq.SlotClock
	raw    map[jamq.PackageHash]Submission
	again  []string
	errors int
}

func (s *queueSink) step(ctx context.Context, ev bundlequeue.Event) error {
	var now time.Time
	s.chain.View(func(c *jamtest.Chain) { now = s.clock.Start(c.Slot()) })
	effects, err := s.queue.Step(now, ev)
	if err != nil {
		return err
	}
	for _, e := range effects {
		switch e := e.(type) {
		case bundlequeue.Build:
			err = s.build(ctx, e)
		case bundlequeue.Send:
			failed := s.feed.Submit(ctx, s.raw[e.Package])
			if failed != nil {
				s.errors++
			}
			err = s.step(ctx, bundlequeue.Sent{Ticket: e.Ticket, OK: failed == nil})
		case bundlequeue.Failed:
			s.again = append(s.again, string(e.Bundle))
		}
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			return err
		}
	}
	return nil
}

func (s *queueSink) build(ctx context.Context, e bundlequeue.Build) error {
	refine, err := s.feed.Context(ctx, e.Anchor.Hash, e.Prerequisites)
	if err != nil {
		s.errors++
		return s.step(ctx, bundlequeue.BuildFailed{Ticket: e.Ticket})
	}
	raw, hash := encode(s.t, refine, e.Number, string(e.Bundle))
	s.raw[hash] = Submission{Core: e.Core, Hash: hash, Context: refine, Package: raw}
	err = s.step(ctx, bundlequeue.Built{Ticket: e.Ticket, Package: hash, Context: refine, Bundle: e.Bundle})
	if errors.Is(err, bundlequeue.ErrInadmissible) {
		return s.step(ctx, bundlequeue.BuildFailed{Ticket: e.Ticket})
	}
	return err
}

func (s *queueSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	return s.step(ctx, bundlequeue.Imported{Block: b, Best: best})
}

func (s *queueSink) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return s.step(ctx, bundlequeue.FinalizedBlock{Hash: hash})
}

// restart opens another feed for the same queue, as a builder does that was killed: it knows what
// the queue knows, and nothing else.
func (s *queueSink) restart(ctx context.Context) error {
	final := s.queue.Finalized()
	feed, err := OpenFeed(ctx, s.client, FeedConfig{Service: marks, Root: jamq.Block{Hash: final.Hash, Slot: final.Slot}, Best: s.queue.Best().Hash})
	if err != nil {
		return err
	}
	upTo := func(p anchor.Point) jamq.Slot {
		if p.IsZero() || p.Height > final.Height {
			return 0
		}
		return p.Slot
	}
	for _, info := range s.queue.Infos() {
		for _, v := range info.Versions {
			if info.State == bundlequeue.Finalized || v.Attempts == 0 {
				continue
			}
			feed.Restore(Known{
				Package: v.Package, Core: info.Core, Reported: upTo(v.Reported), Available: upTo(v.Available), Accumulated: upTo(v.Accumulated),
				Context: jamq.RefineContext{Anchor: v.Anchor.Hash, LookupAnchorSlot: v.LookupAnchorSlot, Prerequisites: v.Prerequisites},
			})
		}
	}
	s.feed = feed
	return nil
}

// TestQueueOverJIP2 plays whole queues against chains on which everything goes wrong, seen through
// a node that breaks, forgets old states, or never gets beyond Reported; half of the builders are
// killed now and then. The oracle reads the chain alone: everything is executed once, and in order.
func TestQueueOverJIP2(t *testing.T) {
	first := repeat.First()
	for seed := first; seed < first+16; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { bubble.Run(t, func(t *testing.T) { playQueue(t, seed) }) })
	}
}

func playQueue(t *testing.T, seed uint64) {
	const bundles, patience = 15, 3000
	oracle := jamtest.NewOracle(9, func(p []byte) jamtest.Execution {
		return jamtest.Execution{Txs: []string{string(p[service.HeaderSize:])}}
	})
	f := follow(t, func(cfg *jip2server.Config) {
		c := &cfg.Chain
		c.Seed = seed
		c.LossProbability, c.SkipProbability = float64(seed%4)/8, float64(seed%3)/8
		c.UnavailableProbability, c.VerdictProbability = float64(seed%5)/20, float64(seed%2)/50
		c.LastMomentProbability, c.ForeignLoad = float64(seed%3)/6, float64(seed%4)/8
		c.ReportLatency, c.AvailabilityLatency = [2]jamq.Slot{1, 3}, [2]jamq.Slot{1, 4}
		c.FinalityLag, c.MaxForkDepth, c.ForkProbability = 4, 3, float64(seed%3)/8
		cfg.KeepStates, cfg.StuckAtReported = []int{0, 2, 1, 5}[seed%4], seed%8 == 5
		cfg.Observe = oracle.Observe
	})
	random := rand.New(rand.NewPCG(seed, 3))
	queue, err := bundlequeue.New(bundlequeue.DefaultConfig(f.feed.Spec()), f.feed.Root())
	require.NoError(t, err)
	s := &queueSink{follower: f, queue: queue, clock: jamq.NewSlotClock(f.feed.Spec()), raw: map[jamq.PackageHash]Submission{}}
	var waiting []string
	for i := range bundles {
		waiting = append(waiting, fmt.Sprint("bundle ", i))
	}
	oracle.Expect(waiting...)
	for tick := 0; ; tick++ {
		time.Sleep(f.feed.spec.SlotDuration) // the client notices meanwhile that a connection broke
		f.step(1 + random.IntN(2)*random.IntN(4))
		if random.IntN(12) == 0 {
			f.chain.Cut()
		}
		if seed%2 == 1 && random.IntN(8) == 0 {
			if err := s.restart(t.Context()); !errors.Is(err, ErrDisconnected) {
				require.NoError(t, err)
			}
		}
		waiting, s.again = append(s.again, waiting...), nil
		for len(waiting) > 0 && queue.CanEnqueue() {
			require.NoError(t, s.step(t.Context(), bundlequeue.Enqueue{Number: queue.Stats().Next, Bundle: []byte(waiting[0])}))
			waiting = waiting[1:]
		}
		require.NoError(t, s.step(t.Context(), bundlequeue.Tick{}))
		if err := f.feed.catchUp(t.Context(), s); !errors.Is(err, ErrDisconnected) {
			require.NoError(t, err)
		}
		v := oracle.Check()
		require.Empty(t, v.Twice, "%v", &v)
		if len(v.Executed) == bundles && queue.Pending() == 0 {
			require.True(t, v.OK(), "%v", &v)
			break
		}
		require.Less(t, tick, patience, "%v; %+v", &v, queue.Stats())
	}
}
