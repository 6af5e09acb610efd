package txpool

import (
	"container/heap"

	"github.com/ethereum/go-ethereum/common"
)

// With Budget.PerSender, senders take turns in rounds. The best of those that do
// not rest goes next.

// hadTurns reports whether a sender had its transactions of this round.
func (s *Session) hadTurns(address common.Address) bool {
	t := s.senders[address]
	return s.budget.PerSender > 0 && t.round == s.round && t.taken >= s.budget.PerSender
}

// hadRow reports whether a sender had enough transactions in a row.
func (s *Session) hadRow(address common.Address) bool {
	return s.budget.PerSender > 0 && address == s.last && s.row >= s.budget.PerSender
}

// offer adds a sender's next transaction to the heads, or lets the sender rest
// until the next round, or until another one has had a transaction.
func (s *Session) offer(h *head) {
	switch {
	case s.alone:
		heap.Push(&s.heads, h)
	case s.hadTurns(h.address):
		s.rested = append(s.rested, h)
	case s.hadRow(h.address):
		s.resting = h
	default:
		heap.Push(&s.heads, h)
	}
}

// reoffer is offer for a sender that has rested.
func (s *Session) reoffer(h *head) {
	h.place = noLead // popped first, to find its place
	s.offer(h)
}

// countTurn counts a sender's transaction.
func (s *Session) countTurn(address common.Address) {
	if address != s.last {
		s.last, s.row = address, 0
		if h := s.resting; h != nil {
			s.resting = nil
			s.reoffer(h)
		}
	}
	s.row++
	t := s.senders[address]
	if t.round != s.round {
		t.round, t.taken = s.round, 0
	}
	t.taken++
}

// nextRound begins another round when no sender has a transaction that does not
// rest. It reports false if no sender rests.
func (s *Session) nextRound() bool {
	rested := s.rested
	s.rested = nil
	s.round++
	for _, h := range rested {
		s.reoffer(h)
	}
	if h := s.resting; h != nil && len(s.heads) == 0 { // no other sender
		s.resting, s.alone = nil, true
		s.reoffer(h)
	}
	return len(s.heads) > 0
}
