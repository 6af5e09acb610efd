package drive_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
)

// host builds and sends in memory and keeps what was sent.
type host struct {
	mu        sync.Mutex
	sent      []bundlequeue.Send
	when      []time.Time
	failBuild int // this many builds fail first
	failSend  int // this many sends fail first
	block     chan struct{}
}

func (h *host) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failBuild > 0 {
		h.failBuild--
		return drive.Package{}, errors.New("no builder today")
	}
	return drive.Package{
		Hash:    jamq.PackageHash{byte(r.Number), byte(r.Version)},
		Context: jamq.RefineContext{Anchor: r.Anchor.Hash, LookupAnchorSlot: r.Anchor.Slot, Prerequisites: r.Prerequisites},
		Bundle:  []byte(string(r.Bundle) + " built"),
	}, nil
}

func (h *host) Submit(ctx context.Context, r bundlequeue.Send) error {
	if h.block != nil {
		select {
		case <-h.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failSend > 0 {
		h.failSend--
		return errors.New("guarantor is out")
	}
	h.sent = append(h.sent, r)
	h.when = append(h.when, time.Now())
	return nil
}

func (h *host) sends() []bundlequeue.Send {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]bundlequeue.Send(nil), h.sent...)
}

// start runs a runner over a chain of two blocks and returns it with the newest one.
func start(t *testing.T, h *host, change func(*submit.Config)) (*drive.Runner, jamq.Block) {
	t.Helper()
	time.Sleep(time.Until(jamq.CommonEra())) // virtual time begins before there were slots
	cfg := submit.DefaultConfig(jamq.Tiny())
	if change != nil {
		change(&cfg)
	}
	root := jamq.Block{Hash: jamq.HeaderHash{'r'}}
	r, err := drive.NewRunner(cfg, root, h, h)
	require.NoError(t, err)
	require.ErrorIs(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1}), drive.ErrStopped)
	require.NoError(t, r.Start(t.Context()))
	t.Cleanup(r.Stop)
	require.ErrorIs(t, r.Start(t.Context()), drive.ErrStarted)
	best := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: root.Hash, Slot: 1}
	require.NoError(t, r.Import(t.Context(), best, best.Hash))
	return r, best
}

// A chain's constants may come from a node: whatever it says, they are refused or a runner can be
// made.
func TestRunnerOnStrangeChains(t *testing.T) {
	for _, change := range []func(*jamq.ChainSpec){
		func(s *jamq.ChainSpec) { s.RecentHistory = math.MaxInt },
		func(s *jamq.ChainSpec) { s.RecentHistory, s.Cores, s.Validators = 1<<16, 1<<16, 1<<16 },
		func(s *jamq.ChainSpec) { s.EpochLength, s.AvailabilityTimeout = jamq.MaxSlot, jamq.MaxSlot },
		func(s *jamq.ChainSpec) { s.EpochLength, s.SlotDuration = 1<<24, 24*time.Hour },
	} {
		spec := jamq.Tiny()
		change(&spec)
		_, err := drive.NewRunner(submit.DefaultConfig(spec), jamq.Block{Hash: jamq.HeaderHash{1}}, &host{}, &host{})
		if err != nil && !errors.Is(err, jamq.ErrInvalidSpec) && !errors.Is(err, submit.ErrInvalidConfig) {
			t.Fatal(err)
		}
	}
}

func TestRunnerCarriesABundleToFinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{failBuild: 1, failSend: 1}
		var states []bundlequeue.State
		var count uint64
		r, best := start(t, h, func(c *submit.Config) {
			c.Observe = func(o submit.Observation) {
				count++
				if o.Number != count || o.Replayed {
					t.Errorf("observation %d is numbered %d, replayed %v", count, o.Number, o.Replayed)
				}
				if e, ok := o.Effect.(bundlequeue.Changed); ok {
					states = append(states, e.To)
				}
			}
		})
		ctx := t.Context()
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
		time.Sleep(20 * time.Second) // longer than both back-offs
		synctest.Wait()
		sends := h.sends()
		require.NotEmpty(t, sends)
		require.Equal(t, "one built", string(sends[0].Bundle))
		require.Greater(t, sends[0].Attempt, 1, "the first attempt failed")
		window := submit.DefaultWindow(jamq.Tiny())
		for _, at := range h.when {
			require.True(t, window.Open(at), "sent at %v", at)
		}

		pkg := sends[0].Package
		reported := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: best.Hash, Slot: 2, Reported: []jamq.Report{{Package: pkg}}}
		require.NoError(t, r.Import(ctx, reported, reported.Hash))
		done := jamq.Block{Hash: jamq.HeaderHash{3}, Parent: reported.Hash, Slot: 3, Available: []jamq.CoreIndex{0}, Accumulated: []jamq.PackageHash{pkg}}
		require.NoError(t, r.Import(ctx, done, done.Hash))
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(ctx) }()
		synctest.Wait()
		require.Empty(t, drained, "accumulated is not final")
		require.NoError(t, r.Finalize(ctx, done.Hash))
		require.NoError(t, <-drained)

		stats, err := r.Stats(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, stats.Count[bundlequeue.Finalized])
		info, found, err := r.Info(ctx, 1)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, pkg, info.Versions[0].Package)
		r.Stop()
		require.Equal(t, []bundlequeue.State{
			bundlequeue.Building, bundlequeue.Queued, bundlequeue.Building, bundlequeue.Sending, bundlequeue.Submitted,
			bundlequeue.Guaranteed, bundlequeue.Accumulated, bundlequeue.Finalized,
		}, states)
	})
}

// A submitter that hangs holds up neither the runner nor its end.
func TestRunnerStopsWhileASendHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{block: make(chan struct{})}
		r, best := start(t, h, nil)
		ctx := t.Context()
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1}))
		time.Sleep(5 * time.Second)
		next := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: best.Hash, Slot: 2}
		require.NoError(t, r.Import(ctx, next, next.Hash), "the loop is free")
		r.Stop()
		require.ErrorIs(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 2}), drive.ErrStopped)
		require.ErrorIs(t, r.Drain(ctx), drive.ErrStopped)
		require.Empty(t, h.sends())
	})
}

// Several may wait for the end; one that gives up takes nothing from the others.
func TestDrainOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		r, best := start(t, h, nil)
		require.NoError(t, r.Drain(t.Context()), "nothing is under way")
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1}))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		drained := make(chan error, 3)
		for _, ctx := range []context.Context{t.Context(), short, t.Context()} {
			go func() { drained <- r.Drain(ctx) }()
		}
		require.ErrorIs(t, <-drained, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		pkg := h.sends()[0].Package
		done := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: best.Hash, Slot: 2, Reported: []jamq.Report{{Package: pkg}}}
		require.NoError(t, r.Import(t.Context(), done, done.Hash))
		done = jamq.Block{Hash: jamq.HeaderHash{3}, Parent: done.Hash, Slot: 3, Available: []jamq.CoreIndex{0}, Accumulated: []jamq.PackageHash{pkg}}
		require.NoError(t, r.Import(t.Context(), done, done.Hash))
		synctest.Wait()
		require.Empty(t, drained)
		require.NoError(t, r.Finalize(t.Context(), done.Hash))
		require.NoError(t, <-drained)
		require.NoError(t, <-drained)
		require.NoError(t, r.Drain(t.Context()))
	})
}

func TestRunnerPassesRefusalsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := start(t, &host{}, nil)
		require.ErrorIs(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 7}), bundlequeue.ErrWrongNumber)
		require.Error(t, r.Finalize(t.Context(), jamq.HeaderHash{9}))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		err := r.Drain(canceled)
		require.True(t, err == nil || errors.Is(err, context.Canceled))
	})
}

func TestNewRunnerValidates(t *testing.T) {
	cfg := submit.DefaultConfig(jamq.Tiny())
	_, err := drive.NewRunner(cfg, jamq.Block{Hash: jamq.HeaderHash{1}}, nil, nil)
	require.ErrorIs(t, err, submit.ErrInvalidConfig)
	cfg.SubmitTimeout = 0
	_, err = drive.NewRunner(cfg, jamq.Block{Hash: jamq.HeaderHash{1}}, &host{}, &host{})
	require.ErrorIs(t, err, submit.ErrInvalidConfig)
	cfg = submit.DefaultConfig(jamq.Tiny())
	_, err = drive.NewRunner(cfg, jamq.Block{}, &host{}, &host{})
	require.ErrorIs(t, err, jamq.ErrInvalidBlock)
}
