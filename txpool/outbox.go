package txpool

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// outbox carries events from the core to those who want them, in order and without the pool's lock: first to the journal, so that what
// Add has returned is written down, then to everybody else.
type outbox struct {
	journaling sync.Mutex // held while events are taken and written down
	unwritten  [][]byte   // records that the journal did not take
	failing    atomic.Bool

	mu            sync.Mutex
	queue         []Event     // written down, not yet told
	waiting       atomic.Bool // there are some
	subscriptions map[*Subscription]struct{}

	telling sync.Mutex
}

// listens reports whether somebody wants events.
func (p *Pool) listens() bool {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.cfg.Observe != nil || p.cfg.Journal != nil || p.cfg.Metrics.enabled() || len(p.out.subscriptions) > 0
}

// tellShare is how many events a call tells at most besides its own.
const tellShare = 1024

// tellAll tells what is written down, unless somebody else is at it: then that one does, so that an observer may call the pool. It tells a share,
// or what there is now if that is more; what comes meanwhile is left to a goroutine, until it finds nothing more.
func (p *Pool) tellAll() { p.tellSome(max(p.out.len(), tellShare)) }

func (p *Pool) tellSome(most int) {
	for most > 0 && p.out.waiting.Load() {
		if !p.out.telling.TryLock() {
			return
		}
		most -= p.tellQueued(most)
	}
	if p.out.waiting.Load() {
		go p.tellRest()
	}
}

// tellRest is tellAll for a goroutine of its own.
func (p *Pool) tellRest() {
	for p.out.waiting.Load() && p.out.telling.TryLock() {
		p.tellCarefully()
	}
}

func (p *Pool) tellCarefully() {
	defer func() {
		if r := recover(); r != nil { // there is no caller who could
			p.cfg.Logger.Error("txpool: an observer panicked", "panic", r)
		}
	}()
	p.tellQueued(tellShare)
}

// tellQueued tells some of what is in the queue, for who has telling, and unlocks that. An event that makes an observer panic is not told again,
// the others are: by a goroutine, which must find telling unlocked.
func (p *Pool) tellQueued(most int) (told int) {
	events, subscriptions := p.out.take(most)
	panicked := true
	defer func() {
		p.out.putBack(events[told:])
		p.out.telling.Unlock()
		if panicked {
			go p.tellRest()
		}
	}()
	for told < len(events) {
		told++
		p.tell(&events[told-1], subscriptions)
	}
	panicked = false
	return told
}

// take takes the oldest events out of the queue.
func (o *outbox) take(most int) ([]Event, []*Subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(most, len(o.queue))
	events := o.queue[:n:n]
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = nil
	}
	o.waiting.Store(len(o.queue) > 0)
	return events, slices.Collect(maps.Keys(o.subscriptions))
}

// put adds to the queue.
func (o *outbox) put(events []Event) {
	if len(events) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, events...)
	o.waiting.Store(true)
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// putBack puts what was not told before what came meanwhile.
func (o *outbox) putBack(events []Event) {
	if len(events) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(events, o.queue...)
	o.waiting.Store(true)
}

// writeDown moves events from the core to the journal and the queue. The error is the journal's; what it did not take is offered again with
// what comes next, in order.
func (p *Pool) writeDown() error {
	p.out.journaling.Lock()
	defer p.out.journaling.Unlock()
	p.lock()
	events := p.core.events
	p.core.events = nil
	p.core.departures.note(events, p.cfg.Now)
	if !p.core.listening {
		events = nil // they were for the departures alone
	}
	p.mu.Unlock()
	defer p.out.put(events) // when they are written down, and even if the journal panics
	if p.cfg.Journal == nil {
		return nil
	}
	for i := range events {
		p.out.unwritten = events[i].records(p.out.unwritten)
	}
	if len(p.out.unwritten) == 0 {
		return nil
	}
	if err := p.cfg.Journal.Append(p.out.unwritten...); err != nil {
		if !p.out.failing.Swap(true) {
			p.cfg.Logger.Error("txpool: journal failed, transactions are refused until it works again", "err", err)
		}
		return err
	}
	p.out.unwritten = nil
	if p.out.failing.Swap(false) {
		p.cfg.Logger.Info("txpool: journal works again")
	}
	return nil
}

// journalWorks tries the journal again if it has failed, before anything is changed for an Add that it could not write down.
func (p *Pool) journalWorks() error {
	if !p.out.failing.Load() {
		return nil
	}
	defer p.tellAll()
	if err := p.writeDown(); err != nil {
		return journalError(err)
	}
	return nil
}

// tell hands an event to everybody.
func (p *Pool) tell(e *Event, subscriptions []*Subscription) {
	if e.Kind >= leaseOpened {
		return // for the journal alone
	}
	switch e.Kind {
	case Replaced, Dropped, Included:
		e.Age = time.Duration(p.cfg.Now().UnixNano() - e.entry.at)
	}
	p.cfg.Metrics.event(e)
	if p.cfg.Observe != nil {
		p.cfg.Observe(*e)
	}
	for _, s := range subscriptions {
		s.offer(*e)
	}
}

// secure writes down that a transaction was added. If that fails it is not
// stored, and what it displaced comes back.
func (p *Pool) secure(e *entry, err error) error {
	failed := p.writeDown()
	if p.cfg.Journal == nil {
		return err
	}
	var displaced []candidate
	_ = p.step(func(c *core) error {
		all := c.displacedBy[e]
		delete(c.displacedBy, e)
		if err != nil || failed == nil || e.gone || e.lease != nil {
			return nil
		}
		c.dropEntry(e, Dropped, ErrJournal)
		displaced = all
		for i := range displaced {
			displaced[i].entry = displaced[i].entry.again()
		}
		return nil
	})
	if len(displaced) > 0 {
		p.admitAll(displaced)
		p.setAside(displaced)
	}
	if err != nil || failed == nil {
		return err
	}
	return journalError(failed)
}
