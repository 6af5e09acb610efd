package eoa

import "sync"

// signals lets other goroutines wake an executor and follow its progress. No
// method waits until the running step has ended.
type signals struct {
	woke chan struct{} // holds a token if there may be work

	mu      sync.Mutex
	newHead bool          // the next step must read the chain
	held    bool          // the executor holds the lease, so new heads matter
	changed chan struct{} // closed at the next change
	height  uint64        // see progress.height
	stats   Stats         // as of the last step
}

func newSignals() *signals {
	return &signals{woke: make(chan struct{}, 1), changed: make(chan struct{}), newHead: true}
}

// wake leaves a token that ends the executor's pause, now or when it begins.
func (s *signals) wake() {
	select {
	case s.woke <- struct{}{}:
	default:
	}
}

// woken reports whether the executor was woken since the last call.
func (s *signals) woken() bool {
	select {
	case <-s.woke:
		return true
	default:
		return false
	}
}

// requestLook makes the next step read the chain.
func (s *signals) requestLook() (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newHead = true
	// Without the lease, a new block is no reason to wake the executor.
	return s.held
}

// takeLookRequest reports whether this step must read the chain, and clears the
// request.
func (s *signals) takeLookRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	noted := s.newHead
	s.newHead = false
	return noted
}

// setHeld records whether the executor holds the lease.
func (s *signals) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.newHead = held, s.newHead || held
	if s.stats.Held = s.stats.Held && held; !held {
		s.height = 0 // another worker now reads the chain
	}
}

// progress returns the executor's progress, for callers that wait for requests.
func (s *signals) progress() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return progress{s.height, s.changed}
}

// announceChange closes the channel of progress, so that waiting callers read the
// store.
func (s *signals) announceChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change()
}

// change is announceChange for callers that already hold the lock.
func (s *signals) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// lowerHeight lowers the published height, because a reorg may have removed blocks.
func (s *signals) lowerHeight(height uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Waiting callers may see a lower height at once. A higher height is published only after
	// the records of the step are in the store.
	s.height = min(s.height, height)
}

// publish makes the state after a step visible to other goroutines.
func (s *signals) publish(stats Stats, height uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.height != height {
		s.change()
	}
	s.stats, s.height = stats, height
}

// published returns the state that was last passed to publish.
func (s *signals) published() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}
