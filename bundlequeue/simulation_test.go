package bundlequeue_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
)

var (
	simSeeds = flag.Uint64("sim.seeds", 300, "how many seeds TestSimulation runs")
	simSeed  = flag.Uint64("sim.seed", 0, "the first seed of TestSimulation")
)

// builder is a host of the queue on a simulated chain, in virtual time. Its bundles are the names of what they execute; a name that is
// accumulated twice on the finalized chain was executed twice.
type builder struct {
	chain    *jamtest.Chain
	queue    *bundlequeue.Queue[string]
	clock    jamq.SlotClock
	now      time.Time
	work     []bundlequeue.Effect
	contexts map[jamq.PackageHash]jamq.RefineContext
	again    []string // handed back
	next     int      // how many names were given out
	final    []string // as the finalized chain accumulated them
	failed   int
}

func newBuilder(seed uint64) (*builder, error) {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	pick := func(n uint64, shift uint) uint64 { return (seed * 0x9e3779b97f4a7c15 >> shift) % n }
	cfg.SkipProbability = float64(pick(4, 8)) / 10
	cfg.LossProbability = float64(pick(6, 16)) / 10
	cfg.UnavailableProbability = float64(pick(3, 24)) / 10
	cfg.ReportLatency = [2]jamq.Slot{1, 1 + jamq.Slot(pick(6, 32))}
	cfg.AvailabilityLatency = [2]jamq.Slot{1, 1 + jamq.Slot(pick(5, 40))}
	cfg.FinalityLag = 2 + int(pick(10, 48))
	cfg.ForkProbability, cfg.MaxForkDepth = float64(pick(4, 56))/10, cfg.FinalityLag-1
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	queueConfig := bundlequeue.DefaultConfig(cfg.Spec)
	queueConfig.MaxVersionRetries = int(pick(6, 4))
	queue, err := bundlequeue.New[string](queueConfig, chain.Best())
	if err != nil {
		return nil, err
	}
	b := &builder{chain: chain, queue: queue, clock: jamq.NewSlotClock(cfg.Spec), contexts: make(map[jamq.PackageHash]jamq.RefineContext)}
	b.now = b.clock.Start(chain.Slot())
	return b, nil
}

func (b *builder) step(ev bundlequeue.Event) error {
	effects, err := b.queue.Step(b.now, ev)
	b.work = append(b.work, effects...)
	return err
}

// carry carries out effects until there are none.
func (b *builder) carry() error {
	for len(b.work) > 0 {
		e := b.work[0]
		b.work = b.work[1:]
		var err error
		switch e := e.(type) {
		case bundlequeue.Build[string]:
			err = b.build(e)
		case bundlequeue.Send[string]:
			p := jamtest.Package{Hash: e.Package, Payload: []byte(e.Bundle)}
			p.Context = b.contexts[e.Package]
			failure := b.chain.Submit(p, e.Core, e.Attempt)
			err = b.step(bundlequeue.Sent{Ticket: e.Ticket, OK: failure == nil})
		case bundlequeue.Failed[string]:
			b.again = append(b.again, e.Bundle)
			b.failed++
		}
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			return fmt.Errorf("%v: %w", e, err)
		}
	}
	return nil
}

func (b *builder) build(e bundlequeue.Build[string]) error {
	lookup := b.chain.LookupAnchor()
	context, err := anchor.Pick(b.chain.Anchors(), e.Anchor.Hash, lookup, e.Prerequisites)
	if err != nil {
		return b.step(bundlequeue.BuildFailed{Ticket: e.Ticket})
	}
	hash := jamq.PackageHash(blake2b.Sum256(fmt.Append(nil, e.Number, e.Version, e.Bundle, context)))
	b.contexts[hash] = context
	return b.step(bundlequeue.Built[string]{Ticket: e.Ticket, Package: hash, Context: context, Bundle: e.Bundle})
}

// slot plays one slot: new work if wanted, the chain, and the clock.
func (b *builder) slot(target int) error {
	for b.queue.CanEnqueue() && (len(b.again) > 0 || b.next < target) {
		name := fmt.Sprint("bundle ", b.next)
		if len(b.again) > 0 {
			name, b.again = b.again[0], b.again[1:]
		} else {
			b.next++
		}
		if err := b.step(bundlequeue.Enqueue[string]{Number: b.queue.Next(), Bundle: name}); err != nil {
			return err
		}
	}
	if err := b.carry(); err != nil {
		return err
	}
	u := b.chain.Advance()
	b.now = b.clock.Start(u.Slot)
	for _, block := range u.Imported {
		if err := b.step(bundlequeue.Imported{Block: block, Best: u.Best}); err != nil {
			return err
		}
	}
	if err := b.step(bundlequeue.FinalizedBlock{Hash: u.Finalized}); err != nil {
		return err
	}
	for _, p := range u.Final {
		b.final = append(b.final, string(p.Payload))
	}
	if err := b.step(bundlequeue.Tick{}); err != nil {
		return err
	}
	return b.carry()
}

// simulate plays until n bundles are final, and checks that each was executed once, and in its order.
func simulate(seed uint64, n int) error {
	b, err := newBuilder(seed)
	if err != nil {
		return err
	}
	return b.play(n)
}

func (b *builder) play(n int) error {
	const patience = 20_000
	for slots := 0; len(b.final) < n || b.queue.Pending() > 0 || len(b.again) > 0; slots++ {
		if slots > patience {
			return fmt.Errorf("%d of %d bundles are final after %d slots; %+v", len(b.final), n, slots, b.queue.Stats())
		}
		if err := b.slot(n); err != nil {
			return err
		}
	}
	seen := make(map[string]bool)
	for i, name := range b.final {
		if seen[name] {
			return fmt.Errorf("%q was executed twice", name)
		}
		seen[name] = true
		if want := fmt.Sprint("bundle ", i); b.failed == 0 && name != want {
			return fmt.Errorf("%q was executed in place of %q", name, want)
		}
	}
	if len(seen) != n {
		return fmt.Errorf("%d bundles were executed, want %d", len(seen), n)
	}
	return nil
}

// The simulation notices what the model checker is too small for.
func TestMutationInSimulation(t *testing.T) {
	for seed := range uint64(3000) {
		b, err := newBuilder(seed)
		if err != nil {
			t.Fatal(err)
		}
		bundlequeue.BreakLeaveOut(b.queue)
		if err := b.play(25); err != nil {
			t.Logf("caught by seed %d: %v", seed, err)
			return
		}
	}
	t.Fatal("nobody noticed")
}

// Whatever the chain does, each bundle is executed exactly once. A failing seed is played again by
//
//	go test ./bundlequeue -run TestSimulation -sim.seeds 1 -sim.seed N
func TestSimulation(t *testing.T) {
	for seed := *simSeed; seed < *simSeed+*simSeeds; seed++ {
		if err := simulate(seed, 25); err != nil {
			t.Fatalf("go test ./bundlequeue -run TestSimulation -sim.seeds 1 -sim.seed %d: %v", seed, err)
		}
	}
}
