package txpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed is returned by Subscription.Next after Close.
var ErrClosed = errors.New("txpool: subscription is closed")

// SubscribeOptions configures a [Subscription]. The zero value is valid.
type SubscribeOptions struct {
	// Buffer is the number of events that can wait for a slow reader. 0 means
	// 1,024.
	Buffer int
	// Private includes the events of private transactions.
	Private bool
}

// Subscription is a bounded queue of events. If the reader is too slow, the
// oldest events are lost, and Next returns an event of kind Missed with their
// number. Close it after use. Its methods are safe for concurrent use.
type Subscription struct {
	pool    *Pool
	private bool

	mu     sync.Mutex
	ring   []Event
	first  int
	count  int
	missed int
	closed bool
	wake   chan struct{} // signals that events may wait
}

// Subscribe returns a subscription to all later events.
func (p *Pool) Subscribe(options SubscribeOptions) *Subscription {
	const usual = 1024
	if options.Buffer <= 0 {
		options.Buffer = usual
	}
	s := &Subscription{pool: p, private: options.Private, ring: make([]Event, options.Buffer), wake: make(chan struct{}, 1)}
	p.out.mu.Lock()
	p.out.subscriptions = append(slices.Clone(p.out.subscriptions), s)
	p.out.mu.Unlock()
	p.updateObserved()
	return s
}

// updateObserved updates whether the core records events.
func (p *Pool) updateObserved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.core.observed = p.hasObservers()
}

// offerEvent adds an event to the queue without waiting.
func (s *Subscription) offerEvent(e Event) {
	if e.Private && !s.private {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.count == len(s.ring) {
		s.first = (s.first + 1) % len(s.ring)
		s.count--
		s.missed++
	}
	s.ring[(s.first+s.count)%len(s.ring)] = e
	s.count++
	s.wakeReader()
}

func (s *Subscription) wakeReader() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next waits for the next event and returns it. If events were lost, it first
// returns an event of kind Missed. The error is context.Cause(ctx), or wraps
// ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		e, ok, err := s.pollEvent()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		case <-s.wake:
		}
	}
}

// pollEvent returns the next event, if there is one.
func (s *Subscription) pollEvent() (e Event, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if s.count > 0 || s.closed {
			s.wakeReader() // wake another reader
		}
	}()
	switch {
	case s.closed:
		return Event{}, false, fmt.Errorf("%w: no more events", ErrClosed)
	case s.missed > 0:
		e = Event{Kind: Missed, Missed: s.missed}
		s.missed = 0
		return e, true, nil
	case s.count == 0:
		return Event{}, false, nil
	}
	e = s.ring[s.first]
	s.ring[s.first] = Event{}
	s.first = (s.first + 1) % len(s.ring)
	s.count--
	return e, true, nil
}

// Close closes the subscription. Pending calls of Next return ErrClosed.
// Further calls have no effect.
func (s *Subscription) Close() {
	s.mu.Lock()
	s.closed = true
	s.ring, s.count = nil, 0
	s.wakeReader()
	s.mu.Unlock()
	s.pool.out.mu.Lock()
	s.pool.out.subscriptions = slices.DeleteFunc(slices.Clone(s.pool.out.subscriptions), func(other *Subscription) bool { return other == s })
	s.pool.out.mu.Unlock()
	s.pool.updateObserved()
}

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
		p.deliverEvent(&e, subscriptions)
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

// deliverEvent passes an event to all receivers.
func (p *Pool) deliverEvent(e *Event, subscriptions []*Subscription) {
	p.cfg.Metrics.countEvent(e)
	if p.cfg.Observe != nil {
		p.cfg.Observe(*e)
	}
	for _, s := range subscriptions {
		s.offerEvent(*e)
	}
}
