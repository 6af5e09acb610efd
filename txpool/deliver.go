package txpool

// deliverEvents passes queued events to Config.Observe, in order and without the pool's
// lock.
func (p *Pool) deliverEvents() {
	// If another goroutine delivers already, it delivers these events too. If an
	// observer panics, the next call delivers the rest.
	for p.cfg.Observe != nil && p.eventsWait() && p.delivering.TryLock() {
		p.deliverQueue()
	}
}

// deliverQueue delivers events until there are none left, and then unlocks p.delivering.
func (p *Pool) deliverQueue() {
	defer p.delivering.Unlock()
	for e, some := p.dequeueEvent(); some; e, some = p.dequeueEvent() {
		p.cfg.Observe(e)
	}
}

func (p *Pool) eventsWait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.core.events) > 0
}

// dequeueEvent removes and returns the oldest event, if there is one.
func (p *Pool) dequeueEvent() (e Event, some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.core
	if len(c.events) == 0 {
		c.events = nil
		return Event{}, false
	}
	e, c.events[0] = c.events[0], Event{}
	c.events = c.events[1:]
	return e, true
}
