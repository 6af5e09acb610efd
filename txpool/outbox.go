package txpool

import (
	"sync"
	"sync/atomic"
	"time"
)

// outbox carries events from the core to those who want them, in order and without the pool's lock: first to the journal, so that what
// Add has returned is written down, then to everybody else.
type outbox struct {
	journaling sync.Mutex // held while events are taken and written down
	failed     error      // why the journal does not work any more

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

// tellAll tells what is written down, unless somebody else is at it: then that one does, so that an observer may call the pool.
func (p *Pool) tellAll() {
	if !p.out.waiting.Load() {
		return
	}
	for p.out.telling.TryLock() {
		p.out.mu.Lock()
		events := p.out.queue
		p.out.queue = nil
		p.out.waiting.Store(false)
		subscriptions := make([]*Subscription, 0, len(p.out.subscriptions))
		for s := range p.out.subscriptions {
			subscriptions = append(subscriptions, s)
		}
		p.out.mu.Unlock()
		for i := range events {
			p.tell(&events[i], subscriptions)
		}
		p.out.telling.Unlock()
		if len(events) == 0 && !p.out.waiting.Load() { // what came meanwhile found this one at it, and left it to it
			return
		}
	}
}

// writeDown moves events from the core to the journal and the queue.
func (p *Pool) writeDown() {
	p.out.journaling.Lock()
	defer p.out.journaling.Unlock()
	p.lock()
	events := p.core.events
	p.core.events = nil
	p.mu.Unlock()
	if len(events) == 0 {
		return
	}
	if p.cfg.Journal != nil && p.out.failed == nil {
		if err := writeEvents(p.cfg.Journal, events); err != nil {
			p.out.failed = err
			p.cfg.Logger.Error("txpool: journal failed, transactions are refused from now on", "err", err)
		}
	}
	p.out.mu.Lock()
	p.out.queue = append(p.out.queue, events...)
	p.out.waiting.Store(true)
	p.out.mu.Unlock()
}

// tell hands an event to everybody.
func (p *Pool) tell(e *Event, subscriptions []*Subscription) {
	if e.Kind >= leaseOpened {
		return // for the journal alone
	}
	switch e.Kind {
	case Replaced, Dropped, Included:
		e.Age = time.Duration(p.cfg.Now().UnixNano() - e.at)
	}
	p.cfg.Metrics.event(e)
	if p.cfg.Observe != nil {
		p.cfg.Observe(*e)
	}
	for _, s := range subscriptions {
		s.offer(*e)
	}
}

// secure writes down that somebody added a transaction. If that fails it is not stored.
func (p *Pool) secure(e *entry, err error) error {
	p.writeDown()
	if err != nil || p.cfg.Journal == nil {
		return err
	}
	p.out.journaling.Lock()
	failed := p.out.failed
	p.out.journaling.Unlock()
	if failed == nil {
		return nil
	}
	_ = p.step(func(c *core) error {
		if !e.gone && e.lease == nil {
			c.dropEntry(e, Dropped, ErrJournal)
		}
		return nil
	})
	return journalError(failed)
}
