package drive_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

// simulated is a runner's host on a simulated chain that runs in (virtual) real time.
type simulated struct {
	driver *jamtest.Driver
	oracle *jamtest.Oracle
	runner *drive.Runner

	buildTime time.Duration
	// steady means that builds and sends do not fail by themselves. troubled is called in each
	// slot.
	steady   bool
	troubled func(ctx context.Context, s *simulated, slot int) error
	stats    bundlequeue.Stats // at the end
	// unreachable means that no guarantor can be reached, deaf that the JAM node shows no blocks.
	unreachable, deaf atomic.Bool

	mu       sync.Mutex
	news     []jamtest.Update // not delivered yet
	contexts map[jamq.PackageHash]jamq.RefineContext
	again    []string // in order
	calls    int
	head     common.Hash // commitment of the last block
	parents  map[common.Hash]common.Hash
}

func (s *simulated) Build(_ context.Context, r bundlequeue.Build) (drive.Package, error) {
	recent, lookup := s.driver.Anchors()
	c, err := anchor.Pick(recent, r.Anchor.Hash, lookup, r.Prerequisites)
	if err != nil {
		return drive.Package{}, err
	}
	p := jamtest.NewPackage(1, c, []byte(r.Bundle))
	time.Sleep(s.buildTime)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if _, twice := s.contexts[p.Hash]; twice || s.calls%7 == 0 && !s.steady {
		return drive.Package{}, errors.New("no package this time")
	}
	s.contexts[p.Hash] = c
	return drive.Package{Hash: p.Hash, Context: c, Bundle: r.Bundle}, nil
}

func (s *simulated) Submit(_ context.Context, r bundlequeue.Send) error {
	s.mu.Lock()
	c := s.contexts[r.Package]
	s.calls++
	fails := s.calls%11 == 0 && !s.steady
	s.mu.Unlock()
	if s.unreachable.Load() {
		return errors.New("no guarantor can be reached")
	}
	err := s.driver.Submit(jamtest.Package{Hash: r.Package, Context: c, Service: 1, Payload: []byte(r.Bundle)}, r.Core, r.Attempt)
	if fails {
		return errors.New("it arrived, and the answer was lost")
	}
	return err
}

func (s *simulated) observe(o submit.Observation) {
	if f, ok := o.Effect.(bundlequeue.Failed); ok {
		s.mu.Lock()
		s.again = append(s.again, string(f.Bundle))
		if f.Number == f.Cause {
			s.head = s.parents[f.Commitment]
		}
		slices.Sort(s.again)
		s.mu.Unlock()
	}
}

// next returns a bundle that was handed back, or a new one, up to n.
func (s *simulated) next(made *int, n int) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.again) > 0 {
		name := s.again[0]
		s.again = s.again[1:]
		return name, true
	}
	if *made == n {
		return "", false
	}
	name := fmt.Sprintf("bundle %03d", *made)
	*made++
	s.oracle.Expect(name)
	return name, true
}

// enqueue executes a bundle on the head. If it cannot be enqueued, it waits again.
func (s *simulated) enqueue(ctx context.Context, name string) error {
	s.mu.Lock()
	parent, commitment := s.head, common.BigToHash(big.NewInt(int64(len(s.parents)+1)))
	s.parents[commitment], s.head = parent, commitment
	s.mu.Unlock()
	_, err := s.runner.EnqueueNext(ctx, parent, commitment, []byte(name))
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == commitment {
		s.head = parent
	}
	s.again = append(s.again, name)
	slices.Sort(s.again)
	return err
}

// TestRunnerSimulation drives the queue by the runner, with its goroutines, its window and its
// time-outs, under virtual time. The builder is slow in some seeds, guarantors and blocks are out
// of reach for a while in others, finality is older than a lookup anchor lives, and the set of
// cores changes. Every bundle is executed once, and in order.
func TestRunnerSimulation(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulateRunner(t, seed) })
		})
	}
}

func simulateRunner(t *testing.T, seed uint64) {
	time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = float64(seed%4)/10, float64(seed%5)/10, float64(seed%3)/20
	cfg.ForeignLoad, cfg.LastMomentProbability = float64(seed%3)/5, float64(seed%2)/5
	cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 4, 3, float64(seed%3)/10
	if seed%6 == 5 {
		// A slow package is nearly too old when it is ready.
		cfg.FinalityLag = int(cfg.Spec.MaxLookupAnchorAge) / 3
	}
	s := &simulated{
		// 12.5 s and more: an anchor from the table expires before the package is ready.
		buildTime: []time.Duration{0, 2 * time.Second, 12500 * time.Millisecond, 25 * time.Second}[seed%4],
		troubled:  func(ctx context.Context, s *simulated, slot int) error { return s.trouble(ctx, seed, slot) },
	}
	s.play(t, cfg, 12)
}

// A builder that takes 12.5 s for each package finalizes everything on the tiny chain: a package
// that is too old when it is ready makes the next anchor fresher.
func TestSlowBuilderFinalizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
		s := &simulated{buildTime: 12500 * time.Millisecond, steady: true}
		s.play(t, jamtest.DefaultConfig(jamq.Tiny(), 1), 60)
		require.Empty(t, s.again)
		totals := s.stats.Totals
		require.Zero(t, totals.Entered(bundlequeue.FailedState))
		require.LessOrEqual(t, totals.Useless, uint64(2), "it learns from the first build")
	})
}

// Finality that stands still for longer than a lookup anchor lives delays bundles and fails none;
// the alarm gives the reason.
func TestStalledFinalityDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
		alarm := ""
		s := &simulated{steady: true, troubled: func(_ context.Context, s *simulated, slot int) error {
			h := s.runner.Health()
			if h.Delayed {
				alarm = h.Waiting.Reason
			}
			return s.driver.ChangeFaults(func(f *jamtest.Faults) { f.FinalityStopped = slot > 10 && slot < 200 })
		}}
		s.play(t, jamtest.DefaultConfig(jamq.Tiny(), 1), 120)
		require.Empty(t, s.again)
		require.Zero(t, s.stats.Totals.Entered(bundlequeue.FailedState))
		require.Contains(t, alarm, "finality does not move")
		require.Contains(t, alarm, "D3")
	})
}

// play runs a runner on a chain until n bundles are final, and asks the oracle whether each was
// executed once, and in its order.
func (s *simulated) play(t *testing.T, cfg jamtest.Config, n int) {
	t.Helper()
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	root := chain.Best()
	s.driver, s.contexts = jamtest.NewDriver(chain), make(map[jamq.PackageHash]jamq.RefineContext)
	s.head, s.parents = common.Hash{'g'}, make(map[common.Hash]common.Hash)
	s.oracle = jamtest.NewOracle(1, func(b []byte) jamtest.Execution { return jamtest.Execution{Txs: []string{string(b)}} })
	runnerConfig := submit.DefaultConfig(cfg.Spec)
	runnerConfig.Observe, runnerConfig.CheckInvariants = s.observe, true
	s.runner, err = drive.NewRunner(runnerConfig, root, s, s)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, s.runner.Start(ctx))
	defer s.runner.Stop()

	const maxSlots = 5000
	made, slots, done := 0, 0, make(chan error, 1)
	go func() {
		done <- s.driver.Run(ctx, func(u jamtest.Update) {
			slots++
			s.oracle.Observe(u)
			if s.troubled != nil {
				if err := s.troubled(ctx, s, slots); err != nil {
					t.Errorf("trouble: %v", err)
				}
			}
			if s.slot(ctx, t, u, &made, n) || slots > maxSlots {
				s.stats, _ = s.runner.Stats(ctx)
				cancel()
			}
		})
	}()
	<-done
	if v := s.oracle.Check(); !v.OK() || slots > maxSlots {
		t.Fatalf("after %d slots: %v", slots, &v)
	}
}

// trouble begins and ends outages, and changes the set of cores.
func (s *simulated) trouble(ctx context.Context, seed uint64, slot int) error {
	within := func(from, to int) bool { return slot >= from && slot < to }
	s.unreachable.Store(seed%3 == 1 && (within(20, 120) || within(200, 240)))
	s.deaf.Store(seed%5 == 2 && (within(30, 50) || within(150, 250)))
	if seed%7 == 3 && (slot == 40 || slot == 100) { // longer than a lookup anchor lives
		if err := s.driver.ChangeFaults(func(f *jamtest.Faults) { f.FinalityStopped = slot == 40 }); err != nil {
			return err
		}
	}
	if seed%4 == 3 && slot%25 == 0 {
		sets := [][]jamq.CoreIndex{{0}, {1, 0}, {1}, {0, 1}}
		return s.runner.Step(ctx, bundlequeue.Cores{Cores: sets[slot/25%len(sets)]})
	}
	return nil
}

// slot feeds one slot and reports whether everything is final.
func (s *simulated) slot(ctx context.Context, t *testing.T, u jamtest.Update, made *int, n int) bool {
	s.news = append(s.news, u)
	for len(s.news) > 0 && !s.deaf.Load() {
		u, s.news = s.news[0], s.news[1:]
		for _, b := range u.Imported {
			if err := s.runner.Import(ctx, b, u.Best); err != nil {
				t.Errorf("import: %v", err)
			}
		}
		if err := s.runner.Finalize(ctx, u.Finalized); err != nil {
			t.Errorf("finalize: %v", err)
		}
	}
	for {
		can, err := s.runner.CanEnqueue(ctx)
		if err != nil || !can {
			return false
		}
		name, more := s.next(made, n)
		if !more {
			break
		}
		err = s.enqueue(ctx, name)
		if errors.Is(err, bundlequeue.ErrQueueFull) || errors.Is(err, bundlequeue.ErrWrongParent) {
			// A package died since CanEnqueue, and its bundle waits again, or
			// bundles failed.
			return false
		}
		if err != nil {
			t.Errorf("enqueue: %v", err)
			return true
		}
	}
	v := s.oracle.Check()
	return len(v.Executed) == n
}
