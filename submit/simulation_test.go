package submit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

// simulated is a runner's host on a simulated chain that runs in (virtual) real time.
type simulated struct {
	driver *jamtest.Driver
	oracle *jamtest.Oracle
	runner *submit.Runner[string]

	mu       sync.Mutex
	contexts map[jamq.PackageHash]jamq.RefineContext
	again    []string
	calls    int
}

func (s *simulated) Build(_ context.Context, r bundlequeue.Build[string]) (submit.Package[string], error) {
	recent, lookup := s.driver.Anchors()
	c, err := anchor.Pick(recent, r.Anchor.Hash, lookup, r.Prerequisites)
	if err != nil {
		return submit.Package[string]{}, err
	}
	p := jamtest.NewPackage(1, c, []byte(r.Bundle))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if _, twice := s.contexts[p.Hash]; twice || s.calls%7 == 0 {
		return submit.Package[string]{}, errors.New("no package this time")
	}
	s.contexts[p.Hash] = c
	return submit.Package[string]{Hash: p.Hash, Context: c, Bundle: r.Bundle}, nil
}

func (s *simulated) Submit(_ context.Context, r bundlequeue.Send[string]) error {
	s.mu.Lock()
	c := s.contexts[r.Package]
	s.calls++
	fails := s.calls%11 == 0
	s.mu.Unlock()
	err := s.driver.Submit(jamtest.Package{Hash: r.Package, Context: c, Service: 1, Payload: []byte(r.Bundle)}, r.Core, r.Attempt)
	if fails {
		return errors.New("it arrived, and nobody said so")
	}
	return err
}

func (s *simulated) observe(o submit.Observation) {
	if f, ok := o.Effect.(bundlequeue.Failed[string]); ok {
		s.mu.Lock()
		s.again = append(s.again, f.Bundle)
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
	name := fmt.Sprint("bundle ", *made)
	*made++
	s.oracle.Expect(name)
	return name, true
}

// TestRunnerSimulation drives the queue by the runner, with its goroutines, its window and its time-outs, under virtual time: an hour or
// more of each seed. Every bundle is executed once, and in order.
func TestRunnerSimulation(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulateRunner(t, seed) })
		})
	}
}

func simulateRunner(t *testing.T, seed uint64) {
	time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = float64(seed%4)/10, float64(seed%5)/10, float64(seed%3)/20
	cfg.ForeignLoad, cfg.LastMomentProbability = float64(seed%3)/5, float64(seed%2)/5
	cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 4, 3, float64(seed%3)/10
	chain, err := jamtest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	root := chain.Best()
	s := &simulated{
		driver: jamtest.NewDriver(chain), contexts: make(map[jamq.PackageHash]jamq.RefineContext),
		oracle: jamtest.NewOracle(1, func(b []byte) jamtest.Execution { return jamtest.Execution{Txs: []string{string(b)}} }),
	}
	runnerConfig := submit.DefaultConfig(cfg.Spec)
	runnerConfig.Observe = s.observe
	if s.runner, err = submit.NewRunner[string](runnerConfig, root, s, s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := s.runner.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer s.runner.Stop()

	const bundles, patience = 12, 5000
	made, slots, done := 0, 0, make(chan error, 1)
	go func() {
		done <- s.driver.Run(ctx, func(u jamtest.Update) {
			slots++
			s.oracle.Observe(u)
			if s.slot(ctx, t, u, &made, bundles) || slots > patience {
				cancel()
			}
		})
	}()
	<-done
	if v := s.oracle.Check(); !v.OK() || slots > patience {
		t.Fatalf("after %d slots: %v", slots, &v)
	}
}

// slot feeds one slot and reports whether everything is final.
func (s *simulated) slot(ctx context.Context, t *testing.T, u jamtest.Update, made *int, n int) bool {
	for _, b := range u.Imported {
		if err := s.runner.Import(ctx, b, u.Best); err != nil {
			t.Errorf("import: %v", err)
		}
	}
	if err := s.runner.Finalize(ctx, u.Finalized); err != nil {
		t.Errorf("finalize: %v", err)
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
		stats, err := s.runner.Stats(ctx)
		if err == nil {
			err = s.runner.Enqueue(ctx, bundlequeue.Enqueue[string]{Number: stats.Next, Bundle: name})
		}
		if err != nil {
			t.Errorf("enqueue: %v", err)
			return true
		}
	}
	v := s.oracle.Check()
	return len(v.Executed) == n
}
