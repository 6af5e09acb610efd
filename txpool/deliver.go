package txpool

import (
	"sync"
	"sync/atomic"
)

// deliveries passes events from the core to their receivers, in order and without the
// pool's lock, so that an observer may call the pool.
type deliveries struct {
	mu            sync.Mutex
	queue         []Event
	waiting       atomic.Bool     // the queue is not empty
	subscriptions []*Subscription // replaced by each change

	delivering sync.Mutex
}

// hasObservers reports whether events have a receiver.
func (p *Pool) hasObservers() bool {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.cfg.Observe != nil || p.cfg.Metrics.enabled() || len(p.out.subscriptions) > 0
}

// queueEvents moves the events of the core to the queue. The caller holds the pool's lock, so
// that they stay in order.
func (p *Pool) queueEvents() {
	events := p.core.events
	if len(events) == 0 {
		return
	}
	p.core.events = nil
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.out.queue = append(p.out.queue, events...)
	p.out.waiting.Store(true)
}

// deliverEvents delivers the queued events, unless another goroutine is doing so, which then
// delivers them; an observer may therefore call the pool. If an observer panics, the next call
// delivers the rest.
func (p *Pool) deliverEvents() {
	for p.out.waiting.Load() && p.out.delivering.TryLock() {
		p.deliverQueue()
	}
}

// deliverQueue delivers events until there are no more. It unlocks p.out.delivering.
func (p *Pool) deliverQueue() {
	defer p.out.delivering.Unlock()
	for e, subscriptions, some := p.out.dequeue(); some; e, subscriptions, some = p.out.dequeue() {
		p.deliver(&e, subscriptions)
	}
}

// dequeue removes the oldest event from the queue, and returns who receives it.
func (o *deliveries) dequeue() (e Event, to []*Subscription, some bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return Event{}, nil, false
	}
	e, o.queue[0] = o.queue[0], Event{}
	o.queue = o.queue[1:]
	if len(o.queue) == 0 {
		o.queue = nil
	}
	o.waiting.Store(len(o.queue) > 0)
	return e, o.subscriptions, true
}

// deliver passes an event to all receivers.
func (p *Pool) deliver(e *Event, subscriptions []*Subscription) {
	p.cfg.Metrics.countEvent(e)
	if p.cfg.Observe != nil {
		p.cfg.Observe(*e)
	}
	for _, s := range subscriptions {
		s.offer(*e)
	}
}
