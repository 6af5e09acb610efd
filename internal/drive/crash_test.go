package drive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// world survives the builder's process: the chain, the journal, the host's state, and the words
// that must be executed.
type world struct {
	driver *jamtest.Driver
	root   jamq.Block
	disk   journal.Memory
	cfg    submit.Config
	slow   time.Duration // execution of a block

	mu      sync.Mutex
	state   hostState
	oracle  *jamtest.Oracle
	history []jamtest.Update
	moved   chan struct{} // holds a token when history grew
}

func newWorld(t *testing.T, seed uint64, n int) *world {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = float64(seed%3)/10, float64(seed%4)/10, float64(seed%2)/20
	cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 3, 2, float64(seed%2)/10
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	w := &world{root: chain.Best(), driver: jamtest.NewDriver(chain), moved: make(chan struct{}, 1)}
	w.cfg = submit.DefaultConfig(cfg.Spec)
	w.slow = time.Duration(seed%3) * 10 * time.Second
	if seed%2 == 1 { // bundles fail
		w.cfg.Queue.MaxVersionRetries = 0
	}
	w.oracle = jamtest.NewOracle(1, func(b []byte) (e jamtest.Execution) {
		require.NoError(t, json.Unmarshal(b, &e.Txs))
		return e
	})
	for i := range n {
		w.state.Pool = append(w.state.Pool, fmt.Sprint("word ", i))
	}
	w.oracle.Expect(w.state.Pool...)
	return w
}

// take records what a slot brought.
func (w *world) take(u jamtest.Update) {
	w.mu.Lock()
	w.oracle.Observe(u)
	w.history = append(w.history, u)
	w.mu.Unlock()
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// since returns what happened after the first n updates.
func (w *world) since(n int) []jamtest.Update {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history[n:]
}

func (w *world) verdict() jamtest.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.Check()
}

// errDied is returned by a process that has died.
var errDied = errors.New("the process died")

// life is one life of a builder's process. It dies at its n-th moment; moments are before and after
// each write of its journal and each send.
type life struct {
	*world
	host *wordHost
	stop context.CancelFunc
	// noSerial makes the host hash the content of a block only. refused is the error that stops it.
	noSerial bool
	refused  error

	mu      sync.Mutex
	moments int
	diesAt  int // 0: never
	dead    bool
}

// lives passes a moment and reports whether the process still lives.
func (l *life) lives() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moments++; l.moments == l.diesAt {
		l.dead = true
		l.stop()
	}
	return !l.dead
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// Append and Replace implement drive.Journal: records written before the process died are on disk.
func (l *life) Append(records ...[]byte) error {
	return l.moment(func() error {
		time.Sleep(50 * time.Millisecond) // long enough for a send that does not wait for it
		if l.isDead() {
			return errDied
		}
		return l.disk.Append(records...)
	})
}

func (l *life) Replace(records ...[]byte) error {
	return l.moment(func() error { return l.disk.Replace(records...) })
}

func (l *life) Replay(f func([]byte) error) error { return l.disk.Replay(f) }

// moment does something that the process can die before and after.
func (l *life) moment(f func() error) error {
	if !l.lives() {
		return errDied
	}
	err := f()
	if !l.lives() {
		return errDied
	}
	return err
}

// save stores the host's state.
func (l *life) save(s hostState) {
	_ = l.moment(func() error {
		l.world.mu.Lock()
		defer l.world.mu.Unlock()
		l.state = hostState{slices.Clone(s.Pool), slices.Clone(s.Blocks), s.Final, s.Serial}
		return nil
	})
}

// Build implements drive.Builder.
func (l *life) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	// Different build times make some packages ready while the window is open.
	time.Sleep(time.Duration(r.Number*7%5) * time.Second)
	return l.host.Build(ctx, r)
}

// Submit implements drive.Submitter.
func (l *life) Submit(ctx context.Context, r bundlequeue.Send) error {
	return l.moment(func() error { return l.host.Submit(ctx, r) })
}

// run lives until it dies, everything is executed, or ctx ends. It returns how many moments there
// were.
func (l *life) run(ctx context.Context, t *testing.T) int {
	ctx, l.stop = context.WithCancel(ctx)
	defer l.stop()
	l.host = &wordHost{driver: l.driver, save: l.save, state: l.state}
	err := l.host.open(ctx, l.cfg, l.root, l, l, l)
	if l.isDead() {
		return l.moments
	}
	require.NoError(t, err)
	runner := l.host.runner
	defer runner.Stop()
	wake, stopped := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		l.refused = l.work(ctx, wake)
		l.stop()
	}()
	defer func() { l.stop(); <-stopped }()
	for fed := 0; ctx.Err() == nil; {
		for _, u := range l.since(fed) {
			fed++
			for _, b := range u.Imported {
				_ = runner.Import(ctx, b, u.Best)
			}
			_ = runner.Finalize(ctx, u.Finalized)
		}
		select {
		case wake <- struct{}{}:
		default:
		}
		if v := l.verdict(); len(v.Lost) == 0 {
			break
		}
		select {
		case <-l.moved:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moments
}

// work makes blocks until ctx ends, or one is refused.
func (l *life) work(ctx context.Context, wake <-chan struct{}) error {
	for {
		if err := l.produce(ctx); ctx.Err() == nil && err != nil && !errors.Is(err, drive.ErrStopped) {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// produce takes time to execute blocks, in some runs, so that a block may fail meanwhile.
func (l *life) produce(ctx context.Context) error {
	if !l.noSerial && l.slow == 0 {
		return l.host.produce(ctx)
	}
	for more := true; more; {
		if l.noSerial {
			l.host.restartSerial()
		}
		b, ok := l.host.execute()
		if !ok {
			return nil
		}
		time.Sleep(l.slow)
		var err error
		if more, err = l.host.enqueue(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// restartSerial makes all serial numbers equal.
func (h *wordHost) restartSerial() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Serial = 0
}

// crash runs a builder that dies once, at some moment, and another that takes over. It returns the
// moments of the first.
func crash(t *testing.T, seed uint64, diesAt int) (moments int) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
		w := newWorld(t, seed, 20)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
		chain := make(chan struct{})
		go func() {
			defer close(chain)
			_ = w.driver.Run(ctx, w.take)
		}()
		moments = (&life{world: w, diesAt: diesAt}).run(ctx, t)
		if diesAt > 0 {
			time.Sleep(time.Duration(diesAt%30) * time.Second) // no process runs meanwhile
			next := &life{world: w}
			next.run(ctx, t)
			require.NoError(t, next.refused)
		}
		if v := w.verdict(); !v.OK() {
			t.Errorf("seed %d, died at %d of %d: %v", seed, diesAt, moments, &v)
		}
		cancel()
		<-chain
	})
	return moments
}

// TestCrashSweep: the host of the example dies before and after writes of its journal and its
// state, and before and after sends, and its feed repeats the chain from the beginning. With odd
// seeds, blocks fail, also while the next one is executed. Nothing is lost, nothing is executed
// twice, and all in order.
func TestCrashSweep(t *testing.T) {
	for seed := range uint64(6) {
		moments := crash(t, seed, 0)
		for at := 1; at <= moments; at += 1 + moments/150 {
			crash(t, seed, at)
		}
		t.Logf("seed %d: %d moments to die at", seed, moments)
	}
}

// A host whose commitments hash the content of a block only executes a failed block again under the
// same commitment. The queue refuses it, and nothing is executed twice.
func TestContentIsNoCommitment(t *testing.T) {
	stopped := 0
	for seed := uint64(1); seed < 20; seed += 2 {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
			w := newWorld(t, seed, 20)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
			chain := make(chan struct{})
			go func() {
				defer close(chain)
				_ = w.driver.Run(ctx, w.take)
			}()
			l := &life{world: w, noSerial: true}
			l.run(ctx, t)
			if l.refused != nil {
				require.ErrorIs(t, l.refused, bundlequeue.ErrCommitmentUsed)
				stopped++
			}
			v := w.verdict()
			require.Empty(t, v.Twice)
			require.Empty(t, v.Disorder)
			cancel()
			<-chain
		})
	}
	require.Greater(t, stopped, 3, "of ten runs with failures")
}
