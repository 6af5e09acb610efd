package eoa

import "sync"

// signals connect an executor with other goroutines: these wake it, and see how far it has
// come. None of the methods waits for a step.
type signals struct {
	woke chan struct{} // token: there may be work

	mu      sync.Mutex
	newHead bool          // the executor must look at the chain
	held    bool          // the lease is held: new heads matter
	changed chan struct{} // closed at the next change
	height  uint64        // see progress
	stats   Stats         // as of the last step
}

func newSignals() *signals {
	return &signals{woke: make(chan struct{}, 1), changed: make(chan struct{}), newHead: true}
}

// wake leaves a token that ends the executor's pause.
func (s *signals) wake() {
	select {
	case s.woke <- struct{}{}:
	default:
	}
}

// woken takes the token, so that a later wake-up counts for the next step.
func (s *signals) woken() bool {
	select {
	case <-s.woke:
		return true
	default:
		return false
	}
}

// requestLook makes the next step read the chain. It reports whether the executor has the lease;
// otherwise a new block is no reason to wake it.
func (s *signals) requestLook() (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newHead = true
	return s.held
}

// takeLookRequest reports whether the step must read the chain because of requestLook, once.
func (s *signals) takeLookRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	noted := s.newHead
	s.newHead = false
	return noted
}

// setHeld notes whether the executor has the lease.
func (s *signals) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.newHead = held, s.newHead || held
	if s.stats.Held = s.stats.Held && held; !held {
		s.height = 0 // another worker sees more
	}
}

// progress returns how far the executor is.
func (s *signals) progress() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return progress{s.height, s.changed}
}

// announceChange closes the channel of progress, so that those who wait read the store.
func (s *signals) announceChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change()
}

// change does what announceChange does, for a caller that holds the lock.
func (s *signals) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// lowerHeight lowers the height of progress, because a reorg may have removed blocks. It does
// not raise it: the records of the step are not written yet.
func (s *signals) lowerHeight(height uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// published returns the state after the last step.
func (s *signals) published() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}
