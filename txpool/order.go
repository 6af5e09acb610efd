package txpool

import (
	"container/heap"
	"iter"
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
// first; of equal ones, the earlier arrival. The pool keeps transactions sorted
// by each of the two, so a builder that takes the best few visits few.
type Ordering interface {
	// Score returns the part of the priority that does not depend on time. It is
	// called when the transaction becomes pending and when the base fee changes,
	// with the pool's lock. It must depend on its argument only.
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

// sqrtSeconds returns the square root of an age in seconds, in fixed point.
func sqrtSeconds(age time.Duration) int64 {
	age = min(max(age, 0), oldest)
	milli := uint64(age / time.Millisecond)                // up to 2^22
	return int64(isqrt(milli<<40/1000)) << (fraction - 20) // √(s·2^40) = √s·2^20
}

// isqrt returns the integer square root.
func isqrt(x uint64) uint64 {
	var root uint64
	for bit := uint64(1) << 31; bit > 0; bit >>= 1 {
		if try := root | bit; try*try <= x {
			root = try
		}
	}
	return root
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

// ratings index the pending transactions for an Ordering: by score and by age.
// It is nil for ByTip, whose order is that of core.ready.
type ratings struct {
	ordering       Ordering
	scores         map[*entry]int64
	byScore, byAge *btree.BTreeG[rated]
}

// rated is an entry with its key in an index: the score, or the time of
// admission, and then the arrival.
type rated struct {
	key   int64
	entry *entry
}

func newRatings(ordering Ordering) *ratings {
	return &ratings{
		ordering: ordering,
		scores:   make(map[*entry]int64),
		byScore: btree.NewG(degree, func(a, b rated) bool {
			if a.key != b.key {
				return a.key > b.key
			}
			return a.entry.seq < b.entry.seq
		}),
		byAge: btree.NewG(degree, func(a, b rated) bool {
			if a.key != b.key {
				return a.key < b.key
			}
			return a.entry.seq < b.entry.seq
		}),
	}
}

// candidate returns the argument of Ordering.Score.
func (e *entry) candidate(base uint64) Candidate {
	return Candidate{Tx: e.tx, Tip: min(e.tip, e.feeCap-min(e.feeCap, base)), Size: uint64(e.size)}
}

// rate adds a pending entry to the ratings.
func (c *core) rate(e *entry) {
	if r := c.ratings; r != nil {
		score := r.ordering.Score(e.candidate(c.fees.base))
		r.scores[e] = score
		r.byScore.ReplaceOrInsert(rated{score, e})
		r.byAge.ReplaceOrInsert(rated{e.at, e})
	}
}

// rerate updates the ratings of a pending entry after a change of the base fee.
// Its place in core.ready may stay the same, if an ancestor pays less.
func (c *core) rerate(e *entry) {
	if r := c.ratings; r != nil {
		if score, pending := r.scores[e]; pending && score != r.ordering.Score(e.candidate(c.fees.base)) {
			c.unrate(e)
			c.rate(e)
			c.noticed(e)
		}
	}
}

// unrate removes an entry from the ratings.
func (c *core) unrate(e *entry) {
	if r := c.ratings; r != nil {
		r.byScore.Delete(rated{r.scores[e], e})
		r.byAge.Delete(rated{e.at, e})
		delete(r.scores, e)
	}
}

// keyOf returns the place of a pending entry among the heads of a session.
func (c *core) keyOf(e *entry, now int64) place {
	if c.ratings == nil {
		return place{e.rank, e.seq}
	}
	return place{priority(c.ratings.scores[e], c.ratings.ordering.Bonus(time.Duration(now-e.at))), e.seq}
}

// walk visits the pending transactions, in an order in which the best come
// first.
type walk interface {
	// visit calls the function with the next few transactions.
	visit(func(*entry))
	// bound returns a place that no sender precedes that was not visited.
	bound() place
	// passed reports whether the walk is past the place of an entry.
	passed(*entry) bool
	// done reports whether everything was visited.
	done() bool
}

func (c *core) newWalk(s *Session) walk {
	if c.ratings == nil {
		return &tipWalk{index: c.ready}
	}
	return &scoreWalk{ratings: c.ratings, now: s.now}
}

// stride is the number of transactions that a walk visits together.
const stride = readers

// tipWalk walks core.ready.
type tipWalk struct {
	index *btree.BTreeG[ranked]
	at    ranked // last visited
	ended bool
}

func (w *tipWalk) done() bool   { return w.ended }
func (w *tipWalk) bound() place { return w.at.place }
func (w *tipWalk) passed(e *entry) bool {
	return w.ended || w.at.entry != nil && before(ranked{e.lead, e}, w.at)
}

func (w *tipWalk) visit(f func(*entry)) {
	w.ended = visitSome(w.index, &w.at, func(r ranked) { f(r.entry) })
}

// scoreWalk walks two lists at the same time: the one by score and the one by
// age. No transaction that it has not visited has a better score than the last
// one of the first list, or a better bonus than the last one of the second. This
// is the threshold algorithm of database systems.
type scoreWalk struct {
	ratings      *ratings
	now          int64
	score, age   rated // last visited
	scored, aged bool  // end of the list
}

func (w *scoreWalk) done() bool         { return w.scored || w.aged }
func (w *scoreWalk) passed(*entry) bool { return true }

func (w *scoreWalk) bound() place {
	if w.score.entry == nil {
		return noLead
	}
	return place{priority(w.score.key, w.ratings.ordering.Bonus(time.Duration(w.now-w.age.key))), 0}
}

func (w *scoreWalk) visit(f func(*entry)) {
	each := func(r rated) { f(r.entry) }
	w.scored = visitSome(w.ratings.byScore, &w.score, each)
	w.aged = visitSome(w.ratings.byAge, &w.age, each)
}

// visitSome visits the next few elements of an index from at on, which it
// advances. It reports whether the index has ended. The zero value is the
// beginning.
func visitSome[T comparable](index *btree.BTreeG[T], at *T, f func(T)) (ended bool) {
	var beginning T
	n, from := 0, *at
	each := func(r T) bool {
		if r == from { // visited before
			return true
		}
		if n++; n > stride {
			return false
		}
		*at = r
		f(r)
		return true
	}
	if from == beginning {
		index.Ascend(each)
	} else {
		index.AscendGreaterOrEqual(from, each)
	}
	return *at == from
}

// view is an index at one moment with the data that is needed to read it. It is
// read without the lock, so it uses only fields of entries that do not change.
type view struct {
	index    *btree.BTreeG[ranked]
	ordering Ordering
	base     uint64 // base fee, wei per gas
	now      int64
}

// order yields the transactions of a view, best first, and those of each sender
// in nonce order.
func (v *view) order() iter.Seq[*entry] {
	if _, byTip := v.ordering.(ByTip); byTip {
		return func(yield func(*entry) bool) {
			v.index.Ascend(func(r ranked) bool { return yield(r.entry) })
		}
	}
	return v.orderByScore
}

// orderByScore yields the best among the senders' next transactions until none
// is left.
func (v *view) orderByScore(yield func(*entry) bool) {
	rest := make(map[*account][]*entry)
	v.index.Ascend(func(r ranked) bool {
		rest[r.entry.account] = append(rest[r.entry.account], r.entry)
		return true
	})
	var next heads
	push := func(a *account) {
		if txs := rest[a]; len(txs) > 0 {
			e := txs[0]
			rest[a] = txs[1:]
			score := v.ordering.Score(e.candidate(v.base))
			heap.Push(&next, &head{place: place{priority(score, v.ordering.Bonus(time.Duration(v.now-e.at))), e.seq}, entry: e})
		}
	}
	for a := range rest {
		push(a)
	}
	for len(next) > 0 {
		e := heap.Pop(&next).(*head).entry
		if !yield(e) {
			return
		}
		push(e.account)
	}
}
