package bundlequeue

import (
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// Queue follows the bundles of one rollup; B is the host's bundle type. It is deterministic: the same events at the same
// times give the same effects. It is not safe for concurrent use.
type Queue[B any] struct {
	cfg  Config
	view *chainview.View
	// items are the bundles by number, without gaps; those before active are finalized.
	items  []*item[B]
	base   uint64 // number of items[0]
	active int
	ticket uint64 // the last one given out
	// floor is the block by which all versions of failed bundles are dead. Their transactions may come back in new
	// bundles, so no package is anchored before it.
	floor anchor.Point
	total Totals
}

// New returns an empty queue whose view of the JAM chain begins at root, a final block.
// The error wraps [ErrInvalidConfig] or jamq.ErrInvalidBlock.
func New[B any](cfg Config, root jamq.Block) (*Queue[B], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Cores = slices.Clone(cfg.Cores)
	view, err := chainview.New(&cfg.Spec, root)
	if err != nil {
		return nil, err
	}
	return &Queue[B]{cfg: cfg, view: view, base: cfg.FirstNumber}, nil
}

// Next returns the number that the next enqueued bundle must have.
func (q *Queue[B]) Next() uint64 { return q.base + uint64(len(q.items)) }

// Best returns the head of the best JAM chain as the queue knows it.
func (q *Queue[B]) Best() anchor.Point { return q.view.Best() }

// Step takes one event at time now and returns what to do, in order. Time must not go back between calls.
//
// Each event is handled in three parts. First it changes the facts. Then every bundle's state is derived anew from the
// best chain, so that imports, reorgs and finality need no cases of their own. Then builds and sends are scheduled in
// the order of rollup blocks, as far as cores are free.
//
// A Send effect is the point of no return: from then on its package counts as out for ever. A driver that must survive a
// crash makes the event durable before it carries out the effects.
//
// A refused event changes nothing and returns no effects. The error wraps one of this package's errors, or of
// chainview's for a block that does not fit.
func (q *Queue[B]) Step(now time.Time, ev Event) ([]Effect, error) {
	if err := q.apply(now, ev); err != nil {
		return nil, err
	}
	var out []Effect
	q.settle(now, &out)
	q.fail(&out)
	q.schedule(now, &out)
	q.retire()
	return out, nil
}

// apply changes the facts by one event, or refuses it.
func (q *Queue[B]) apply(now time.Time, ev Event) error {
	switch ev := ev.(type) {
	case Enqueue[B]:
		return q.enqueue(ev)
	case Built[B]:
		return q.built(now, ev)
	case BuildFailed:
		it := q.building(ev.Ticket)
		if it == nil {
			return fmt.Errorf("%w: no build has ticket %d", ErrNotExpected, ev.Ticket)
		}
		it.request = nil
		it.buildFailures++
		it.notBefore = now.Add(q.cfg.backoff(it.buildFailures, it.number))
		return nil
	case Sent:
		return q.sent(now, ev)
	case Imported:
		return q.view.ImportBest(&ev.Block, ev.Best)
	case FinalizedBlock:
		return q.view.Finalize(ev.Hash)
	case Tick:
		return nil
	}
	return fmt.Errorf("%w: %T", ErrUnknownEvent, ev)
}

func (q *Queue[B]) enqueue(ev Enqueue[B]) error {
	if want := q.Next(); ev.Number != want {
		return fmt.Errorf("%w: bundle %d, want %d", ErrWrongNumber, ev.Number, want)
	}
	if !q.CanEnqueue() {
		return fmt.Errorf("%w: %d bundles wait already", ErrQueueFull, q.cfg.MaxQueueDepth)
	}
	q.items = append(q.items, &item[B]{number: ev.Number, commitment: ev.Commitment, bundle: ev.Bundle})
	q.total.Enqueued++
	return nil
}

// building returns the bundle whose outstanding build has the ticket, or nil.
func (q *Queue[B]) building(ticket uint64) *item[B] {
	for _, it := range q.items[q.active:] {
		if it.request != nil && it.request.ticket == ticket {
			return it
		}
	}
	return nil
}

// built accepts a package, or refuses what must not be sent. One that was overtaken by a reorg while it was being built
// is dropped without an error: the host did nothing wrong.
func (q *Queue[B]) built(now time.Time, ev Built[B]) error {
	it := q.building(ev.Ticket)
	if it == nil {
		return fmt.Errorf("%w: no build has ticket %d", ErrNotExpected, ev.Ticket)
	}
	r := it.request
	if !slices.Equal(ev.Context.Prerequisites, r.prerequisites) {
		return fmt.Errorf("%w: bundle %d names %d prerequisites, want exactly the %d asked for", ErrInadmissible, it.number, len(ev.Context.Prerequisites), len(r.prerequisites))
	}
	if q.view.Watched(ev.Package) {
		return fmt.Errorf("%w: bundle %d: package %s was built before; its anchor or content must differ", ErrInadmissible, it.number, ev.Package)
	}
	at, onChain := q.view.Locate(ev.Context.Anchor)
	if onChain && at.Height < r.minAnchor.Height {
		return fmt.Errorf("%w: bundle %d is anchored at height %d, want at least %d, where its earlier versions are dead", ErrInadmissible, it.number, at.Height, r.minAnchor.Height)
	}
	it.request, it.buildFailures = nil, 0
	if !onChain || !q.fits(it, at, r) {
		it.notBefore = now.Add(q.cfg.BackoffBase)
		return nil
	}
	it.lastVersion = r.version
	v := &version[B]{number: r.version, pkg: ev.Package, context: ev.Context, bundle: ev.Bundle, nextSend: now}
	v.context.Prerequisites = slices.Clone(ev.Context.Prerequisites)
	it.versions = append(it.versions, v)
	q.view.Watch(v.pkg, chainview.Package{
		Anchor:           ev.Context.Anchor,
		AnchorHeight:     at.Height,
		LookupAnchorSlot: ev.Context.LookupAnchorSlot,
		Prerequisites:    v.context.Prerequisites,
	})
	q.total.Built++
	return nil
}

// fits reports whether a package anchored at a block of the best chain still serves: the evidence that its request rested
// on is on the best chain, and it follows its parent's live version.
func (q *Queue[B]) fits(it *item[B], at anchor.Point, r *request) bool {
	if !r.minAnchor.IsZero() && !q.view.OnBest(r.minAnchor) {
		return false
	}
	p := q.parent(int(it.number - q.base))
	if p == nil {
		return true
	}
	v := p.live()
	if v == nil {
		return false
	}
	if len(r.prerequisites) > 0 {
		return r.prerequisites[0] == v.pkg
	}
	done := v.status.Accumulated
	return !done.IsZero() && done.Height <= at.Height
}

func (q *Queue[B]) sent(now time.Time, ev Sent) error {
	for _, it := range q.items[q.active:] {
		for _, v := range it.versions {
			if ev.Ticket == 0 || v.ticket != ev.Ticket {
				continue
			}
			v.ticket = 0
			if ev.OK {
				v.accepted, v.failures = true, 0
				v.nextSend = now.Add(q.cfg.SubmitRetryInterval)
				return nil
			}
			v.failures++
			v.nextSend = now.Add(q.cfg.backoff(v.failures, it.number))
			return nil
		}
	}
	return fmt.Errorf("%w: no send has ticket %d", ErrNotExpected, ev.Ticket)
}

// NextWake returns the earliest time after now at which a Tick would do something, and whether there is one.
func (q *Queue[B]) NextWake(now time.Time) (time.Time, bool) {
	var wake time.Time
	consider := func(t time.Time) {
		if t.After(now) && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	for _, it := range q.items[q.active:] {
		if it.state >= Guaranteed {
			continue
		}
		if v := it.live(); v == nil {
			consider(it.notBefore)
		} else if v.ticket == 0 && q.maySend(v) {
			consider(v.nextSend)
		}
	}
	return wake, !wake.IsZero()
}
