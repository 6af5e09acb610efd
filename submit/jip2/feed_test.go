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
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/service"
)

// marks is the service of the simulated node.
var marks = Service{
	ID:    9,
	Key:   service.MarkKey,
	Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
}

// viewSink takes blocks as a queue does, and judges by them.
type viewSink struct {
	view    *chainview.View
	imports int
	reports []jamq.PackageHash // those that blocks have reported, in order
	refuse  error
	room    int // if positive: how many blocks it takes before some must be final
}

func (s *viewSink) Import(_ context.Context, b jamq.Block, best jamq.HeaderHash) error {
	s.imports++
	if s.refuse != nil {
		return s.refuse
	}
	if s.room > 0 && s.imports > s.room {
		return chainview.ErrFull
	}
	for _, r := range b.Reported {
		s.reports = append(s.reports, r.Package)
	}
	return s.view.ImportBest(&b, best)
}

func (s *viewSink) Finalize(_ context.Context, hash jamq.HeaderHash) error {
	if s.room > 0 {
		s.imports = 0
	}
	return s.view.Finalize(hash)
}

// follower is a feed with its sink, driven by hand.
type follower struct {
	*nodeUnderTest
	client *Client
	feed   *Feed
	sink   *viewSink
	sent   map[jamq.PackageHash]jamq.RefineContext
	dead   map[jamq.PackageHash]anchor.Point
}

func follow(t *testing.T, change func(*jip2server.Config)) *follower {
	t.Helper()
	n := startNode(t, change)
	f := &follower{nodeUnderTest: n, client: n.client(nil), sent: map[jamq.PackageHash]jamq.RefineContext{}, dead: map[jamq.PackageHash]anchor.Point{}}
	var err error
	f.feed, err = OpenFeed(t.Context(), f.client, FeedConfig{Service: marks})
	require.NoError(t, err)
	f.sink = newViewSink(t, f.feed)
	return f
}

func newViewSink(t *testing.T, feed *Feed) *viewSink {
	t.Helper()
	spec := feed.Spec()
	view, err := chainview.New(&spec, feed.Root())
	require.NoError(t, err)
	return &viewSink{view: view}
}

// catchUp lets the feed deliver; a connection that broke is tried again.
func (f *follower) catchUp() {
	f.t.Helper()
	for {
		err := f.feed.catchUp(f.t.Context(), f.sink)
		if !errors.Is(err, ErrDisconnected) {
			require.NoError(f.t, err)
			return
		}
	}
}

// send makes a package at a block of the best chain, puts it under watch on both sides and gives it
// to a guarantor.
func (f *follower) send(offset int, core jamq.CoreIndex, content string, needs ...jamq.PackageHash) jamq.PackageHash {
	f.t.Helper()
	best := f.sink.view.Best()
	at, ok := f.sink.view.AtHeight(best.Height - uint64(offset))
	require.True(f.t, ok)
	var context jamq.RefineContext
	var err error
	for {
		if context, err = f.feed.Context(f.t.Context(), at.Hash, needs); !errors.Is(err, ErrDisconnected) {
			break
		}
	}
	require.NoError(f.t, err)
	raw, hash := encode(f.t, context, f.next(), content)
	_, err = f.sink.view.Watch(hash, chainview.Package{Anchor: context.Anchor, LookupAnchorSlot: context.LookupAnchorSlot, Prerequisites: context.Prerequisites})
	require.NoError(f.t, err)
	f.sent[hash] = context
	err = f.feed.Submit(f.t.Context(), Submission{Core: core, Hash: hash, Context: context, Package: raw})
	if !errors.Is(err, ErrDisconnected) {
		require.NoError(f.t, err)
	}
	return hash
}

func (f *follower) status(pkg jamq.PackageHash) chainview.Status {
	f.t.Helper()
	s, err := f.sink.view.Status(pkg)
	require.NoError(f.t, err)
	return s
}

// check compares the view with the chain. exact means that the node answers
// everything, so that the view must not be behind either.
func (f *follower) check(exact bool) {
	f.t.Helper()
	f.chain.View(func(c *jamtest.Chain) {
		require.Equal(f.t, c.Best().Hash, f.sink.view.Best().Hash)
		require.Equal(f.t, c.Height(), f.sink.view.Best().Height, "no block is missing")
		require.Equal(f.t, c.Finalized().Hash, f.sink.view.Finalized().Hash)
		for pkg, context := range f.sent {
			truth, err := c.Status(pkg, c.Best().Hash)
			require.NoError(f.t, err)
			have := f.status(pkg)
			text := fmt.Sprintf("%s: chain %v, view %+v", pkg.Short(), truth, have)
			mark, err := c.Value(marks.ID, c.Best().Hash, service.MarkKey(pkg))
			require.NoError(f.t, err)
			done := mark != nil // the service ignores a block whose number another one took
			require.Equal(f.t, done, !have.Accumulated.IsZero(), text)
			if truth.Stage == jamtest.OnCore || truth.Stage == jamtest.Ready || done {
				require.False(f.t, have.Reported.IsZero(), text)
			}
			if at, was := f.dead[pkg]; was && done {
				require.False(f.t, c.Contains(c.Best().Hash, at.Hash), "dead since %v, and then accumulated on that chain: %s", at, text)
			}
			if have.Dead != anchor.Alive {
				f.dead[pkg] = f.sink.view.Best()
			}
			from, onChain := c.Locate(context.Anchor)
			expired := onChain && truth.Stage == jamtest.Unreported && c.Height() >= from.Height+uint64(f.feed.spec.RecentHistory)
			lost := truth.Stage == jamtest.TimedOut || truth.Stage == jamtest.Cleared || truth.Stage == jamtest.Expired
			if exact && (expired || lost) {
				require.NotEqual(f.t, anchor.Alive, have.Dead, text)
			}
		}
	})
}

// TestFeedAgainstTheChain runs chains with all faults, some of Gray Paper 0.8.0, with connections
// that break, heads that are missed, states that are pruned and statuses that
// are stuck. The view that the statuses feed must reach the state of the chain,
// and must never consider a live package dead.
func TestFeedAgainstTheChain(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 2))
				stuck, keep := seed%4 == 3, []int{0, 3, 1, 0}[seed%4]
				f := follow(t, func(cfg *jip2server.Config) {
					c := &cfg.Chain
					c.Seed = seed
					c.LossProbability, c.SkipProbability, c.UnavailableProbability, c.VerdictProbability = 0.2, 0.1, 0.1, 0.02
					c.LastMomentProbability, c.ForeignLoad = 0.2, 0.3
					c.AvailabilityLatency = [2]jamq.Slot{1, 4}
					c.FinalityLag, c.MaxForkDepth, c.ForkProbability = 4, 3, 0.15
					if seed >= 8 { // Gray Paper 0.8.0
						c.Spec.Cores, c.Spec.Validators, c.SetSizes = 4, 12, []int{12, 6, 9}
					}
					cfg.KeepStates, cfg.StuckAtReported = keep, stuck
				})
				f.step(4)
				f.catchUp()
				var last jamq.PackageHash
				for i := range 100 {
					if offset := 1 + random.IntN(6); f.sink.view.Best().Height > uint64(offset) && random.IntN(2) == 0 {
						var needs []jamq.PackageHash
						if !last.IsZero() && random.IntN(3) == 0 {
							needs = append(needs, last)
						}
						last = f.send(offset, jamq.CoreIndex(random.IntN(2)), fmt.Sprint("bundle ", i), needs...)
					}
					f.step(1 + random.IntN(3)*random.IntN(4)) // now and then a gap
					if random.IntN(5) == 0 {
						f.chain.Cut()
					}
					f.catchUp()
					f.check(!stuck && keep == 0)
				}
				for range 100 { // an open fork can hold finality up
					f.step(10)
					f.catchUp()
					f.check(false)
					if len(f.feed.watched) == 0 {
						break
					}
				}
				accumulated := 0
				for pkg := range f.sent {
					if !f.status(pkg).Accumulated.IsZero() {
						accumulated++
					}
				}
				require.Greater(t, accumulated, 3)
				require.Greater(t, len(f.dead), 3)
				require.Zero(t, len(f.feed.watched), "all is final")
				require.LessOrEqual(t, f.feed.tree.Len(), 4*f.feed.spec.RecentHistory, "old blocks are forgotten")
			})
		})
	}
}

// A node never answers Ready: a package that stays on its core beyond the
// time-out waits for the service and is not dead.
func TestStuckStatusIsNoEvidence(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, func(cfg *jip2server.Config) {
			cfg.StuckAtReported = true
			cfg.Chain.AvailabilityLatency = [2]jamq.Slot{4, 4}
		})
		f.step(4)
		f.catchUp()
		pkg := f.send(1, 0, "slow")
		for range 5 {
			f.step(1)
			f.catchUp()
			require.Equal(t, anchor.Alive, f.status(pkg).Dead)
		}
		require.False(t, f.status(pkg).Accumulated.IsZero())
	})
}

// A status that cannot be holds the feed up, as all does that the node fails in; it does not end
// it.
func TestStatusOnNoCore(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(4)
		f.catchUp()
		pkg := f.send(1, 1, "on the second core")
		f.feed.spec.Cores = 1
		f.step(1)
		err := f.feed.catchUp(t.Context(), f.sink)
		require.ErrorIs(t, err, ErrMalformed)
		require.NotErrorIs(t, err, feed.ErrSink)
		f.feed.spec.Cores = 2
		f.step(3)
		f.catchUp()
		require.False(t, f.status(pkg).Accumulated.IsZero())
	})
}

func TestFeedErrors(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, func(cfg *jip2server.Config) { cfg.Missing = []string{"workPackageStatus"} })
		_, err := OpenFeed(t.Context(), n.client(nil), FeedConfig{Service: marks})
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, "workPackageStatus")

		n = startNode(t, func(cfg *jip2server.Config) { cfg.Missing, cfg.UnknownCode = []string{"workPackageStatus"}, 0 })
		_, err = OpenFeed(t.Context(), n.client(nil), FeedConfig{Service: marks})
		require.ErrorIs(t, err, ErrUnsupported, "some say it with code 0")

		f := follow(t, nil)
		f.step(3)
		refused := errors.New("full")
		f.sink.refuse = refused
		require.ErrorIs(t, f.feed.Follow(t.Context(), f.sink), refused)
		f.sink.refuse = nil
		f.catchUp()
		_, err = f.feed.Context(t.Context(), jamq.HeaderHash{1}, nil)
		require.ErrorIs(t, err, ErrHistoryLost)
		require.Error(t, f.feed.Submit(t.Context(), Submission{Core: 2}))
		require.Zero(t, len(f.feed.watched), "what is refused changes nothing")
		f.client.Close()
		require.ErrorIs(t, f.feed.Follow(t.Context(), f.sink), ErrClosed)
	})
}

// A node that comes back with another chain is not followed. That is certain 16 slots
// after its final block has excluded ours, and Follow ends.
func TestAnotherChain(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(30)
		f.catchUp()
		other := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 8))
		f.down()
		var err error
		f.chain, err = jip2server.New(other)
		require.NoError(t, err)
		f.step(20)
		f.up()
		for err = ErrDisconnected; errors.Is(err, ErrDisconnected); {
			err = f.feed.catchUp(t.Context(), f.sink)
		}
		require.ErrorContains(t, err, "it excludes the finalized block")
		f.step(40)
		began := time.Now()
		require.ErrorIs(t, f.feed.Follow(t.Context(), f.sink), ErrHistoryLost)
		require.Greater(t, time.Since(began), 16*f.feed.spec.SlotDuration)
		require.LessOrEqual(t, time.Since(began), 20*f.feed.spec.SlotDuration)
	})
}

// A node that came back with another chain, whose first block is younger than ours, is said to have
// one. After 16 slots, in which a slow node could have got the blocks, the feed ends.
func TestAnotherYoungerChain(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(3)
		f.catchUp()
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 8)
		cfg.StartSlot = 1000
		f.down()
		var err error
		f.chain, err = jip2server.New(jip2server.DefaultConfig(cfg))
		require.NoError(t, err)
		f.step(2)
		f.up()
		for err = ErrDisconnected; errors.Is(err, ErrDisconnected); {
			err = f.feed.catchUp(t.Context(), f.sink)
		}
		require.ErrorContains(t, err, "another chain")
		require.NotErrorIs(t, err, ErrHistoryLost)
		began := time.Now()
		require.ErrorIs(t, f.feed.Follow(t.Context(), f.sink), ErrHistoryLost)
		require.LessOrEqual(t, time.Since(began), 20*f.feed.spec.SlotDuration)
	})
}

// The feed continues after the last block of a queue, however old, and watches
// the packages that the queue had sent.
func TestFeedFromAnOlderRoot(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(6)
		f.catchUp()
		root := f.feed.Root()
		pkg := f.send(1, 0, "sent before the restart")
		f.step(30)
		again, err := OpenFeed(t.Context(), f.client, FeedConfig{Service: marks, Root: root, MaxGap: 100})
		require.NoError(t, err)
		again.Watch(pkg, f.sent[pkg])
		spec := again.Spec()
		view, err := chainview.New(&spec, root)
		require.NoError(t, err)
		sink := &viewSink{view: view}
		require.NoError(t, again.catchUp(t.Context(), sink))
		require.Equal(t, uint64(36), view.Best().Height)
		require.Equal(t, 36, sink.imports)
		require.Zero(t, len(again.watched))
		short, err := OpenFeed(t.Context(), f.client, FeedConfig{Service: marks, Root: root, MaxGap: 10})
		require.NoError(t, err)
		require.ErrorIs(t, short.catchUp(t.Context(), sink), ErrHistoryLost)
	})
}

// A package that was accumulated in a gap, of which a node that forgets states cannot tell, is not
// taken for dead at any block of it, however long the gap: another fork may begin there.
func TestAccumulatedInAGap(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		for reported := range 4 {
			f := follow(t, func(c *jip2server.Config) { c.KeepStates, c.Chain.FinalityLag = 1, 500 })
			f.step(12)
			f.catchUp()
			pkg := f.send(1, 0, "before the gap")
			for range reported {
				f.step(1)
				f.catchUp()
			}
			from := f.sink.view.Best().Height
			f.step(60) // five epochs
			f.catchUp()
			require.False(t, f.status(pkg).Accumulated.IsZero())
			for height := f.sink.view.Best().Height; height >= from; height-- {
				at, ok := f.sink.view.AtHeight(height)
				require.True(t, ok)
				require.NoError(t, f.sink.view.SetBest(at.Hash))
				require.Equal(t, anchor.Alive, f.status(pkg).Dead, "%d blocks before the gap, at height %d", reported, height)
			}
		}
	})
}

// After a gap longer than the capacity of a queue the feed continues, because
// most of the gap is final.
func TestGapOfDays(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(12)
		f.catchUp()
		root := f.feed.Root()
		pkg := f.send(1, 0, "sent before the days")
		best := f.sink.view.Best()
		f.step(700)
		f.sink.room, f.sink.imports = 200, 0
		again, err := OpenFeed(t.Context(), f.client, FeedConfig{Service: marks, Root: root, Best: best.Hash})
		require.NoError(t, err)
		again.finalEvery = 100
		again.Watch(pkg, f.sent[pkg])
		require.NoError(t, again.catchUp(t.Context(), f.sink))
		f.chain.View(func(c *jamtest.Chain) {
			require.Equal(t, c.Best().Hash, f.sink.view.Best().Hash)
			require.Equal(t, c.Finalized().Hash, f.sink.view.Finalized().Hash)
		})
		require.False(t, f.status(pkg).Accumulated.IsZero(), "it was sent, and is not lost")
	})
}

// Finality stands still for longer than a queue can hold blocks. The feed waits, without an
// error of the sink that would end the host, and goes on when blocks become final again.
func TestFinalityStandsStill(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(12)
		f.catchUp()
		pkg := f.send(1, 0, "before finality stands still")
		finality := func(stopped bool) {
			f.chain.View(func(c *jamtest.Chain) {
				faults := c.Faults()
				faults.FinalityStopped = stopped
				require.NoError(t, c.SetFaults(faults))
			})
		}
		finality(true)
		f.sink.room, f.sink.imports = 50, 0
		for range 30 {
			f.step(3)
			if err := f.feed.catchUp(t.Context(), f.sink); err != nil {
				require.ErrorIs(t, err, chainview.ErrFull)
				require.NotErrorIs(t, err, feed.ErrSink)
			}
		}
		require.False(t, f.status(pkg).Accumulated.IsZero())
		best := f.sink.view.Best()
		f.step(1)
		require.ErrorIs(t, f.feed.catchUp(t.Context(), f.sink), chainview.ErrFull)
		require.Equal(t, best, f.sink.view.Best())

		finality(false)
		f.step(1)
		for f.feed.catchUp(t.Context(), f.sink) != nil {
			require.NotEqual(t, best, f.sink.view.Best(), "each attempt gets further")
			best = f.sink.view.Best()
		}
		f.chain.View(func(c *jamtest.Chain) {
			require.Equal(t, c.Best().Hash, f.sink.view.Best().Hash)
			require.Equal(t, c.Finalized().Hash, f.sink.view.Finalized().Hash)
		})
	})
}

// A long gap is closed over connections that never last long enough for all of it.
func TestLongGapOverShortConnections(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		calls := 0
		f := follow(t, func(c *jip2server.Config) {
			c.Fault = func(string) jip2server.Fault {
				calls++
				return jip2server.Fault{Cut: calls%40 == 0}
			}
		})
		f.step(6)
		f.catchUp()
		pkg := f.send(1, 0, "before the gap")
		f.step(100)
		for range 20 {
			if err := f.feed.catchUp(t.Context(), f.sink); err == nil {
				break
			} else {
				require.ErrorIs(t, err, ErrDisconnected)
			}
		}
		require.Equal(t, uint64(106), f.sink.view.Best().Height)
		require.False(t, f.status(pkg).Accumulated.IsZero())
		require.Empty(t, f.feed.learned)
	})
}

// A feed that restarts and watches a package with an anchor above its root does
// not forget the package when finality moves: it delivers its report and its
// accumulation. Until the feed has delivered a head, the best block stays that
// of the sink. The feed knows the anchors before its root.
func TestRestart(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, func(c *jip2server.Config) {
			c.Chain.FinalityLag, c.Chain.ReportLatency, c.Chain.AvailabilityLatency = 6, [2]jamq.Slot{4, 4}, [2]jamq.Slot{1, 1}
		})
		f.step(20)
		f.catchUp()
		pkg := f.send(3, 0, "one")
		best, final := f.sink.view.Best(), f.sink.view.Finalized()
		context := f.sent[pkg]
		feed, err := OpenFeed(t.Context(), f.client, FeedConfig{Service: marks, Root: jamq.Block{Hash: final.Hash, Slot: final.Slot}, Best: best.Hash})
		require.NoError(t, err)
		before, ok := f.sink.view.AtHeight(final.Height - 3)
		require.True(t, ok)
		_, err = feed.Context(t.Context(), before.Hash, nil)
		require.NoError(t, err)
		feed.Restore(Known{Package: pkg, Context: context})
		f.feed = feed
		sink := &bestSink{viewSink: f.sink}
		for range 25 {
			f.step(1)
			require.NoError(t, f.feed.catchUp(t.Context(), sink))
		}
		require.NotContains(t, sink.bests, final.Hash, "no step back to the root")
		require.False(t, f.status(pkg).Accumulated.IsZero())
		require.NotContains(t, f.feed.watched, pkg, "its fate is final")
	})
}

// A package is often sent again, and the outcome of an earlier attempt may be final by then, above
// all after a gap. The feed delivers nothing of it a second time. Its report would take the core of
// another package, whose report would be missing.
func TestWatchAfterTheFateIsFinal(t *testing.T) {
	for _, later := range []int{1, 20} { // the anchor is in recent history, or has expired
		t.Run(fmt.Sprintf("%d blocks later", later), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				f := follow(t, func(c *jip2server.Config) { c.Chain.FinalityLag = 1 })
				f.step(12)
				f.catchUp()
				old := f.send(1, 0, "old")
				for len(f.feed.watched) > 0 {
					f.step(1)
					f.catchUp()
				}
				require.False(t, f.status(old).Accumulated.IsZero())
				f.step(later)
				f.catchUp()
				young := f.send(1, 1, "young")
				f.feed.Watch(old, f.sent[old])
				for f.status(young).Accumulated.IsZero() {
					f.step(1)
					f.catchUp()
					f.check(true)
				}
				require.Equal(t, []jamq.PackageHash{old, young}, f.sink.reports)
			})
		})
	}
}

// bestSink records the best blocks that it receives.
type bestSink struct {
	*viewSink
	bests []jamq.HeaderHash
}

func (s *bestSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	s.bests = append(s.bests, best)
	return s.viewSink.Import(ctx, b, best)
}
