package txpool

import (
	"sync"
	"sync/atomic"
)

// deliveries passes events from the core to Config.Observe, in order and without the
// pool's lock, so that the observer may call the pool.
type deliveries struct {
	mu      sync.Mutex
	queue   []Event
	waiting atomic.Bool // the queue is not empty

	delivering sync.Mutex
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
	for e, some := p.out.dequeue(); some; e, some = p.out.dequeue() {
		p.cfg.Observe(e)
	}
}

// dequeue removes the oldest event from the queue.
func (o *deliveries) dequeue() (e Event, some bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return Event{}, false
	}
	e, o.queue[0] = o.queue[0], Event{}
	o.queue = o.queue[1:]
	if len(o.queue) == 0 {
		o.queue = nil
	}
	o.waiting.Store(len(o.queue) > 0)
	return e, true
}
