package txpool

import (
	"math"
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

// deliverShare is the maximum number of events that a call delivers besides its
// own.
const deliverShare = 1024

// deliverAll delivers the queued events, unless another goroutine is doing
// so, which then delivers them; an observer may therefore call the pool. It
// delivers deliverShare events, or the queued ones if they are more. A
// background goroutine delivers later ones until the queue is empty.
func (p *Pool) deliverAll() {
	if p.out.waiting.Load() {
		p.deliverSome(max(p.out.countQueued(), deliverShare))
	}
}

func (p *Pool) deliverSome(most int) {
	for most > 0 && p.out.waiting.Load() {
		if !p.out.delivering.TryLock() {
			return
		}
		most -= p.deliverQueued(most)
	}
	if p.out.waiting.Load() {
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
		e, subscriptions, some := p.out.dequeue()
		if !some {
			break
		}
		p.deliver(&e, subscriptions)
	}
	panicked = false
	return delivered
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

func (o *deliveries) countQueued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
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
