package txpool

import (
	"container/heap"

	"github.com/ethereum/go-ethereum/common"
)

// With Budget.PerSender, senders take turns in rounds. The best of those that do
// not rest goes next.

// rests reports whether a sender must let others go first: it had its
// transactions of this round, or enough in a row.
func (s *Session) rests(address common.Address) bool {
	k := s.budget.PerSender
	if k == 0 || s.alone {
		return false
	}
	t := s.senders[address]
	return t.round == s.round && t.taken >= k || address == s.last && s.row >= k
}

// nextRound begins another round with the senders that rest, when no other has a
// transaction. It reports false if there are none.
func (s *Session) nextRound() bool {
	rested := s.rested
	s.rested, s.alone = nil, len(rested) == 1
	s.round++
	for _, h := range rested {
		if s.rests(h.address) { // it was the last of the round
			s.rested = append(s.rested, h)
			continue
		}
		h.place = noLead // popped first, to find its place
		heap.Push(&s.heads, h)
	}
	return len(s.heads) > 0
}
