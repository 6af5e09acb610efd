package txpool

import (
	"container/heap"

	"github.com/ethereum/go-ethereum/common"
)

// turn is the state of a sender in a session.
type turn struct {
	address common.Address
	read    bool // account was read
	aside   bool // sender is put aside for this session
	unfit   bool // put aside only because its next transaction did not fit
	took    bool // session has taken a transaction

	// The sender's next transaction, if the sender is in heads.
	place // by the order of the session, or noLead if it is outdated
	entry *entry
	index int // in heads, or absent
}

// absent is the index of a turn that is not in heads.
const absent = -1

// begin returns the turn of a sender. If there is none, it begins one.
func (s *Session) begin(address common.Address) *turn {
	t := s.senders[address]
	if t == nil {
		t = &turn{address: address, index: absent}
		s.senders[address] = t
	}
	return t
}

// noticed lets the running session notice a pending entry.
func (c *core) noticed(e *entry) {
	if c.session == nil || c.session.over || c.repricing && !c.cfg.byTip() {
		return // with a score, the session sorts all transactions again: see Session.sortAgain
	}
	c.session.notice(e)
}

// noticeHead lets the running session notice the next transaction of a sender
// after a change of its chain, because until now another transaction may have
// been the next one.
func (c *core) noticeHead(a *account) {
	if c.session == nil {
		return
	}
	if e := a.head(); e != nil {
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
		if next == nil || s.spent() || !s.fits(next) {
			return
		}
		t = s.begin(address)
		t.aside, t.unfit = false, false
	case t.aside:
		return
	case t.index != absent:
		t.place = noLead // it may be better now
		heap.Fix(&s.heads, t.index)
		return
	}
	t.place = noLead // popped first, to find its place
	heap.Push(&s.heads, t)
}

// forget forgets a sender that has no transactions in the pool any more, unless the
// session has taken some of them. Otherwise the memory of a session that is open for
// long would grow with each newcomer.
func (s *Session) forget(address common.Address) {
	t := s.senders[address]
	if t == nil || t.took {
		return
	}
	if t.index != absent {
		heap.Remove(&s.heads, t.index)
	}
	delete(s.senders, address)
}

// visit adds a sender's next transaction to the heads, if it fits. It forgets those
// that do not fit: the rest of the budget only shrinks, and notice considers those that
// change. Most of these are too large, which it sees without the entry.
func (s *Session) visit(c *core, r ranked) {
	e := r.entry
	if s.hasRoom(uint64(r.gas), uint64(r.size)) {
		if s.senders[e.account.address] != nil || e.account.head() != e {
			return // it is in the heads or aside, or the session has passed over an earlier one
		}
		if s.fits(e) {
			s.push(c, s.begin(e.account.address), e)
			return
		}
	}
	s.misses++
}

// push adds a sender's next transaction to the heads. It does nothing if there is none.
func (s *Session) push(c *core, t *turn, e *entry) {
	if e == nil {
		return
	}
	t.place, t.entry = c.keyOf(e), e
	heap.Push(&s.heads, t)
}

// sortAgain sorts the senders again after the base fee has changed the priorities
// of many transactions. This is cheaper than to notice each of them.
func (s *Session) sortAgain(c *core) {
	s.outdated, s.walk = false, c.newWalk()
	for _, t := range s.heads {
		t.place = noLead // popped first, to find its place
	}
	heap.Init(&s.heads)
}

// pop removes the best head and returns its entry with the sender's turn. The entry is
// nil if the sender has another next transaction meanwhile, or none, and if the place
// of the head is outdated. The head is then back at its new place. The place is not
// computed again otherwise: a score of the host that differs each time would never end.
func (s *Session) pop(c *core) (*entry, *turn) {
	t := heap.Pop(&s.heads).(*turn)
	if t.aside {
		return nil, t
	}
	if e := t.entry; t.place != noLead && !e.gone && e.account.head() == e {
		return e, t
	}
	if a := c.accounts[t.address]; a != nil {
		s.push(c, t, a.head())
	}
	return nil, t
}

// fill visits senders until no other can have a better transaction than the
// best head.
func (s *Session) fill(c *core) {
	for s.misses < maxMisses && !s.walk.ended && (len(s.heads) == 0 || s.walk.precedes(s.heads[0].place)) {
		s.walk.visit(func(r ranked) { s.visit(c, r) })
	}
}

// heads is a heap of senders with the best next transaction at its top.
type heads []*turn

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].before(h[j].place) }
func (h heads) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *heads) Push(x any) {
	x.(*turn).index = len(*h)
	*h = append(*h, x.(*turn))
}
func (h *heads) Pop() any {
	last := len(*h) - 1
	top := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	top.index = absent
	return top
}
