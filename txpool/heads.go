package txpool

import (
	"container/heap"

	"github.com/ethereum/go-ethereum/common"
)

// turn is the state of a sender in a session.
type turn struct {
	read  bool  // account was read
	aside bool  // sender is put aside for this session
	unfit bool  // put aside only because its next transaction did not fit
	took  bool  // session has taken a transaction
	head  *head // in heads; nil if there is none
}

// noticed lets the running sessions notice a pending entry.
func (c *core) noticed(e *entry) {
	if c.repricing && !c.cfg.byTip() {
		return // each session sorts all transactions again: see Session.sortAgain
	}
	for _, s := range c.sessions {
		s.notice(e)
	}
}

// noticeHead lets the running sessions notice the next transaction of a sender
// after a change of its chain, because until now another transaction may have
// been the next one.
func (c *core) noticeHead(a *account) {
	if e := a.head(); e != nil && len(c.sessions) > 0 {
		c.noticed(e)
	}
}

// notice considers an entry that became pending or changed its place during the
// session. If the walk has not passed its place, the walk visits it later. A
// sender of which no transaction fits costs no memory.
func (s *Session) notice(e *entry) {
	address := e.account.address
	t := s.senders[address]
	switch {
	case t == nil && s.misses < maxMisses && !s.walk.passed(e):
		return
	case t == nil || t.unfit:
		next := e.account.head()
		if next == nil || s.spent() || s.refuses(next) != "" {
			return
		}
		if t == nil {
			t = new(turn)
			s.senders[address] = t
		}
		t.aside, t.unfit = false, false
	case t.aside:
		return
	case t.head != nil:
		t.head.place = noLead // it may be better now
		heap.Fix(&s.heads, t.head.index)
		return
	}
	t.head = &head{place: noLead, address: address} // popped first, to find its place
	heap.Push(&s.heads, t.head)
}

// forget forgets a sender that has no transactions in the pool any more, unless the
// session has taken some of them. Otherwise the memory of a session that is open for
// long would grow with each newcomer.
func (s *Session) forget(address common.Address) {
	t := s.senders[address]
	if t == nil || t.took {
		return
	}
	if t.head != nil {
		heap.Remove(&s.heads, t.head.index)
	}
	delete(s.senders, address)
}

// visit adds a sender's next transaction to the heads, if it fits. Of those that
// do not fit, it remembers nothing: the rest of the budget only shrinks, and notice
// considers those that change.
func (s *Session) visit(c *core, e *entry) {
	a := e.account
	if a.head() != e || s.senders[a.address] != nil {
		return
	}
	if reason := s.refuses(e); reason != "" {
		s.misses++
		s.passOver(e, reason)
		return
	}
	s.senders[a.address] = new(turn)
	s.push(c, e)
}

// push adds a sender's next transaction to the heads. It does nothing if there is none.
func (s *Session) push(c *core, e *entry) {
	if e == nil {
		return
	}
	address := e.account.address
	h := &head{place: c.keyOf(e), address: address, entry: e}
	s.senders[address].head = h
	heap.Push(&s.heads, h)
}

// sortAgain sorts the senders again after the base fee has changed the priorities
// of many transactions. This is cheaper than to notice each of them.
func (s *Session) sortAgain(c *core) {
	s.outdated, s.walk = false, c.newWalk()
	for _, h := range s.heads {
		h.place = noLead // popped first, to find its place
	}
	heap.Init(&s.heads)
}

// pop removes the best head and returns its entry. It returns nil if the sender
// has another next transaction meanwhile, or none, and if the place of the head
// is outdated. The head is then back at its new place. The place is not computed
// again otherwise: a score of the host that differs each time would never end.
func (s *Session) pop(c *core) *entry {
	h := heap.Pop(&s.heads).(*head)
	t := s.senders[h.address]
	t.head = nil
	a := c.accounts[h.address]
	if a == nil || t.aside {
		return nil
	}
	e := a.head()
	if e == nil || e == h.entry && h.place != noLead {
		return e
	}
	s.push(c, e)
	return nil
}

// fill visits senders until no other can have a better transaction than the
// best head.
func (s *Session) fill(c *core) {
	for s.misses < maxMisses && !s.walk.ended && (len(s.heads) == 0 || s.walk.precedes(s.heads[0].place)) {
		s.walk.visit(func(e *entry) { s.visit(c, e) })
	}
}

// head is a sender's next transaction.
type head struct {
	place   // higher scores first, then earlier arrivals
	address common.Address
	entry   *entry // nil if unknown
	index   int    // in heads
}

// heads is a heap with the best head at its top.
type heads []*head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].before(h[j].place) }
func (h heads) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *heads) Push(x any) {
	x.(*head).index = len(*h)
	*h = append(*h, x.(*head))
}
func (h *heads) Pop() any {
	last := len(*h) - 1
	top := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return top
}
