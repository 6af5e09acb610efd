package bundlequeue

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/minheap"
)

// Queue follows the bundles of one rollup; B is the host's bundle type. It is deterministic: the
// same events at the same times give the same effects. It is not safe for concurrent use.
//
// A step costs what its event touches, whatever the number of bundles in the queue.
type Queue[B any] struct {
	cfg      Config
	evidence Evidence
	blocks   Blocks  // of the evidence
	now      instant // of the last event

	// items are the bundles in their order. Those before active are finalized, those before
	// frontier are at least guaranteed.
	items            []*item[B]
	firstPlace       uint64 // of items[0]
	active, frontier uint64 // places
	next             uint64 // the number of the bundle to come
	least            uint64 // the number after the last bundle that was retired

	// depth is how many bundles may wait; resized says that Resize set another one than configured.
	depth   int
	resized bool
	cores   cores[B]

	versions map[jamq.PackageHash]*version[B] // every version of every bundle held
	builds   map[uint64]*item[B]              // open requests by ticket
	sends    map[uint64]*version[B]
	ticket   uint64                        // the last one given out
	due      minheap.Heap[int64, *item[B]] // bundles with a core, by the time of their next send
	waiting  minheap.Heap[int64, *item[B]] // bundles that are not guaranteed and hold no core, by place

	returned []Failed[B]    // not taken back yet, in order
	delays   *anchor.Delays // between sending and reporting
	// buildTimes are how many blocks the last builds took, newest last: see BuildBlocks.
	buildTimes []int
	counts     [NumStates]int
	total      Totals

	// blocked is the bundle at which the last step stopped starting others; nil if cores ran out
	// first.
	blocked *item[B]

	// Used within a step only.
	out     []Effect
	touched []*item[B]
	dueNow  []*item[B] // of sendDue
}

// New returns an empty queue that judges by imported JAM blocks, from root on, a final block. The
// error wraps [ErrInvalidConfig] or jamq.ErrInvalidBlock.
func New[B any](cfg Config, root jamq.Block) (*Queue[B], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := newChain(cfg.Spec, root)
	if err != nil {
		return nil, err
	}
	return empty[B](cfg, c), nil
}

// NewWith returns an empty queue that judges by other evidence than imported blocks, which must be
// new and serve no other queue: see package told. The error wraps [ErrInvalidConfig].
func NewWith[B any](cfg Config, evidence Evidence) (*Queue[B], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return empty[B](cfg, evidence), nil
}

func empty[B any](cfg Config, evidence Evidence) *Queue[B] {
	cfg.Cores = slices.Clone(cfg.Cores)
	q := &Queue[B]{
		cfg: cfg, evidence: evidence, blocks: evidence.Blocks(),
		next: cfg.FirstNumber, least: cfg.FirstNumber, depth: cfg.MaxQueueDepth,
		versions: make(map[jamq.PackageHash]*version[B]),
		builds:   make(map[uint64]*item[B]),
		sends:    make(map[uint64]*version[B]),
		delays:   anchor.NewDelays(&cfg.Spec),
	}
	q.cores.set(cfg.Cores)
	return q
}

// Next returns the number that the next bundle must have.
func (q *Queue[B]) Next() uint64 { return q.next }

// Best returns the head of the best JAM chain as the queue knows it; zero if its evidence knows no
// blocks.
func (q *Queue[B]) Best() anchor.Point { return q.blocks.Best() }

// Finalized returns the newest final block of the JAM chain as the queue knows it; zero if its
// evidence knows no blocks.
func (q *Queue[B]) Finalized() anchor.Point { return q.blocks.Finalized() }

// Step takes one event at time now and returns what to do, in order. Time should not go back. If it
// does by more than a second, the clock was wrong before, and all waits are shortened.
//
// Each event is handled in three parts. First it changes the facts. Then the state of every bundle
// that they touch is derived anew from the best chain; so imports, reorgs and finality need no
// cases of their own. Then builds and sends are scheduled in the order of rollup blocks, as far as
// cores are free.
//
// A Send effect is the point of no return: from then on its package counts as out. A driver that
// must survive a crash makes the event durable before it carries out the effects: see
// [AppendRecord].
//
// A bundle ends as Failed for one of two causes only: more than Config.MaxVersionRetries of its
// packages were lost, or the host ordered it by GiveUp or Release. Builds that fail, packages that
// are dead when they are built, an unreachable network and stalled finality delay a bundle without
// limit: [Queue.Delayed] is the alarm.
//
// A refused event changes nothing and returns no effects. The error wraps one of this package's
// errors, or of chainview's for a block that does not fit.
func (q *Queue[B]) Step(now time.Time, ev Event) ([]Effect, error) {
	at := q.readClock(now)
	if err := q.apply(at, ev); err != nil {
		return nil, err
	}
	if at < q.now {
		q.clockWentBack(at)
	}
	q.now = at
	q.evidence.Advance(at.time())
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

// apply changes the facts by one event, or refuses it.
func (q *Queue[B]) apply(now instant, ev Event) error {
	switch ev := ev.(type) {
	case Reserve:
		return q.reserve(now, ev)
	case Enqueue[B]:
		return q.enqueue(now, ev)
	case Release:
		return q.release(ev)
	case Rekey:
		return q.rekey(ev)
	case GiveUp:
		return q.giveUp(ev)
	case Resize:
		return q.resize(ev)
	case Cores:
		return q.changeCores(ev)
	case Built[B]:
		return q.built(now, ev)
	case BuildFailed:
		return q.buildFailed(now, ev)
	case Sent:
		return q.sent(now, ev)
	case Imported, FinalizedBlock, Continue, Told:
		effects, err := q.evidence.Observe(now.time(), ev)
		q.out = append(q.out, effects...)
		return err
	case Retry:
		return q.retry(now, ev)
	case TakenBack:
		return q.takenBack(ev)
	case Tick:
		return nil
	}
	return fmt.Errorf("%w: %T", ErrUnknownEvent, ev)
}

// at returns the item at a place, or nil if it is not in the queue.
func (q *Queue[B]) at(place uint64) *item[B] {
	if place < q.firstPlace || place-q.firstPlace >= uint64(len(q.items)) {
		return nil
	}
	return q.items[place-q.firstPlace]
}

// end returns the place of the item to come.
func (q *Queue[B]) end() uint64 { return q.firstPlace + uint64(len(q.items)) }

// find returns the item with a number, or nil. Numbers have no gaps unless Rekey made some, so the
// first guess is nearly always right.
func (q *Queue[B]) find(number uint64) *item[B] {
	if len(q.items) == 0 || number < q.items[0].number {
		return nil
	}
	if it := q.at(q.firstPlace + number - q.items[0].number); it != nil && it.number == number {
		return it
	}
	i, found := slices.BinarySearchFunc(q.items, number, func(it *item[B], n uint64) int { return cmp.Compare(it.number, n) })
	if !found {
		return nil
	}
	return q.items[i]
}

// predecessor returns the bundle before one, or nil if there is none or it was retired as final.
func (q *Queue[B]) predecessor(it *item[B]) *item[B] {
	if it.place == q.firstPlace {
		return nil
	}
	return q.at(it.place - 1)
}

// touch puts a bundle on the list of those to review in this step.
func (q *Queue[B]) touch(it *item[B]) {
	if !it.touched {
		it.touched = true
		q.touched = append(q.touched, it)
	}
}

// usualEffects is how many effects most steps that have any return at most.
const usualEffects = 6

func (q *Queue[B]) emit(e Effect) {
	if q.out == nil {
		q.out = make([]Effect, 0, usualEffects)
	}
	q.out = append(q.out, e)
}

// retire forgets finalized bundles beyond the retention window.
func (q *Queue[B]) retire() {
	for q.active-q.firstPlace > uint64(q.cfg.RetentionWindow) {
		it := q.items[0]
		for _, v := range it.versions {
			q.forget(v)
		}
		q.counts[it.state]--
		q.least = it.number + 1
		q.items[0] = nil
		q.items = q.items[1:]
		q.firstPlace++
	}
}

// forget drops all that the queue knows of a version.
func (q *Queue[B]) forget(v *version[B]) {
	delete(q.versions, v.pkg)
	delete(q.sends, v.ticket)
	q.evidence.Forget(v.pkg)
}
