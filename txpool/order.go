package txpool

import (
	"container/heap"
	"math"
	"math/bits"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
)

// Ordering decides the order in which a builder gets the transactions of
// different senders. Those of one sender always come in nonce order. Ordering
// does not affect eviction, which depends on the effective tip only, so that age
// never protects a transaction (invariant I13).
//
// The priority of a transaction is the sum of Score and Bonus. The highest goes
// first; of equal ones, the earlier arrival. With ByTip, the pool keeps
// transactions sorted, so a builder that takes the best few visits few. With
// another Ordering, each session sorts the senders when it begins.
type Ordering interface {
	// Score returns the part of the priority that does not depend on time. It must
	// depend on its argument only. Sessions call it with the pool's lock, and the
	// readers of a Snapshot without it and concurrently.
	Score(Candidate) int64
	// Bonus returns the part that grows with the time since the transaction was
	// admitted. It must not fall with age. It is the same for all transactions
	// of an age.
	Bonus(age time.Duration) int64
}

// Candidate is a pending transaction.
type Candidate struct {
	// Tx is the transaction.
	Tx *types.Transaction
	// Tip is the price above the base fee, in wei per gas, at most 2^64-1.
	Tip uint64
	// Size is the size of the encoding, in bytes.
	Size uint64
}

// ByTip is the default order: the higher effective tip first, then the earlier
// arrival.
type ByTip struct{}

// Score returns a score that grows with the tip.
func (ByTip) Score(c Candidate) int64 { return int64(c.Tip >> 1) }

// Bonus returns 0.
func (ByTip) Bonus(time.Duration) int64 { return 0 }

// ByScore combines fee, size and age:
//
//	ln(1 + tip/BaseTip)·Fee + Size/kilobytes + Age·√(seconds, at most an hour)
//
// It uses fixed-point arithmetic, so that the result is the same on every
// machine. Consider its weaknesses before you use it. With the default weights,
// a transaction of 1 gwei that is an hour old goes before one of 800 gwei. A
// sender that splits a transaction into several smaller ones receives the bonus
// for size several times.
type ByScore struct {
	// BaseTip is the tip above which the fee counts by its logarithm, in wei
	// per gas. 0 means 1 gwei.
	BaseTip uint64
	// Fee, Size and Age are the weights, in per mille. If all are 0, they are
	// 1,000, 150 and 100.
	Fee, Size, Age uint32
}

// Fixed-point numbers are multiples of 2^-fraction.
const (
	fraction = 24
	ln2      = 11629080 // ln 2 · 2^24
	oldest   = time.Hour
)

func (s ByScore) weights() ByScore {
	if s.Fee == 0 && s.Size == 0 && s.Age == 0 {
		s.Fee, s.Size, s.Age = 1000, 150, 100
	}
	return s
}

// Score returns the weighted sum of fee and size, in units of 2^-24.
func (s ByScore) Score(c Candidate) int64 {
	const gwei = 1_000_000_000
	s = s.weights()
	base := s.BaseTip
	if base == 0 {
		base = gwei
	}
	fee := lnQuotient(c.Tip, base)
	size := (int64(1024) << fraction) / int64(max(c.Size, 1))
	return (fee*int64(s.Fee) + size*int64(s.Size)) / perMille
}

// Bonus returns the weighted square root of the age, in units of 2^-24.
func (s ByScore) Bonus(age time.Duration) int64 {
	return sqrtSeconds(age) * int64(s.weights().Age) / perMille
}

// lnQuotient returns ln(1 + x/y) in fixed point.
func lnQuotient(x, y uint64) int64 {
	sum := addSaturating(x, y)
	return int64((int64(log2(sum)) - int64(log2(y))) * ln2 >> fraction)
}

// log2 returns the binary logarithm of a positive number in fixed point: the
// integer part from the bit length, the other bits one at a time by squaring.
func log2(x uint64) uint64 {
	exponent := bits.Len64(x) - 1
	result := uint64(exponent) << fraction
	m := x << (63 - exponent) // in [1, 2), as a multiple of 2^-63
	for bit := uint64(1) << (fraction - 1); bit > 0; bit >>= 1 {
		hi, lo := bits.Mul64(m, m) // in [1, 4)
		if hi>>63 == 1 {
			result += bit
			m = hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return result
}

// sqrtSeconds returns the square root of an age in seconds, in fixed point. Unlike
// logarithms, math.Sqrt has the same result on every machine.
func sqrtSeconds(age time.Duration) int64 {
	milli := min(max(age, 0), oldest) / time.Millisecond
	return int64(math.Sqrt(float64(milli)/1000) * (1 << fraction))
}

// priority returns a score with its bonus as an unsigned number of the same
// order.
func priority(score, bonus int64) uint64 {
	sum := score + bonus
	if bonus > 0 && sum < score {
		sum = math.MaxInt64
	} else if bonus < 0 && sum > score {
		sum = math.MinInt64
	}
	return uint64(sum) ^ 1<<63
}

// candidate returns the argument of Ordering.Score.
func (e *entry) candidate(base uint64) Candidate {
	return Candidate{Tx: e.tx, Tip: min(e.tip, e.feeCap-min(e.feeCap, base)), Size: uint64(e.size)}
}

// byTip reports whether the order is that of core.ready.
func (c *Config) byTip() bool {
	_, is := c.Ordering.(ByTip)
	return is
}

// keyOf returns the place of a pending entry among the heads of a session.
func (c *core) keyOf(e *entry, now int64) place {
	if c.cfg.byTip() {
		return place{e.rank, e.seq}
	}
	return scored(c.cfg.Ordering, e, c.fees.base, now)
}

// scored returns the place of an entry by its priority.
func scored(o Ordering, e *entry, base uint64, now int64) place {
	return place{priority(o.Score(e.candidate(base)), o.Bonus(time.Duration(now-e.at))), e.seq}
}

// walk visits the pending transactions from the best one on, while the session
// needs more.
type walk struct {
	index *btree.BTreeG[ranked] // for ByTip
	rest  ranking               // for other orders: the next transactions of the senders
	at    ranked                // last visited; no sender that was not visited precedes it
	ended bool
}

// newWalk returns a walk from the best transaction on. With an order other than
// ByTip it makes a heap of the senders: a block takes few of them, and a sort of all
// takes longer.
func (c *core) newWalk(now int64) walk {
	if c.cfg.byTip() {
		return walk{index: c.ready}
	}
	rest := make(ranking, 0, len(c.list))
	for _, a := range c.list {
		if e := a.head(); e != nil {
			rest = append(rest, ranked{c.keyOf(e, now), e})
		}
	}
	heap.Init(&rest)
	return walk{rest: rest}
}

// passed reports whether the walk will not visit an entry that has changed.
func (w *walk) passed(e *entry) bool {
	return w.ended || w.index == nil || w.at.entry != nil && before(ranked{e.lead, e}, w.at)
}

// precedes reports whether a sender that was not visited can have a better
// transaction than one at a place.
func (w *walk) precedes(p place) bool { return w.at.entry == nil || w.at.place.before(p) }

// stride is the number of transactions that a walk visits together.
const stride = readers

// visit calls f with the next few transactions.
func (w *walk) visit(f func(*entry)) {
	if w.index == nil {
		for range min(stride, len(w.rest)) {
			w.at = heap.Pop(&w.rest).(ranked)
			f(w.at.entry)
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
		f(r.entry)
		return true
	}
	if from.entry == nil {
		w.index.Ascend(each)
	} else {
		w.index.AscendGreaterOrEqual(from, each)
	}
	w.ended = w.at == from
}

// ranking is a heap with the best entry at its top.
type ranking []ranked

func (r ranking) Len() int           { return len(r) }
func (r ranking) Less(i, j int) bool { return r[i].place.before(r[j].place) }
func (r ranking) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranking) Push(x any)        { *r = append(*r, x.(ranked)) }
func (r *ranking) Pop() any {
	last := len(*r) - 1
	top := (*r)[last]
	*r = (*r)[:last]
	return top
}

// order yields the transactions of a snapshot, best first, and those of each sender
// in nonce order.
func (s *Snapshot) order(yield func(*entry) bool) {
	if _, byTip := s.ordering.(ByTip); byTip {
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
			next.ReplaceOrInsert(ranked{scored(s.ordering, txs[0], s.base, s.now), txs[0]})
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
