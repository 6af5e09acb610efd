package eoa

import (
	"sync"
	"time"
)

// signals are how other goroutines tell an executor of work, and how they see what
// it did. They never wait for a step.
type signals struct {
	woke chan struct{} // token: there may be work

	mu      sync.Mutex
	newHead bool          // the executor must look at the chain
	held    bool          // the lease is held: new heads matter
	changed chan struct{} // closed at the next change
	height  uint64        // see progress
	stats   Stats         // as of the last step
	since   time.Time     // Head.Since as of the last step
}

func newSignals() *signals {
	return &signals{woke: make(chan struct{}, 1), changed: make(chan struct{}), newHead: true}
}

// wake leaves a token.
func (s *signals) wake() {
	select {
	case s.woke <- struct{}{}:
	default:
	}
}

// woken takes the token: later wake-ups are for the next step.
func (s *signals) woken() bool {
	select {
	case <-s.woke:
		return true
	default:
		return false
	}
}

// noteHead makes the next step look at the chain. It reports whether the lease is
// held.
func (s *signals) noteHead() (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newHead = true
	return s.held
}

// takeHead reports whether the executor must look at the chain, once.
func (s *signals) takeHead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	noted := s.newHead
	s.newHead = false
	return noted
}

// setHeld notes whether the lease is held.
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

// tell closes the channel of progress.
func (s *signals) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change()
}

// change is tell for a caller that holds the lock.
func (s *signals) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// fallTo lowers the height, because a reorg may have taken back blocks. The records
// of the step are not written yet, so that the height must not rise.
func (s *signals) fallTo(height uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.height = min(s.height, height)
}

// publish makes the state after a step visible.
func (s *signals) publish(stats Stats, since time.Time, height uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.height != height {
		s.change()
	}
	s.stats, s.since, s.height = stats, since, height
}

// published returns the state after the last step at time now, which may be before that.
func (s *signals) published(now time.Time) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	if out.Prepared+out.Broadcast > 0 {
		out.Stalled = max(0, now.Sub(s.since))
	}
	return out
}
