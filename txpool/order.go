package txpool

import (
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
)

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

// byTip reports whether the order is that of core.ready.
func (c *Config) byTip() bool { return c.Score == nil }

// keyOf returns the place of a pending entry among the heads of a session.
func (c *core) keyOf(e *entry) place {
	if c.cfg.byTip() {
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
	if c.cfg.byTip() {
		return walk{index: c.ready}
	}
	rest := make(ranking, 0, len(c.list))
	for _, a := range c.list {
		if e := a.head(); e != nil {
			rest = append(rest, e.ranked(c.keyOf(e)))
		}
	}
	rest.order()
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

// visit calls f with the next few transactions.
func (w *walk) visit(f func(ranked)) {
	if w.index == nil {
		for range min(stride, len(w.rest)) {
			w.at = w.rest.pop()
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
		if n++; n > stride {
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

// down moves the entry at an index down to its place.
func (r ranking) down(i int) {
	for best := 2*i + 1; best < len(r); i, best = best, 2*best+1 {
		if other := best + 1; other < len(r) && r[other].place.before(r[best].place) {
			best = other
		}
		if !r[best].place.before(r[i].place) {
			return
		}
		r[i], r[best] = r[best], r[i]
	}
}

// order makes a heap of entries in any order.
func (r ranking) order() {
	for i := len(r)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

// pop removes the best entry.
func (r *ranking) pop() ranked {
	all := *r
	top, last := all[0], len(all)-1
	all[0], all[last] = all[last], ranked{}
	*r = all[:last]
	r.down(0)
	return top
}

// order yields the transactions of a snapshot, best first, and those of each sender
// in nonce order.
func (s *Snapshot) order(yield func(*entry) bool) {
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
		if txs := rest[a]; len(txs) > 0 {
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
