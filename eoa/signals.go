package eoa

import (
	"sync"
	"time"
)

// signals are how other goroutines tell an executor of work, and how they see what
// it did. They never wait for a step.
type signals struct {
	woke chan struct{} // token: there may be work

	mu        sync.Mutex
	newHead   bool          // the executor must look at the chain
	held      bool          // the lease is held: new heads matter
	committed chan struct{} // closed at the next commit
	stats     Stats         // as of the last step
	since     time.Time     // Head.Since as of the last step
}

func newSignals() *signals {
	return &signals{woke: make(chan struct{}, 1), committed: make(chan struct{}), newHead: true}
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
	s.stats.Held = s.stats.Held && held
}

// nextCommit returns a channel that is closed at the next commit.
func (s *signals) nextCommit() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// tellCommit closes the channel that nextCommit returned.
func (s *signals) tellCommit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.committed)
	s.committed = make(chan struct{})
}

// publish makes the state after a step visible.
func (s *signals) publish(stats Stats, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats, s.since = stats, since
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
