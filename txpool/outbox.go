package txpool

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// outbox passes events from the core to their receivers, in order and without
// the pool's lock: first to the journal, so that a transaction is durable when
// Add returns, then to the others.
type outbox struct {
	journaling sync.Mutex // held while events are recorded
	journal    Journal    // Config.Journal, or that of the last Rotate
	unwritten  [][]byte   // records that the journal refused
	failing    atomic.Bool

	mu            sync.Mutex
	queue         []Event         // recorded, not yet delivered
	undelivered   atomic.Bool     // the queue is not empty
	subscriptions []*Subscription // replaced by each change

	delivering sync.Mutex
}

// listens reports whether events have a receiver.
func (p *Pool) listens() bool {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.cfg.Observe != nil || p.cfg.Journal != nil || p.cfg.Metrics.enabled() || len(p.out.subscriptions) > 0
}

// deliverShare is the maximum number of events that a call delivers besides its
// own.
const deliverShare = 1024

// deliverAll delivers the recorded events, unless another goroutine is doing
// so, which then delivers them; an observer may therefore call the pool. It
// delivers deliverShare events, or the queued ones if they are more. A
// background goroutine delivers later ones until the queue is empty.
func (p *Pool) deliverAll() {
	if p.out.undelivered.Load() {
		p.deliverSome(max(p.out.len(), deliverShare))
	}
}

func (p *Pool) deliverSome(most int) {
	for most > 0 && p.out.undelivered.Load() {
		if !p.out.delivering.TryLock() {
			return
		}
		most -= p.deliverQueued(most)
	}
	if p.out.undelivered.Load() {
		go p.deliverRest()
	}
}

// deliverRest delivers all events in the background. If an observer panics, another
// goroutine continues.
func (p *Pool) deliverRest() {
	defer func() {
		if r := recover(); r != nil { // no caller could recover it
			p.cfg.Logger.Error("txpool: an observer panicked", "panic", r)
		}
	}()
	p.deliverSome(math.MaxInt)
}

// deliverQueued delivers some events of the queue. The caller holds
// p.out.delivering; deliverQueued unlocks it. If an observer panics, its event
// is not delivered again, and a background goroutine delivers the others. It
// needs the lock, so deliverQueued unlocks it first.
func (p *Pool) deliverQueued(most int) (delivered int) {
	panicked := true
	defer func() {
		p.out.delivering.Unlock()
		if panicked {
			go p.deliverRest()
		}
	}()
	for ; delivered < most; delivered++ {
		e, subscriptions, some := p.out.take()
		if !some {
			break
		}
		p.deliver(&e, subscriptions)
	}
	panicked = false
	return delivered
}

// take removes the oldest event from the queue, and returns who receives it.
func (o *outbox) take() (e Event, to []*Subscription, some bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return Event{}, nil, false
	}
	e, o.queue[0] = o.queue[0], Event{}
	if o.queue = o.queue[1:]; len(o.queue) == 0 {
		o.queue = nil
	}
	o.undelivered.Store(len(o.queue) > 0)
	return e, o.subscriptions, true
}

// put appends the events of changes to the queue.
func (o *outbox) put(changes []change) {
	if len(changes) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range changes {
		if e := &changes[i].event; e.Kind != 0 {
			o.queue = append(o.queue, *e)
		}
	}
	o.undelivered.Store(len(o.queue) > 0)
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// writeDown moves events from the core to the journal and the queue. It returns
// the error of the journal. Records that the journal did not accept are offered
// again, in order, before the next ones. More records follow them in the same
// write, and are not offered again.
func (p *Pool) writeDown(more ...[]byte) error {
	p.out.journaling.Lock()
	defer p.out.journaling.Unlock()
	p.mu.Lock()
	changes := p.core.changes
	p.core.changes = nil
	p.mu.Unlock()
	defer p.out.put(changes) // even if the journal panics
	if p.out.journal == nil {
		return nil
	}
	p.out.unwritten = records(p.out.unwritten, changes)
	if len(p.out.unwritten)+len(more) == 0 {
		return nil
	}
	if err := p.out.journal.Append(slices.Concat(p.out.unwritten, more)...); err != nil {
		if !p.out.failing.Swap(true) {
			p.cfg.Logger.Error("txpool: journal failed, refusing transactions until it works again", "err", err)
		}
		return err
	}
	p.out.unwritten = nil
	if p.out.failing.Swap(false) {
		p.cfg.Logger.Info("txpool: journal works again")
	}
	return nil
}

// retryJournal tries a journal that has failed again, before an Add that it
// could not record changes the pool.
func (p *Pool) retryJournal() error {
	if !p.out.failing.Load() {
		return nil
	}
	return p.Flush()
}

// Flush lets a host know that the journal has all changes of the calls that have
// returned. It offers the journal the records that the journal has refused so
// far. Calls without an error as a result, such as Reset, do not report a refusal,
// so a host flushes before it forgets a failed block. If Flush returns an error,
// which wraps ErrJournal, the changes since the refusal are lost if the process
// ends now.
func (p *Pool) Flush() error {
	defer p.deliverAll()
	if err := p.writeDown(); err != nil {
		return journalError(err)
	}
	return nil
}

// deliver passes an event to all receivers.
func (p *Pool) deliver(e *Event, subscriptions []*Subscription) {
	p.cfg.Metrics.event(e)
	if p.cfg.Observe != nil {
		p.cfg.Observe(*e)
	}
	for _, s := range subscriptions {
		s.offer(*e)
	}
}
