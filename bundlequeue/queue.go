package bundlequeue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/minheap"
)

// Queue manages the bundles of one rollup until they are final. Create it with [New], or with
// [Restore] from a snapshot. It is deterministic: the same events at the same times always give the
// same effects. It is not safe for concurrent use.
//
// The cost of a step depends on how many bundles its event changes, not on the size of the queue.
type Queue struct {
	cfg  Config
	view *chainview.View // of the JAM chain
	now  instant         // time of the last event

	// items are the bundles in the order of their rollup blocks. The position of a bundle in
	// this order, counted since the queue was created, is called its place. All bundles below
	// the place active are final, and all below frontier are at least guaranteed.
	items            []*item
	firstPlace       uint64 // of items[0]
	active, frontier uint64 // places
	next             uint64 // number of the next bundle
	least            uint64 // number after the last retired bundle

	cores cores

	versions map[jamq.PackageHash]*version // all versions by hash
	builds   map[uint64]*item              // open requests by ticket
	sends    map[uint64]*version
	ticket   uint64 // last ticket issued

	base        common.Hash              // commitment of the bundle before items[0], or zero
	spent       []spent                  // of failed bundles, oldest first
	commitments map[common.Hash]struct{} // of base, items and spent, without zero
	// due is a heap of the bundles with a core, by the time of the next send.
	due minheap.Heap[int64, *item]
	// waiting is a heap of the bundles that need a core, in the order of their rollup
	// blocks. They get free cores in this order.
	waiting minheap.Heap[int64, *item]

	delays *anchor.Delays // between sending and reporting
	// buildTimes are the durations of the last builds in blocks, newest last.
	buildTimes []int
	counts     [NumStates]int
	total      Totals

	// blocked is the first bundle that cannot be built or sent yet, for example because its
	// number is only reserved. All later bundles wait for it. It is nil if there is no such
	// bundle, for example because all cores are in use.
	blocked *item

	// The following fields are used only within a step.
	out     []Effect
	touched []*item
	dueNow  []*item // of sendDue
}

// New returns an empty queue. root is a final JAM block; the host must import all
// blocks after it. The error wraps [ErrInvalidConfig] or jamq.ErrInvalidBlock.
func New(cfg Config, root jamq.Block) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := empty(cfg)
	q.cores.set(q.cfg.Cores)
	var err error
	q.view, err = chainview.New(&q.cfg.Spec, root)
	return q, err
}

// empty returns a queue without cores and without a view of the chain.
func empty(cfg Config) *Queue {
	cfg.Cores = slices.Clone(cfg.Cores)
	q := &Queue{
		cfg: cfg, next: cfg.FirstNumber, least: cfg.FirstNumber,
		versions:    make(map[jamq.PackageHash]*version),
		builds:      make(map[uint64]*item),
		sends:       make(map[uint64]*version),
		commitments: make(map[common.Hash]struct{}),
		delays:      anchor.NewDelays(&cfg.Spec),
	}
	return q
}

// Next returns the number that the next bundle must have.
func (q *Queue) Next() uint64 { return q.next }

// Best returns the head of the best JAM chain that the queue knows.
func (q *Queue) Best() anchor.Point { return q.view.Best() }

// Finalized returns the last finalized JAM block that the queue knows.
func (q *Queue) Finalized() anchor.Point { return q.view.Finalized() }

// Knows reports whether the queue has imported the JAM block with this hash and still remembers it.
func (q *Queue) Knows(hash jamq.HeaderHash) bool { return q.view.Knows(hash) }

// Step processes one event at time now and returns the effects that the host
// must carry out, in order.
//
// Step works in three phases. First, the event changes the known facts. Second,
// Step derives the state of every affected bundle from the best chain; imports,
// reorgs and finality all use this derivation. Third, it schedules builds and
// sends in the order of rollup blocks, while cores are free.
//
// A Send effect cannot be undone: from then on the package counts as sent. A
// driver that must survive a crash therefore records the event durably before
// it carries out the effects: see [AppendRecord].
//
// A bundle fails for one of two reasons only: more than
// Config.MaxVersionRetries of its packages were lost, or the host ordered it
// with GiveUp or Release. Failed builds, packages that are dead when they are
// built, an unreachable network, and stalled finality delay a bundle without
// limit. Use [Queue.Delayed] for an alarm.
//
// The time should not go back. If it goes back by more than a second, the queue
// treats the earlier readings as wrong and shortens all waits.
//
// If Step returns an error, the event has changed nothing, and there are no
// effects. The error wraps an error of this package, or one of package
// chainview if a block does not fit.
func (q *Queue) Step(now time.Time, ev Event) ([]Effect, error) {
	at := q.readClock(now)
	if err := q.apply(at, ev); err != nil {
		return nil, err
	}
	if at < q.now {
		q.clockWentBack(at)
	}
	q.now = at
	q.settle()
	q.finish()
	q.expireReservation()
	q.fail()
	q.schedule()
	q.retire()
	out := q.out
	q.out = nil
	return out, nil
}

// apply is the first half of a step: it takes over the content of one event, such as a JAM
// block or an order of the host. If it returns an error, the queue is unchanged.
func (q *Queue) apply(now instant, ev Event) error {
	switch ev := ev.(type) {
	case Reserve:
		return q.reserve(now, ev)
	case Enqueue:
		return q.enqueue(now, ev)
	case Release:
		return q.release(ev)
	case Rekey:
		return q.rekey(ev)
	case GiveUp:
		return q.giveUp(ev)
	case Adopt:
		return q.adopt(ev)
	case Cores:
		return q.changeCores(ev)
	case Built:
		return q.built(now, ev)
	case BuildFailed:
		return q.buildFailed(now, ev)
	case Sent:
		return q.sent(now, ev)
	case Imported, FinalizedBlock:
		return q.observe(ev)
	case Retry:
		return q.retry(now, ev)
	case Tick:
		return nil
	}
	return fmt.Errorf("%w: %T", ErrUnknownEvent, ev)
}

// observe processes news of the JAM chain.
func (q *Queue) observe(ev Event) (err error) {
	switch ev := ev.(type) {
	case Imported:
		err = q.importBlock(&ev.Block, ev.Best)
	case FinalizedBlock:
		err = q.view.Finalize(ev.Hash)
	}
	if err != nil {
		return err
	}
	// The chain has accumulated a package that the queue considered dead.
	for _, pkg := range q.view.Contradictions() {
		q.total.AccumulatedAfterFailed++
		q.emit(Resurrected{Package: pkg})
	}
	return nil
}

// importBlock adds a JAM block to the view of the chain. It ignores a block that no longer
// matters, because it cannot descend from the finalized block.
func (q *Queue) importBlock(b *jamq.Block, best jamq.HeaderHash) error {
	err := q.view.ImportBest(b, best)
	if !errors.Is(err, chainview.ErrOld) {
		return err
	}
	// Either the block cannot descend from the finalized block, or the block named as best is
	// an ancestor of the finalized block. In the second case, the block is imported and the
	// present best block stays.
	if err := q.view.Import(b); !errors.Is(err, chainview.ErrOld) {
		return err
	}
	// Remember the block as abandoned. If its children arrive too, the view then knows that
	// they are old, instead of asking for their parent.
	q.view.Abandon(b.Hash)
	return nil
}

// at returns the bundle at a position, or nil.
func (q *Queue) at(place uint64) *item {
	if place < q.firstPlace || place-q.firstPlace >= uint64(len(q.items)) {
		return nil
	}
	return q.items[place-q.firstPlace]
}

// end returns the position that the next bundle will get.
func (q *Queue) end() uint64 { return q.firstPlace + uint64(len(q.items)) }

// find returns the bundle with a number, or nil.
func (q *Queue) find(number uint64) *item {
	if len(q.items) == 0 || number < q.items[0].number {
		return nil
	}
	// Numbers are usually consecutive, so the position follows from the number. After a Rekey
	// event they may have gaps; then a search is needed.
	if it := q.at(q.firstPlace + number - q.items[0].number); it != nil && it.number == number {
		return it
	}
	i, found := slices.BinarySearchFunc(q.items, number, func(it *item, n uint64) int { return cmp.Compare(it.number, n) })
	if !found {
		return nil
	}
	return q.items[i]
}

// predecessor returns the bundle before another one, or nil if the queue has none.
func (q *Queue) predecessor(it *item) *item {
	if it.place == q.firstPlace {
		return nil
	}
	return q.at(it.place - 1)
}

// touch marks a bundle, so that settle reviews it in this step.
func (q *Queue) touch(it *item) {
	if !it.touched {
		it.touched = true
		q.touched = append(q.touched, it)
	}
}

// usualEffects is the initial capacity for the effects of a step.
const usualEffects = 6

func (q *Queue) emit(e Effect) {
	if q.out == nil {
		q.out = make([]Effect, 0, usualEffects)
	}
	q.out = append(q.out, e)
}

// retire forgets the oldest final bundles beyond Config.RetentionWindow.
func (q *Queue) retire() {
	for q.active-q.firstPlace > uint64(q.cfg.RetentionWindow) {
		q.retireFirst()
	}
}

// retireFirst forgets the oldest bundle, which is final.
func (q *Queue) retireFirst() {
	it := q.items[0]
	for _, v := range it.versions {
		q.forget(v)
	}
	q.counts[it.state]--
	q.least = it.number + 1
	q.setBase(it.commitment)
	q.items[0] = nil
	q.items = q.items[1:]
	q.firstPlace++
}

// forget removes a package from all indexes and from the view.
func (q *Queue) forget(v *version) {
	delete(q.versions, v.pkg)
	delete(q.sends, v.ticket)
	q.view.Forget(v.pkg)
}
