package txpool

import (
	"container/heap"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
)

// turn is a session's data about one sender, for example whether the session has read
// the sender's account and which transaction of the sender comes next.
type turn struct {
	address common.Address
	read    bool // the account has been read in this session
	aside   bool // the session takes no more transactions of the sender
	unfit   bool // put aside only because its next transaction did not fit
	took    bool // the session has taken a transaction of the sender

	// The sender's next transaction, if the sender is in the session's heads.
	place // in the order of the session; noLead if it is outdated
	entry *entry
	index int // index in heads, or absent
}

// absent is the index of a turn that is not in heads.
const absent = -1

// beginTurn returns the session's data about a sender, and creates it if necessary.
func (s *Session) beginTurn(address common.Address) *turn {
	t := s.senders[address]
	if t == nil {
		t = &turn{address: address, index: absent}
		s.senders[address] = t
	}
	return t
}

// notifySession offers a transaction that can run now to the running session, if any.
func (c *core) notifySession(e *entry) {
	if c.session != nil && !c.session.over {
		c.session.considerEntry(e)
	}
}

// notifyOfHead offers a sender's next transaction to the running session, after a
// change.
func (c *core) notifyOfHead(a *account) {
	e := a.head()
	if e != nil {
		c.notifySession(e)
	}
}

// considerEntry makes a running session consider a transaction that has become able to
// run.
func (s *Session) considerEntry(e *entry) {
	address := e.account.address
	t := s.senders[address]
	switch {
	// The session visits all transactions in order, and has not come to this one yet. It will
	// find the transaction by itself.
	case t == nil && s.misses < maxMisses && !s.walk.passed(e):
		return
	case t == nil || t.unfit:
		// The session has already passed this sender, or has skipped it because its next
		// transaction was too large. With the change, there may be one that fits.
		next := e.account.head()
		if next == nil || s.spent() || !s.fits(next) {
			return
		}
		t = s.beginTurn(address)
		t.aside, t.unfit = false, false
	case t.aside:
		return
	case t.index != absent:
		t.place = noLead // it may be better now, so its place is outdated
		heap.Fix(&s.heads, t.index)
		return
	}
	t.place = noLead // sorts first, so that popHead computes its place
	heap.Push(&s.heads, t)
}

// forgetSender deletes a session's data about a sender that has left the pool.
func (s *Session) forgetSender(address common.Address) {
	t := s.senders[address]
	// The session has taken transactions of this sender, and still needs to know which ones.
	if t == nil || t.took {
		return
	}
	if t.index != absent {
		heap.Remove(&s.heads, t.index)
	}
	// Without this, a session that stays open for long would need more memory with each new
	// sender.
	delete(s.senders, address)
}

// visitSender is called when the walk over all transactions reaches a sender. If the
// sender's next transaction fits into the block, the session may choose it from now on.
func (s *Session) visitSender(c *core, r ranked) {
	e := r.entry
	// Check the size first: most transactions that do not fit are too large, and the
	// entry need not be read from memory then.
	if s.hasRoom(uint64(r.gas), uint64(r.size)) {
		if s.senders[e.account.address] != nil || e.account.head() != e {
			return // the sender is in the heads or put aside, or an earlier transaction was skipped
		}
		if s.fits(e) {
			s.pushHead(c, s.beginTurn(e.account.address), e)
			return
		}
	}
	// A transaction that does not fit now will not fit later either, because the rest
	// of the budget only shrinks. If it changes, considerEntry considers it again.
	s.misses++
}

// pushHead makes a sender one of those among which the session chooses its next
// transaction. e is the sender's next transaction; if e is nil, the sender has none, and
// nothing happens.
func (s *Session) pushHead(c *core, t *turn, e *entry) {
	if e == nil {
		return
	}
	t.place, t.entry = c.keyOf(e), e
	heap.Push(&s.heads, t)
}

// popHead removes the best of the heads, and returns its transaction and sender.
func (s *Session) popHead(c *core) (*entry, *turn) {
	t := heap.Pop(&s.heads).(*turn)
	if t.aside {
		return nil, t
	}
	e := t.entry
	if t.place != noLead && !e.gone && e.account.head() == e {
		// The place is up to date, so the host's score is not computed again. A score that
		// changes from call to call could otherwise make the session run forever.
		return e, t
	}
	// The sender has another next transaction now, or its place has changed. Sort it in again.
	a := c.accounts[t.address]
	if a != nil {
		s.pushHead(c, t, a.head())
	}
	return nil, t
}

// fillHeads visits senders until no unvisited sender can beat the best of the heads.
func (s *Session) fillHeads(c *core) {
	for s.misses < maxMisses && !s.walk.ended && (len(s.heads) == 0 || s.walk.precedes(s.heads[0].place)) {
		s.walk.visitNext(func(r ranked) { s.visitSender(c, r) })
	}
}

// heads contains the senders among which a session chooses, as a heap with the best
// next transaction at the top.
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

// spent reports whether the budget is used up, so that no transaction can fit.
func (s *Session) spent() bool {
	b := &s.budget
	return b.Count > 0 && s.count >= b.Count || b.Gas > 0 && addSaturating(s.gas, txGas) > b.Gas ||
		b.Bytes > 0 && s.bytes >= b.Bytes
}

// fits reports whether the session can take a transaction.
func (s *Session) fits(e *entry) bool {
	// The transaction must pay the base fee of the block, and fit into the rest of the
	// budget.
	return e.feeCap >= s.base && s.hasRoom(e.gas, uint64(e.size))
}

// hasRoom reports whether a transaction with this gas limit and size fits the budget.
func (s *Session) hasRoom(gas, size uint64) bool {
	b := &s.budget
	if b.Gas > 0 && gas > b.Gas-min(s.gas, b.Gas) {
		return false
	}
	return b.Bytes == 0 || size <= b.Bytes-min(s.bytes, b.Bytes)
}

// putAside makes the session take no more transactions of the sender of e.
func (s *Session) putAside(e *entry) {
	t := s.beginTurn(e.account.address)
	t.aside, t.unfit = true, false
}

// Candidate is the argument of Config.Score: a transaction that can run.
type Candidate struct {
	// Tx is the transaction.
	Tx *types.Transaction
	// Tip is the price above the base fee, in wei per gas, at most 2^64-1.
	Tip uint64
	// Size is the size of the encoding, in bytes.
	Size uint64
}

// candidate returns the entry as an argument of Config.Score.
func (e *entry) candidate(base uint64) Candidate {
	return Candidate{Tx: e.tx, Tip: min(e.tip, e.feeCap-min(e.feeCap, base)), Size: uint64(e.size)}
}

// keyOf returns the key by which a session compares the next transactions of senders.
func (c *core) keyOf(e *entry) place {
	if c.cfg.Score == nil {
		return place{e.rank, e.seq}
	}
	return scored(c.cfg.Score, e, c.fees.base)
}

// scored returns a transaction's place in a session's order by Config.Score.
func scored(score func(Candidate) int64, e *entry, base uint64) place {
	// Flipping the highest bit turns the signed score into an unsigned number in the
	// same order.
	return place{uint64(score(e.candidate(base))) ^ 1<<63, e.seq}
}

// walk visits the transactions that can run, best first. It goes only as far as a
// session needs, because a block usually takes few of them.
type walk struct {
	index *btree.BTreeG[ranked] // without Config.Score: the transactions, by tip
	rest  ranking               // with Config.Score: the next transactions of the senders
	at    ranked                // last visited; no unvisited sender precedes it
	ended bool
}

// newWalk returns a walk that begins with the best transaction.
func (c *core) newWalk() walk {
	if c.cfg.Score == nil { // the order of core.ready
		return walk{index: c.ready}
	}
	// With Config.Score, no index is sorted by the score. A heap of all senders is cheaper
	// than sorting, because a block takes transactions of only a few of them.
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

// passed reports whether the walk has gone past the present position of a transaction.
func (w *walk) passed(e *entry) bool {
	// The walk visits transactions from the best to the worst and never goes back. If the
	// position of this transaction is behind it, the walk will not find the transaction, and
	// the session must consider it otherwise.
	return w.ended || w.index == nil || w.at.entry != nil && before(e.ranked(e.lead), w.at)
}

// precedes reports whether the walk may still find a better transaction than at p.
func (w *walk) precedes(p place) bool { return w.at.entry == nil || w.at.place.before(p) }

// stride is how many transactions a walk visits at a time.
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

// ranking is a heap with the best transaction at the top. It does not use
// container/heap, because calling the comparisons through an interface would take most
// of the time of a session with scores.
type ranking []ranked

// sinkAt moves an entry down until the heap is in order again.
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

// orderAll turns unordered entries into a heap.
func (r ranking) orderAll() {
	for i := len(r)/2 - 1; i >= 0; i-- {
		r.sinkAt(i)
	}
}

// popBest removes the best entry and returns it.
func (r *ranking) popBest() ranked {
	all := *r
	top, last := all[0], len(all)-1
	all[0], all[last] = all[last], ranked{}
	*r = all[:last]
	r.sinkAt(0)
	return top
}

// yieldInOrder yields the transactions in the order in which a session would take them.
func (s *Snapshot) yieldInOrder(yield func(*entry) bool) {
	if s.score == nil {
		s.index.Ascend(func(r ranked) bool { return yield(r.entry) })
		return
	}
	// With Config.Score, yield the best among the next transactions of all senders, again and
	// again. The transactions of one sender then stay in the order of their nonces.
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
