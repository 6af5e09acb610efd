package txpool

import (
	"sync"
	"time"
)

// outbox carries events from the core to those who want them, in order and without the pool's lock: first to the journal, so that what
// Add has returned is written down, then to everybody else.
type outbox struct {
	journaling sync.Mutex // held while events are taken and written down
	failed     error      // why the journal does not work any more

	mu            sync.Mutex
	queue         []Event // written down, not yet told
	subscriptions map[*Subscription]struct{}

	telling sync.Mutex
}

// listens reports whether somebody wants events.
func (p *Pool) listens() bool {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.cfg.Observe != nil || p.cfg.Journal != nil || p.cfg.Metrics.enabled() || len(p.out.subscriptions) > 0
}

// deliver writes the core's events down and tells them. When it returns, what the caller did is written down. It is told then too, unless
// somebody else is at telling: then that one does it, so that an observer may call the pool.
func (p *Pool) deliver() {
	p.writeDown()
	for p.out.telling.TryLock() {
		p.out.mu.Lock()
		events := p.out.queue
		p.out.queue = nil
		subscriptions := make([]*Subscription, 0, len(p.out.subscriptions))
		for s := range p.out.subscriptions {
			subscriptions = append(subscriptions, s)
		}
		p.out.mu.Unlock()
		for i := range events {
			p.tell(&events[i], subscriptions)
		}
		p.out.telling.Unlock()
		if len(events) == 0 {
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

// deliverFor is deliver for somebody who added a transaction: if it could not be written down it is not stored.
func (p *Pool) deliverFor(e *entry, err error) error {
	p.deliver()
	if err != nil || p.cfg.Journal == nil {
		return err
	}
	p.out.journaling.Lock()
	failed := p.out.failed
	p.out.journaling.Unlock()
	if failed == nil {
		return nil
	}
	_ = p.change(func(c *core) error {
		if !e.gone && e.lease == nil {
			c.dropEntry(e, Dropped, ErrJournal)
		}
		return nil
	})
	return journalError(failed)
}
