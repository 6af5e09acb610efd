package drive_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// broken is a journal that fails from some write on.
type broken struct {
	journal.Memory
	writes, fails int
}

var errDisk = errors.New("no space left")

func (b *broken) Append(records ...[]byte) error {
	if b.writes++; b.writes >= b.fails {
		return errDisk
	}
	return b.Memory.Append(records...)
}

// A runner does not act on a step that it could not record: it stops and Health.Err holds the
// cause.
func TestJournalFailureStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		h := &host{}
		r, err := openOn(&broken{fails: 3}, h, nil)
		require.NoError(t, err)
		ctx := t.Context()
		require.NoError(t, r.Start(ctx))
		require.True(t, r.Health().Running)
		block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{'r'}, Slot: 1}
		var refused error
		for range 4 {
			if refused = r.Import(ctx, block, block.Hash); refused != nil {
				break
			}
		}
		require.ErrorIs(t, refused, drive.ErrJournal)
		require.ErrorIs(t, refused, errDisk)
		err = r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1})
		require.ErrorIs(t, err, drive.ErrStopped)
		r.Stop()
		require.ErrorIs(t, r.Drain(ctx), drive.ErrStopped)
		require.ErrorIs(t, r.Health().Err, errDisk)
		require.False(t, r.Health().Running)
		require.Empty(t, h.sends())
	})
}

// A recovered runner does not act before it knows the current chain. Health.Held is true meanwhile.
func TestRecoveredHolds(t *testing.T) {
	for name, release := range map[string]func(t *testing.T, r *drive.Runner){
		"a new block": func(t *testing.T, r *drive.Runner) {
			slot := jamq.NewSlotClock(jamq.Tiny()).SlotAt(time.Now())
			block := jamq.Block{Hash: jamq.HeaderHash{9}, Parent: jamq.HeaderHash{1}, Slot: slot}
			require.NoError(t, r.Import(t.Context(), block, block.Hash))
		},
		"Resume":      func(t *testing.T, r *drive.Runner) { require.NoError(t, r.Resume(t.Context())) },
		"HoldTimeout": func(t *testing.T, r *drive.Runner) { time.Sleep(time.Minute) },
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, enqueued before: %v", name, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { recoveredHolds(t, before, release) })
			})
		}
	}
}

// recoveredHolds opens a runner on the journal of another one. A bundle is enqueued before or
// after.
func recoveredHolds(t *testing.T, before bool, release func(*testing.T, *drive.Runner)) {
	time.Sleep(time.Until(jamq.CommonEra()))
	ctx := t.Context()
	disk := new(journal.Memory)
	open := func(h *host) *drive.Runner {
		r, err := openOn(disk, h, nil)
		require.NoError(t, err)
		return r
	}
	enqueue := func(r *drive.Runner) {
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
	}
	first := open(&host{failBuild: 1000})
	require.False(t, first.Recovered().Found)
	require.NoError(t, first.Start(ctx))
	block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{'r'}, Slot: 1}
	require.NoError(t, first.Import(ctx, block, block.Hash))
	if before {
		enqueue(first)
	}
	first.Stop()

	time.Sleep(36 * time.Second)
	h := &host{}
	r := open(h)
	require.True(t, r.Recovered().Found)
	require.Equal(t, block.Hash, r.Recovered().Best.Hash)
	require.True(t, r.Health().Held)
	require.NoError(t, r.Start(ctx))
	defer r.Stop()
	old := jamq.Block{Hash: jamq.HeaderHash{8}, Parent: jamq.HeaderHash{1}, Slot: 2}
	require.NoError(t, r.Import(ctx, old, block.Hash))
	if !before {
		enqueue(r)
	}
	time.Sleep(20 * time.Second)
	require.Empty(t, h.sends())
	release(t, r)
	time.Sleep(8 * time.Second) // less than is left of HoldTimeout
	require.NotEmpty(t, h.sends())
	require.False(t, r.Health().Held)
	r.Stop()
	out := open(h).Recovered().Out
	require.Len(t, out, 1)
	require.Equal(t, h.sends()[0].Package, out[0].Package)
}

// OpenRunner refuses a journal that no runner can have written.
func TestCorruptJournal(t *testing.T) {
	open := func(records ...[]byte) error {
		disk := new(journal.Memory)
		require.NoError(t, disk.Append(records...))
		_, err := openOn(disk, &host{}, nil)
		return err
	}
	disk := new(journal.Memory)
	_, err := openOn(disk, &host{}, nil)
	require.NoError(t, err)
	var snapshot []byte
	require.NoError(t, disk.Replay(func(r []byte) error { snapshot = append([]byte(nil), r...); return nil }))
	require.NoError(t, open(snapshot))
	for name, records := range map[string][][]byte{
		"empty record":           {snapshot, {}},
		"unknown kind":           {snapshot, {'?'}},
		"a step without a queue": {{'T', 1, 2}},
		"a damaged snapshot":     {append(append([]byte(nil), snapshot[:20]...), snapshot[21:]...)},
		"a short snapshot":       {{'S', 1}},
		"half a snapshot":        {{'P', 1}},
		"a strange config":       {{'C', '1'}, snapshot},
		"a step of garbage":      {snapshot, {'T', 1, 2, 3}},
	} {
		require.ErrorIs(t, open(records...), drive.ErrCorrupt, name)
	}
	_, err = drive.OpenRunner(submit.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{'r'}}, drive.Durability{}, &host{}, &host{})
	require.ErrorIs(t, err, submit.ErrInvalidConfig)
	_, err = openOn(disk, &host{}, func(c *submit.Config) { c.Observe = nil })
	require.ErrorIs(t, err, submit.ErrInvalidConfig, "failed bundles would be lost")
}

// openOn opens a runner on a journal.
func openOn(disk drive.Journal, h *host, change func(*submit.Config)) (*drive.Runner, error) {
	cfg := submit.DefaultConfig(jamq.Tiny())
	cfg.Observe = func(submit.Observation) {}
	if change != nil {
		change(&cfg)
	}
	return drive.OpenRunner(cfg, jamq.Block{Hash: jamq.HeaderHash{'r'}}, drive.Durability{Journal: disk}, h, h)
}

// After a crash the configuration may be another one: the steps are replayed under the one under
// which they were taken. The chain must be the same.
func TestConfigurationMayChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), new(journal.Memory)
		r, err := openOn(disk, &host{failBuild: 1000}, nil)
		require.NoError(t, err)
		require.NoError(t, r.Start(ctx))
		block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{'r'}, Slot: 1}
		require.NoError(t, r.Import(ctx, block, block.Hash))
		for want := uint64(1); want <= 5; want++ {
			next, err := r.Next(ctx)
			require.NoError(t, err)
			number, err := r.EnqueueNext(ctx, common.Hash{byte(want)}, common.Hash{byte(want + 1)}, []byte("bundle"))
			require.NoError(t, err)
			require.Equal(t, []uint64{want, want}, []uint64{next, number})
		}
		time.Sleep(20 * time.Second)
		r.Stop()
		require.Positive(t, r.Health().BuildFailures)

		for _, depth := range []int{3, 7} {
			r, err = openOn(disk, &host{failBuild: 1000}, func(c *submit.Config) {
				c.Queue.MaxVersionRetries, c.Queue.BackoffMax = 1, time.Hour
				c.Queue.MaxQueueDepth, c.Queue.Cores = depth, []jamq.CoreIndex{1}
			})
			require.NoError(t, err)
			require.Len(t, r.Recovered().Bundles, 5)
			require.NoError(t, r.Start(ctx))
			time.Sleep(time.Hour)
			stats, err := r.Stats(ctx)
			require.NoError(t, err)
			require.Equal(t, depth, stats.Depth)
			require.Equal(t, 1, stats.Cores)
			require.Zero(t, stats.Totals.Entered(bundlequeue.FailedState), "builds that fail delay, and never fail a bundle")
			r.Stop()
		}
		_, err = openOn(disk, &host{}, func(c *submit.Config) { c.Queue.Spec.EpochLength++ })
		require.ErrorIs(t, err, bundlequeue.ErrInvalidConfig)
		require.NotErrorIs(t, err, drive.ErrCorrupt)
	})
}

// bounded is a journal that refuses records of more than most bytes.
type bounded struct {
	journal.Memory
	most int
}

func (b *bounded) Replace(records ...[]byte) error {
	for _, r := range records {
		if len(r) > b.most {
			return journal.ErrTooLarge
		}
	}
	return b.Memory.Replace(records...)
}

// A queue may hold more than fits into one record of a journal.
func TestSnapshotInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), &bounded{most: 2 << 20}
		r, err := openOn(disk, &host{}, nil)
		require.NoError(t, err)
		require.NoError(t, r.Start(ctx))
		for n := uint64(1); n <= 10; n++ {
			require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: n, Bundle: []byte(strings.Repeat("x", 300_000))}))
		}
		r.Stop()
		for range 2 {
			r, err = openOn(disk, &host{}, nil)
			require.NoError(t, err)
			require.Len(t, r.Recovered().Bundles, 10)
			require.NoError(t, r.Start(ctx))
			_, err := r.Stats(ctx)
			require.NoError(t, err, "a snapshot is made at the start")
			r.Stop()
			require.NoError(t, r.Health().Err)
		}
		require.Less(t, r.Recovered().Steps, 10, "the snapshot took their place")
	})
}

// Observations are numbered without a gap over a restart from a snapshot, so that a host knows
// which of them it has seen.
func TestNumbersContinueAfterASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk, last := t.Context(), new(journal.Memory), uint64(0)
		for number := uint64(1); number <= 3; number++ {
			h := &host{}
			cfg := submit.DefaultConfig(jamq.Tiny())
			cfg.Observe = func(o submit.Observation) {
				if o.Number > 0 && o.Number != last+1 {
					t.Errorf("observation %d follows %d", o.Number, last)
				}
				last = max(last, o.Number)
			}
			d := drive.Durability{Journal: disk, SnapshotEvery: 1}
			r, err := drive.OpenRunner(cfg, jamq.Block{Hash: jamq.HeaderHash{'r'}}, d, h, h)
			require.NoError(t, err)
			require.NoError(t, r.Start(ctx))
			require.NoError(t, r.Resume(ctx))
			slot := jamq.Slot(number)
			block := jamq.Block{Hash: jamq.HeaderHash{byte(slot)}, Parent: jamq.HeaderHash{byte(slot - 1)}, Slot: slot}
			if slot == 1 {
				block.Parent = jamq.HeaderHash{'r'}
			}
			require.NoError(t, r.Import(ctx, block, block.Hash))
			synctest.Wait() // the runner still observes the import
			before := last
			_, err = r.EnqueueNext(ctx, common.Hash{byte(number)}, common.Hash{byte(number + 1)}, []byte("bundle"))
			require.NoError(t, err)
			synctest.Wait()
			if number == 1 {
				require.Greater(t, last, before)
			}
			r.Stop()
		}
		require.Greater(t, last, uint64(1))
	})
}

// A clock that is known to be ahead of the chain's moves the window as well as one that is behind.
func TestConfiguredSkew(t *testing.T) {
	for _, skew := range []time.Duration{-2 * time.Second, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := &host{}
			r, _ := start(t, h, func(c *submit.Config) { c.Window.Skew = skew })
			require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
			time.Sleep(20 * time.Second)
			require.NotEmpty(t, h.sends())
			chains := submit.DefaultWindow(jamq.Tiny())
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, at := range h.when {
				require.True(t, chains.Open(at.Add(-skew)), "sent at %v by a clock that is %v ahead", at, skew)
			}
		})
	}
}

// The metrics count what happens.
func TestRunnerMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := make(chan string, 1000)
		h := &host{failBuild: 1, failSend: 1}
		r, _ := start(t, h, func(c *submit.Config) {
			c.Metrics.Count = func(counter submit.Counter, label string) { counted <- string(counter) + " " + label }
			c.Metrics.Observe = func(histogram submit.Histogram, _ float64) { counted <- string(histogram) }
		})
		require.NoError(t, r.Enqueue(context.Background(), bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		r.Stop()
		close(counted)
		counts := make(map[string]int)
		for what := range counted {
			counts[what]++
		}
		for _, what := range []string{"builds ok", "builds failed", "sends ok", "sends retryable", "effects build", "effects send", "effects changed", "build_seconds", "send_seconds", "step_seconds"} {
			require.Positive(t, counts[what], "%s of %v", what, counts)
		}
		require.Zero(t, r.Health().SendFailures)
		require.Error(t, r.Health().LastError)
	})
}

// asking is a host's log that asks for the runner's health with each line: no line is written under
// a lock.
type asking struct {
	slog.Handler
	health func() submit.Health
	lines  int
}

func (a *asking) Enabled(context.Context, slog.Level) bool { return true }

func (a *asking) Handle(context.Context, slog.Record) error {
	a.health()
	a.lines++
	return nil
}

// A clock that is behind is found out by blocks that come too early, and packages leave by the
// chain's clock.
func TestClockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		curious := &asking{Handler: slog.DiscardHandler}
		// start imports the block of slot 1 at the beginning of slot 0.
		r, best := start(t, h, func(c *submit.Config) { c.Logger = slog.New(curious) })
		curious.health = r.Health
		require.Zero(t, r.Health().Behind, "that is further than a clock is wrong")
		time.Sleep(10 * time.Second) // slot 2 begins in two seconds
		next := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: best.Hash, Slot: 2}
		require.NoError(t, r.Import(t.Context(), next, next.Hash))
		require.Equal(t, 2*time.Second, r.Health().Behind)
		require.Equal(t, 1, curious.lines)
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
		time.Sleep(10 * time.Second)
		window := submit.DefaultWindow(jamq.Tiny())
		window.Skew = -2 * time.Second
		require.NotEmpty(t, h.sends())
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, at := range h.when {
			require.True(t, window.Open(at), "sent at %v", at)
		}
	})
}

// A clock that was put right is found out as well, and one block of an author whose clock is ahead
// is forgotten.
func TestClockPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, at := start(t, &host{}, nil)
		clock := jamq.NewSlotClock(jamq.Tiny())
		next := func(slot jamq.Slot, early time.Duration) {
			t.Helper()
			time.Sleep(time.Until(clock.Start(slot).Add(-early)))
			at = jamq.Block{Hash: jamq.HeaderHash{byte(slot), 1}, Parent: at.Hash, Slot: slot}
			require.NoError(t, r.Import(t.Context(), at, at.Hash))
		}
		next(2, 5*time.Second)
		require.Equal(t, 5*time.Second, r.Health().Behind)
		next(3, -20*time.Second)
		require.Equal(t, 5*time.Second, r.Health().Behind, "a block that comes late, as after a gap, says nothing")
		for slot := jamq.Slot(10); slot < 74; slot++ {
			next(slot, -time.Second)
		}
		require.Less(t, r.Health().Behind, 100*time.Millisecond)
		for slot := jamq.Slot(74); slot < 138; slot++ {
			next(slot, 2*time.Second-time.Duration(slot%2)*time.Second)
		}
		require.Greater(t, r.Health().Behind, 1500*time.Millisecond, "blocks take their time, now more, now less")
		require.LessOrEqual(t, r.Health().Behind, 2*time.Second)
	})
}

// spoiling is a builder whose packages are spoiled.
type spoiling struct {
	host
	spoil func(*jamq.RefineContext)
}

func (h *spoiling) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	p, err := h.host.Build(ctx, r)
	h.spoil(&p.Context)
	return p, err
}

// A builder whose packages must not be sent is seen to fail.
func TestInadmissiblePackages(t *testing.T) {
	seenToFail(t, bundlequeue.ErrInadmissible, func(c *jamq.RefineContext) { c.Prerequisites = make([]jamq.PackageHash, 9) })
	seenToFail(t, bundlequeue.ErrUnknownAnchor, func(c *jamq.RefineContext) { c.Anchor = jamq.HeaderHash{98} })
	seenToFail(t, drive.ErrUseless, func(c *jamq.RefineContext) { c.Anchor = otherFork })
}

// otherFork is a block beside the best chain of seenToFail.
var otherFork = jamq.HeaderHash{99}

func seenToFail(t *testing.T, want error, spoil func(*jamq.RefineContext)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		h := &spoiling{spoil: spoil}
		var failed, ok atomic.Int32
		cfg := submit.DefaultConfig(jamq.Tiny())
		cfg.Metrics.Count = func(counter submit.Counter, label string) {
			switch {
			case counter == submit.CountBuilds && label == "failed":
				failed.Add(1)
			case counter == submit.CountBuilds:
				ok.Add(1)
			}
		}
		root := jamq.Block{Hash: jamq.HeaderHash{'r'}}
		r, err := drive.NewRunner(cfg, root, h, h)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context()))
		defer r.Stop()
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
		parent := root.Hash
		require.NoError(t, r.Import(t.Context(), jamq.Block{Hash: otherFork, Parent: parent, Slot: 1}, parent))
		for slot := jamq.Slot(1); slot <= 30; slot++ {
			best := jamq.Block{Hash: jamq.HeaderHash{1, byte(slot)}, Parent: parent, Slot: slot}
			require.NoError(t, r.Import(t.Context(), best, best.Hash))
			parent = best.Hash
			time.Sleep(6 * time.Second)
		}
		synctest.Wait()
		require.Empty(t, h.sends())
		require.True(t, r.Health().Delayed, "an alarm after 20 slots")
		require.Equal(t, uint64(1), r.Health().Waiting.Number)
		health := r.Health()
		require.Greater(t, health.BuildFailures, 1, "in a row")
		require.ErrorIs(t, health.LastError, want)
		require.Zero(t, health.Builds)
		require.Zero(t, ok.Load())
		require.EqualValues(t, health.BuildFailures, failed.Load())
	})
}
