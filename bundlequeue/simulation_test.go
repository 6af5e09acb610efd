package bundlequeue_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/jamtest"
)

var (
	simSeeds = flag.Uint64("sim.seeds", 0, "how many seeds TestSimulation runs; 0: 12, or 60 in the deep stage")
	simSeed  = flag.Uint64("sim.seed", 0, "the first seed of TestSimulation")
)

// rollup is the simulated builder's service.
const rollup jamq.ServiceID = 1

// builder is a host of the queue on a simulated chain, in virtual time. It is slow, forgetful and
// badly informed: builds take slots and fail, sends fail, blocks come late, twice or not at all,
// and now and then it is killed and starts again from a snapshot.
type builder struct {
	seed   uint64
	random *rand.Rand
	chain  *jamtest.Chain
	feed   *jamtest.Feed
	oracle *jamtest.Oracle
	cfg    bundlequeue.Config
	queue  *bundlequeue.Queue
	twin   *twin
	clock  jamq.SlotClock
	now    time.Time

	trouble  *trouble
	restarts float64              // the chance of a restart in a slot
	failures float64              // the chance that a build fails; twice that for sends
	work     []bundlequeue.Effect // to be carried out now
	slow     []slowBuild          // builds that take longer
	news     []jamtest.Update     // not heard yet
	causes   causes
	contexts map[jamq.PackageHash]jamq.RefineContext
	again    []string   // handed back
	operator *rand.Rand // of the configuration; nil: none
	next     int        // how many names were given out
	serial   int64      // of the last commitment
	executed int        // names on the finalized chain
}

// newBuilder returns a builder with a mixture of faults.
func newBuilder(seed uint64) (*builder, error) {
	b := &builder{seed: seed, random: rand.New(rand.NewPCG(seed, 2))}
	// Each fault is absent in many seeds, so that every mixture occurs.
	some := func(most float64) float64 { return max(0, b.random.Float64()*2-1) * most }
	spec := jamq.Tiny()
	if seed%5 == 2 { // Gray Paper 0.8.0, with a core that is inactive in some epochs
		spec.Cores, spec.Validators = 4, 12
	}
	cfg := jamtest.DefaultConfig(spec, seed)
	if seed%5 == 2 {
		cfg.SetSizes = []int{12, 6, 9}
	}
	cfg.SkipProbability, cfg.SkipBurst[1] = some(0.4), 1+b.random.IntN(6)
	cfg.LossProbability, cfg.DelayProbability, cfg.Delay[1] = some(0.6), some(0.3), 8
	cfg.LastMomentProbability = some(0.4)
	cfg.UnavailableProbability, cfg.VerdictProbability = some(0.3), some(0.1)
	cfg.ReportLatency[1], cfg.AvailabilityLatency[1] = jamq.Slot(1+b.random.IntN(6)), jamq.Slot(1+b.random.IntN(5))
	cfg.ForeignLoad = some(0.5)
	cfg.FinalityLag = 2 + b.random.IntN(8)
	cfg.FinalityStallProbability, cfg.FinalityStall = some(0.05), cfg.Spec.EpochLength
	if seed%5 == 4 { // longer than a lookup anchor lives
		cfg.FinalityStall = 2 * cfg.Spec.MaxLookupAnchorAge
	}
	cfg.MaxForkDepth, cfg.ForkProbability = cfg.FinalityLag-1, some(0.3)
	faults := jamtest.FeedFaults{Duplicate: some(0.2), Late: some(0.2), Batch: some(0.2), Miss: some(0.2)}
	b.cfg = bundlequeue.DefaultConfig(cfg.Spec)
	b.cfg.MaxVersionRetries = b.random.IntN(6)
	b.cfg.RetentionWindow = []int{0, 1, 100}[b.random.IntN(3)]
	b.random.IntN(2) // of an option that is gone, so that seeds of old findings stay the same
	b.trouble = newTrouble(seed)
	b.restarts, b.failures = 0.02, 0.05
	return b, b.begin(cfg, faults)
}

// begin connects the builder with a new chain.
func (b *builder) begin(cfg jamtest.Config, faults jamtest.FeedFaults) (err error) {
	b.contexts = make(map[jamq.PackageHash]jamq.RefineContext)
	b.oracle = jamtest.NewOracle(rollup, func(payload []byte) jamtest.Execution { return jamtest.Execution{Txs: []string{string(payload)}} })
	if b.chain, err = jamtest.New(cfg); err != nil {
		return err
	}
	if b.feed, err = jamtest.NewFeed(faults, b.seed); err != nil {
		return err
	}
	if b.queue, err = bundlequeue.New(b.cfg, b.chain.Best()); err != nil {
		return err
	}
	if b.twin, err = newTwin(b.seed, b.cfg, b.chain.Best()); err != nil {
		return err
	}
	b.clock = jamq.NewSlotClock(cfg.Spec)
	b.now = b.clock.Start(b.chain.Slot())
	b.causes = newCauses(b.cfg.MaxVersionRetries)
	return nil
}

func (b *builder) chance(p float64) bool { return b.random.Float64() < p }

func (b *builder) step(ev bundlequeue.Event) error {
	effects, err := b.queue.Step(b.now, ev)
	b.work = append(b.work, effects...)
	if err := b.twin.follow(b.now, ev, b.queue, effects, err); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := b.queue.Check(); err != nil {
		return err
	}
	return b.causes.observe(ev, effects)
}

// carry carries out effects until there are none.
func (b *builder) carry() error {
	var returned []bundlequeue.Failed
	// Returned transactions go before waiting ones. A bundle with a lower
	// number that fails later goes before those that failed earlier.
	defer func() {
		slices.SortStableFunc(returned, func(x, y bundlequeue.Failed) int { return cmp.Compare(x.Number, y.Number) })
		var names []string
		for i := range returned {
			names = append(names, string(returned[i].Bundle))
		}
		b.again = append(names, b.again...)
	}()
	for len(b.work) > 0 {
		e := b.work[0]
		b.work = b.work[1:]
		var err error
		switch e := e.(type) {
		case bundlequeue.Build:
			build, failed := b.begun(e)
			if failed != nil {
				return fmt.Errorf("%v: %w", e, failed)
			}
			if slots := b.trouble.buildTime(); slots > 0 {
				build.ready = b.chain.Slot().Add(slots)
				b.slow = append(b.slow, build)
				continue
			}
			err = b.build(build)
		case bundlequeue.Send:
			err = b.send(e)
		case bundlequeue.Failed:
			returned = append(returned, e)
		}
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			return fmt.Errorf("%v: %w", e, err)
		}
	}
	return nil
}

// begun returns a build with the refine context for which it was asked.
func (b *builder) begun(e bundlequeue.Build) (slowBuild, error) {
	if e.Anchor.Height < e.MinAnchor.Height {
		return slowBuild{}, errors.New("the anchor that is asked for is too old")
	}
	// With stalled finality, packages die by D3.
	context, err := anchor.Pick(b.chain.Anchors(), e.Anchor.Hash, b.chain.LookupAnchor(), e.Prerequisites)
	return slowBuild{Build: e, context: context, fails: err != nil}, nil
}

// build answers as it was asked, however late that is. The queue never calls
// that a mistake of the host.
func (b *builder) build(e slowBuild) error {
	if e.fails || b.chance(b.failures) {
		return b.step(bundlequeue.BuildFailed{Ticket: e.Ticket})
	}
	p := jamtest.NewPackage(rollup, e.context, []byte(e.Build.Bundle))
	if _, twice := b.contexts[p.Hash]; twice {
		return b.step(bundlequeue.BuildFailed{Ticket: e.Ticket}) // equal bytes are an equal package
	}
	b.contexts[p.Hash] = e.context
	return b.step(bundlequeue.Built{Ticket: e.Ticket, Package: p.Hash, Context: e.context, Bundle: e.Build.Bundle})
}

func (b *builder) send(e bundlequeue.Send) error {
	if b.trouble.unreachable > 0 {
		return b.step(bundlequeue.Sent{Ticket: e.Ticket, Refused: b.trouble.random.IntN(50) == 0})
	}
	p := jamtest.Package{Hash: e.Package, Context: b.contexts[e.Package], Service: rollup, Payload: []byte(e.Bundle)}
	if err := b.chain.Submit(p, e.Core, e.Attempt); err != nil {
		return err
	}
	// A failed send may have arrived nevertheless.
	return b.step(bundlequeue.Sent{Ticket: e.Ticket, OK: !b.chance(2 * b.failures)})
}

// restart kills the builder and starts it again from a snapshot: it carries out once more what was
// open.
func (b *builder) restart() error {
	snapshot := b.queue.AppendSnapshot(nil)
	if r := b.operator; r != nil {
		b.cfg.MaxQueueDepth, b.cfg.RetentionWindow = 1+r.IntN(20), r.IntN(6)
		b.cfg.MaxSubmitRetries = r.IntN(5)
		b.cfg.Cores = [][]jamq.CoreIndex{{0}, {1}, {0, 1}, {1, 0}}[r.IntN(4)]
	}
	queue, err := bundlequeue.Restore(b.cfg, snapshot)
	if err != nil {
		return err
	}
	// The failed bundles of the last step are carried out again, as after Replay.
	failed := slices.DeleteFunc(b.work, func(e bundlequeue.Effect) bool { _, is := e.(bundlequeue.Failed); return !is })
	b.queue, b.slow, b.work = queue, nil, append(failed, queue.Open()...)
	if b.operator != nil {
		if err := b.twin.restart(b.cfg); err != nil {
			return err
		}
	}
	return b.carry()
}

// hear takes an update as the feed delivers it.
func (b *builder) hear(u jamtest.Update) error {
	for _, block := range u.Imported {
		if err := b.fetch(block); err != nil {
			return err
		}
	}
	best, ok := b.chain.Block(u.Best)
	if !ok {
		return fmt.Errorf("best block %s is gone", u.Best)
	}
	if err := b.fetch(best); err != nil {
		return err
	}
	for _, ev := range []bundlequeue.Event{bundlequeue.Imported{Block: best, Best: u.Best}, bundlequeue.FinalizedBlock{Hash: u.Finalized}} {
		err := b.step(ev)
		if err != nil && !errors.Is(err, chainview.ErrOld) && !errors.Is(err, chainview.ErrConflict) && !errors.Is(err, chainview.ErrUnknownBlock) && !errors.Is(err, chainview.ErrMissingParent) {
			// The queue does not know the block any more, or never imported it.
			return err
		}
	}
	return nil
}

// fetch imports a block, and before it those that were missed.
func (b *builder) fetch(block jamq.Block) error {
	missing := []jamq.Block{block}
	for len(missing) > 0 {
		next := missing[len(missing)-1]
		err := b.step(bundlequeue.Imported{Block: next, Best: b.queue.Best().Hash})
		var gap *chainview.MissingError
		if errors.As(err, &gap) {
			parent, ok := b.chain.Block(gap.Missing)
			if !ok || len(missing) > 2000 {
				return nil // so old that it was pruned: news of long ago
			}
			missing = append(missing, parent)
			continue
		}
		if errors.Is(err, chainview.ErrOld) {
			return nil
		}
		if err != nil {
			return err
		}
		missing = missing[:len(missing)-1]
	}
	return nil
}

// slot plays one slot: new work if wanted, the chain, and the clock.
func (b *builder) slot(target int) error {
	for b.queue.CanEnqueue() && (len(b.again) > 0 || b.next < target) {
		name := fmt.Sprint("bundle ", b.next)
		if len(b.again) > 0 {
			name, b.again = b.again[0], b.again[1:]
		} else {
			b.next++
			b.oracle.Expect(name)
		}
		b.serial++
		ev := bundlequeue.Enqueue{
			Number: b.queue.Next(), Commitment: common.BigToHash(big.NewInt(b.serial)), Parent: b.queue.Head(), Bundle: []byte(name),
		}
		if err := b.step(ev); err != nil {
			return err
		}
	}
	if err := b.makeTrouble(); err != nil {
		return err
	}
	var ready []slowBuild
	b.slow = slices.DeleteFunc(b.slow, func(s slowBuild) bool {
		if b.chain.Slot() < s.ready {
			return false
		}
		ready = append(ready, s)
		return true
	})
	for _, e := range ready {
		if err := b.build(e); err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			return fmt.Errorf("%v: %w", e, err)
		}
	}
	if err := b.carry(); err != nil {
		return err
	}
	u := b.chain.Advance()
	b.now = b.clock.Start(u.Slot)
	b.oracle.Observe(u)
	b.executed += len(u.Final)
	b.news = append(b.news, b.feed.Push(u)...)
	for len(b.news) > 0 && b.trouble.deaf == 0 {
		heard := b.news[0]
		b.news = b.news[1:]
		if err := b.hear(heard); err != nil {
			return err
		}
	}
	if err := b.step(bundlequeue.Tick{}); err != nil {
		return err
	}
	if b.chance(b.restarts) {
		return b.restart()
	}
	return b.carry()
}

// play plays until n bundles are final, and asks the oracle whether each was executed once, and in
// its order.
func (b *builder) play(n int) error {
	// Without retries, on a chain that skips three of four slots, a bundle
	// takes a thousand steps.
	const maxSlots = 400_000
	for slots := 0; b.executed < n || b.queue.Pending() > 0 || len(b.again) > 0; slots++ {
		if slots > maxSlots {
			return fmt.Errorf("not all are final after %d slots: %+v", slots, b.queue.Stats())
		}
		if err := b.slot(n); err != nil {
			return err
		}
	}
	if v := b.oracle.Check(); !v.OK() {
		return errors.New(v.String())
	}
	if t := b.queue.Stats().Totals; t.DuplicateAccumulateRejected > 0 {
		return fmt.Errorf("the queue saw %d duplicates", t.DuplicateAccumulateRejected)
	}
	return nil
}

func simulate(seed uint64) error {
	b, err := newBuilder(seed)
	if err != nil {
		return err
	}
	return b.play(25)
}

// TestSimulationUnderOtherConfigurations starts the queue again under other limits and other cores
// than before, as operators do.
func TestSimulationUnderOtherConfigurations(t *testing.T) {
	for seed := range uint64(repeat.Times(5, 60)) {
		b, err := newBuilder(seed)
		require.NoError(t, err)
		b.operator, b.restarts = rand.New(rand.NewPCG(seed, 3)), 0.1
		if err := b.play(25); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Seeds that once found errors: anchors below MinAnchor after a restart, a
// bundle that failed later put behind the others, a refused answer to a request
// for an anchor that was forgotten meanwhile, a restored queue that wrote
// abandoned blocks in another order, and a snapshot that could not be opened.
func TestSimulationOfOldFindings(t *testing.T) {
	t.Parallel()
	seeds := []uint64{3869, 6515, 11015, 11100, 3, 20, 166, 780}
	for _, seed := range seeds[:repeat.Times(len(seeds)/4, len(seeds))] {
		if err := simulate(seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestSimulation runs thousands of seeds. For any behavior of chain, network
// and host, each bundle is executed exactly once, in order, and fails only
// after losses. A failing seed prints the command that repeats it.
// JAMQ_SIM_HOURS sets a duration in hours.
func TestSimulation(t *testing.T) {
	t.Parallel()
	seeds := *simSeeds
	if seeds == 0 {
		seeds = uint64(repeat.Times(12, 60))
	}
	until := time.Now()
	if text := os.Getenv("JAMQ_SIM_HOURS"); text != "" {
		hours, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("JAMQ_SIM_HOURS is %q, want a number", text)
		}
		until = until.Add(time.Duration(hours * float64(time.Hour)))
	}
	seed := *simSeed
	for ; seed < *simSeed+seeds || time.Now().Before(until); seed++ {
		if err := simulate(seed); err != nil {
			t.Fatalf("go test ./bundlequeue -run TestSimulation -sim.seeds 1 -sim.seed %d: %v", seed, err)
		}
	}
	t.Logf("%d seeds", seed-*simSeed)
}
