package submit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// parcel is a bundle; once it is built it has its refine context with it.
type parcel struct {
	Name    string
	Context jamq.RefineContext
}

func (p parcel) commitment() common.Hash { return crypto.Keccak256Hash([]byte(p.Name)) }

// parcels is the codec of parcels.
type parcels struct{}

func (parcels) AppendBundle(b []byte, p parcel) []byte {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return append(b, raw...)
}

func (parcels) DecodeBundle(b []byte) (p parcel, err error) {
	err = json.Unmarshal(b, &p)
	return p, err
}

// world survives the builder's process: the chain, and the names of all parcels that must be
// executed.
type world struct {
	driver *jamtest.Driver
	root   jamq.Block
	disk   journal.Memory

	mu      sync.Mutex
	names   []string
	oracle  *jamtest.Oracle
	history []jamtest.Update
	moved   chan struct{} // holds a token when history grew
}

func newWorld(t *testing.T, seed uint64, bundles int) *world {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = float64(seed%3)/10, float64(seed%4)/10, float64(seed%2)/20
	cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 3, 2, float64(seed%2)/10
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	w := &world{root: chain.Best(), driver: jamtest.NewDriver(chain), moved: make(chan struct{}, 1)}
	w.oracle = jamtest.NewOracle(1, func(b []byte) jamtest.Execution { return jamtest.Execution{Txs: []string{string(b)}} })
	for i := range bundles {
		w.names = append(w.names, fmt.Sprint("bundle ", i))
	}
	w.oracle.Expect(w.names...)
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
	stop context.CancelFunc

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

// Append and Replace implement submit.Journal: records written before the process died are on disk.
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

// Build implements submit.Builder.
func (l *life) Build(_ context.Context, r bundlequeue.Build[parcel]) (submit.Package[parcel], error) {
	// Different build times make some packages ready while the window is open.
	time.Sleep(time.Duration(r.Number*7%5) * time.Second)
	recent, lookup := l.driver.Anchors()
	c, err := anchor.Pick(recent, r.Anchor.Hash, lookup, r.Prerequisites)
	if err != nil {
		return submit.Package[parcel]{}, err
	}
	p := jamtest.NewPackage(1, c, []byte(r.Bundle.Name))
	return submit.Package[parcel]{Hash: p.Hash, Context: c, Bundle: parcel{r.Bundle.Name, c}}, nil
}

// Submit implements submit.Submitter.
func (l *life) Submit(_ context.Context, r bundlequeue.Send[parcel]) error {
	return l.moment(func() error {
		return l.driver.Submit(jamtest.Package{Hash: r.Package, Context: r.Bundle.Context, Service: 1, Payload: []byte(r.Bundle.Name)}, r.Core, r.Attempt)
	})
}

// run lives until it dies, everything is executed, or ctx ends. It returns how many moments there
// were.
func (l *life) run(ctx context.Context, t *testing.T) int {
	ctx, l.stop = context.WithCancel(ctx)
	defer l.stop()
	cfg := submit.DefaultConfig(jamq.Tiny())
	var told uint64
	cfg.Observe = func(o submit.Observation) {
		if told > 0 && o.Number > 0 && o.Number != told+1 {
			t.Errorf("observation %d follows %d", o.Number, told)
		}
		told = max(told, o.Number)
	}
	runner, err := submit.OpenRunner(cfg, l.root, submit.Durability[parcel]{Journal: l, Codec: parcels{}, SnapshotEvery: 40}, l, l)
	if errors.Is(err, errDied) {
		return l.moments
	}
	require.NoError(t, err)
	at := runner.Recovered()
	require.NoError(t, runner.Start(ctx))
	defer runner.Stop()
	for fed := 0; ctx.Err() == nil; {
		for _, u := range l.since(fed) {
			fed++
			l.feed(ctx, runner, u, at.Finalized.Slot)
		}
		l.enqueue(ctx, runner)
		if len(l.verdict().Executed) == len(l.names) {
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

// feed tells the runner what a slot brought, if it does not know it as final already.
func (l *life) feed(ctx context.Context, runner *submit.Runner[parcel], u jamtest.Update, final jamq.Slot) {
	for _, b := range u.Imported {
		if b.Slot > final {
			_ = runner.Import(ctx, b, u.Best)
		}
	}
	_ = runner.Finalize(ctx, u.Finalized)
}

// enqueue adds what the queue does not have, in order: the host knows it by the commitment.
func (l *life) enqueue(ctx context.Context, runner *submit.Runner[parcel]) {
	infos, err := runner.Infos(ctx)
	if err != nil {
		return
	}
	has := make(map[common.Hash]bool)
	for _, info := range infos {
		has[info.Commitment] = true
	}
	for _, name := range l.names {
		p := parcel{Name: name}
		if has[p.commitment()] {
			continue
		}
		stats, err := runner.Stats(ctx)
		if err != nil || runner.Enqueue(ctx, bundlequeue.Enqueue[parcel]{Number: stats.Next, Commitment: p.commitment(), Bundle: p}) != nil {
			return // full, or dead
		}
	}
}

// crash runs a builder that dies once, at some moment, and another that takes over. It returns the
// moments of the first.
func crash(t *testing.T, seed uint64, diesAt int) (moments int) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
		w := newWorld(t, seed, 5)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
		chain := make(chan struct{})
		go func() {
			defer close(chain)
			_ = w.driver.Run(ctx, w.take)
		}()
		moments = (&life{world: w, diesAt: diesAt}).run(ctx, t)
		if diesAt > 0 {
			time.Sleep(time.Duration(diesAt%30) * time.Second) // no process runs meanwhile
			(&life{world: w}).run(ctx, t)
		}
		if v := w.verdict(); !v.OK() || len(v.Executed) != len(w.names) {
			t.Errorf("seed %d, died at %d of %d: %v", seed, diesAt, moments, &v)
		}
		cancel()
		<-chain
	})
	return moments
}

// TestCrashSweep: the process dies before and after any write of its journal, and before and after
// any send: nothing is lost, nothing is executed twice, and the observer can tell what it has heard
// already.
func TestCrashSweep(t *testing.T) {
	for seed := range uint64(6) {
		moments := crash(t, seed, 0)
		for at := 1; at <= moments; at++ {
			crash(t, seed, at)
		}
		t.Logf("seed %d: %d moments to die at", seed, moments)
	}
}
