package txpool

import (
	"container/heap"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
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

// beginTurn returns the turn of a sender. If there is none, it begins one.
func (s *Session) beginTurn(address common.Address) *turn {
	t := s.senders[address]
	if t == nil {
		t = &turn{address: address, index: absent}
		s.senders[address] = t
	}
	return t
}

// notifySession lets the running session notice a pending entry.
func (c *core) notifySession(e *entry) {
	if c.session != nil && !c.session.over {
		c.session.considerEntry(e)
	}
}

// notifyOfHead lets the running session notice the next transaction of a sender
// after a change of its chain, because until now another transaction may have
// been the next one.
func (c *core) notifyOfHead(a *account) {
	e := a.head()
	if e != nil {
		c.notifySession(e)
	}
}

// considerEntry considers an entry that became pending or changed its place during the
// session. If the walk has not passed its place, the walk visits it later. A
// sender of which no transaction fits costs no memory.
func (s *Session) considerEntry(e *entry) {
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
		t = s.beginTurn(address)
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

// forgetSender forgets a sender that has no transactions in the pool any more, unless the
// session has taken some of them. Otherwise the memory of a session that is open for
// long would grow with each newcomer.
func (s *Session) forgetSender(address common.Address) {
	t := s.senders[address]
	if t == nil || t.took {
		return
	}
	if t.index != absent {
		heap.Remove(&s.heads, t.index)
	}
	delete(s.senders, address)
}

// visitSender adds a sender's next transaction to the heads, if it fits. It forgets those
// that do not fit: the rest of the budget only shrinks, and considerEntry considers those
// that change. Most of these are too large, which it sees without the entry.
func (s *Session) visitSender(c *core, r ranked) {
	e := r.entry
	if s.hasRoom(uint64(r.gas), uint64(r.size)) {
		if s.senders[e.account.address] != nil || e.account.head() != e {
			return // it is in the heads or aside, or the session has passed over an earlier one
		}
		if s.fits(e) {
			s.pushHead(c, s.beginTurn(e.account.address), e)
			return
		}
	}
	s.misses++
}

// pushHead adds a sender's next transaction to the heads. It does nothing if there is none.
func (s *Session) pushHead(c *core, t *turn, e *entry) {
	if e == nil {
		return
	}
	t.place, t.entry = c.keyOf(e), e
	heap.Push(&s.heads, t)
}

// popHead removes the best head and returns its entry with the sender's turn. The entry is
// nil if the sender has another next transaction meanwhile, or none, and if the place
// of the head is outdated. The head is then back at its new place. The place is not
// computed again otherwise: a score of the host that differs each time would never end.
func (s *Session) popHead(c *core) (*entry, *turn) {
	t := heap.Pop(&s.heads).(*turn)
	if t.aside {
		return nil, t
	}
	e := t.entry
	if t.place != noLead && !e.gone && e.account.head() == e {
		return e, t
	}
	a := c.accounts[t.address]
	if a != nil {
		s.pushHead(c, t, a.head())
	}
	return nil, t
}

// fillHeads visits senders until no other can have a better transaction than the
// best head.
func (s *Session) fillHeads(c *core) {
	for s.misses < maxMisses && !s.walk.ended && (len(s.heads) == 0 || s.walk.precedes(s.heads[0].place)) {
		s.walk.visitNext(func(r ranked) { s.visitSender(c, r) })
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

// spent reports whether no other transaction can fit.
func (s *Session) spent() bool {
	b := &s.budget
	return b.Count > 0 && s.count >= b.Count || b.Gas > 0 && addSaturating(s.gas, txGas) > b.Gas ||
		b.Bytes > 0 && s.bytes >= b.Bytes
}

// fits reports whether an entry can be taken: it pays the base fee, and the rest of the block has
// room for it.
func (s *Session) fits(e *entry) bool {
	return e.feeCap >= s.base && s.hasRoom(e.gas, uint64(e.size))
}

// hasRoom reports whether a transaction of a gas limit and size fits into the rest of the block.
func (s *Session) hasRoom(gas, size uint64) bool {
	b := &s.budget
	if b.Gas > 0 && gas > b.Gas-min(s.gas, b.Gas) {
		return false
	}
	return b.Bytes == 0 || size <= b.Bytes-min(s.bytes, b.Bytes)
}

// putAside takes no more transactions of an entry's sender.
func (s *Session) putAside(e *entry) {
	t := s.beginTurn(e.account.address)
	t.aside, t.unfit = true, false
}

// Candidate is a pending transaction, the argument of Config.Score.
type Candidate struct {
	// Tx is the transaction.
	Tx *types.Transaction
	// Tip is the price above the base fee, in wei per gas, at most 2^64-1.
	Tip uint64
	// Size is the size of the encoding, in bytes.
	Size uint64
}

// candidate returns the argument of Config.Score.
func (e *entry) candidate(base uint64) Candidate {
	return Candidate{Tx: e.tx, Tip: min(e.tip, e.feeCap-min(e.feeCap, base)), Size: uint64(e.size)}
}

// keyOf returns the place of a pending entry among the heads of a session.
func (c *core) keyOf(e *entry) place {
	if c.cfg.Score == nil {
		return place{e.rank, e.seq}
	}
	return scored(c.cfg.Score, e, c.fees.base)
}

// scored returns the place of an entry by its score, as an unsigned number of the same
// order.
func scored(score func(Candidate) int64, e *entry, base uint64) place {
	return place{uint64(score(e.candidate(base))) ^ 1<<63, e.seq}
}

// walk visits the pending transactions from the best one on, while the session
// needs more.
type walk struct {
	index *btree.BTreeG[ranked] // by tip
	rest  ranking               // by Config.Score: the next transactions of the senders
	at    ranked                // last visited; no sender that was not visited precedes it
	ended bool
}

// newWalk returns a walk from the best transaction on. With Config.Score it makes a
// heap of the senders: a block takes few of them, and a sort of all takes longer.
func (c *core) newWalk() walk {
	if c.cfg.Score == nil { // the order of core.ready
		return walk{index: c.ready}
	}
	rest := make(ranking, 0, len(c.list))
	for _, a := range c.list {
		e := a.head()
		if e != nil {
			rest = append(rest, e.ranked(c.keyOf(e)))
		}
	}
	rest.orderAll()
	return walk{rest: rest}
}

// passed reports whether the walk will not visit an entry that has changed.
func (w *walk) passed(e *entry) bool {
	return w.ended || w.index == nil || w.at.entry != nil && before(e.ranked(e.lead), w.at)
}

// precedes reports whether a sender that was not visited can have a better
// transaction than one at a place.
func (w *walk) precedes(p place) bool { return w.at.entry == nil || w.at.place.before(p) }

// stride is the number of transactions that a walk visits together.
const stride = readers

// visitNext calls f with the next few transactions.
func (w *walk) visitNext(f func(ranked)) {
	if w.index == nil {
		for range min(stride, len(w.rest)) {
			w.at = w.rest.popBest()
			f(w.at)
		}
		w.ended = len(w.rest) == 0
		return
	}
	n, from := 0, w.at
	each := func(r ranked) bool {
		if r == from { // visited before
			return true
		}
		n++
		if n > stride {
			return false
		}
		w.at = r
		f(r)
		return true
	}
	if from.entry == nil {
		w.index.Ascend(each)
	} else {
		w.index.AscendGreaterOrEqual(from, each)
	}
	w.ended = w.at == from
}

// ranking is a heap with the best entry at its top. It is not one of container/heap,
// because a call of an interface for each comparison would take most of the time of a
// session by score.
type ranking []ranked

// sinkAt moves the entry at an index down to its place.
func (r ranking) sinkAt(i int) {
	for best := 2*i + 1; best < len(r); i, best = best, 2*best+1 {
		other := best + 1
		if other < len(r) && r[other].place.before(r[best].place) {
			best = other
		}
		if !r[best].place.before(r[i].place) {
			return
		}
		r[i], r[best] = r[best], r[i]
	}
}

// orderAll makes a heap of entries in any order.
func (r ranking) orderAll() {
	for i := len(r)/2 - 1; i >= 0; i-- {
		r.sinkAt(i)
	}
}

// popBest removes the best entry.
func (r *ranking) popBest() ranked {
	all := *r
	top, last := all[0], len(all)-1
	all[0], all[last] = all[last], ranked{}
	*r = all[:last]
	r.sinkAt(0)
	return top
}

// yieldInOrder yields the transactions of a snapshot, best first, and those of each sender
// in nonce order.
func (s *Snapshot) yieldInOrder(yield func(*entry) bool) {
	if s.score == nil {
		s.index.Ascend(func(r ranked) bool { return yield(r.entry) })
		return
	}
	rest := make(map[*account][]*entry)
	s.index.Ascend(func(r ranked) bool {
		rest[r.entry.account] = append(rest[r.entry.account], r.entry)
		return true
	})
	next := newIndex() // the first one of each sender
	push := func(a *account) {
		txs := rest[a]
		if len(txs) > 0 {
			rest[a] = txs[1:]
			next.ReplaceOrInsert(txs[0].ranked(scored(s.score, txs[0], s.base)))
		}
	}
	for a := range rest {
		push(a)
	}
	for r, some := next.DeleteMin(); some; r, some = next.DeleteMin() {
		if !yield(r.entry) {
			return
		}
		push(r.entry.account)
	}
}
