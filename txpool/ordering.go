package txpool

import (
	"container/heap"
	"iter"
	"math/bits"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
)

// Ordering decides the order in which transactions of different senders are
// drained. Transactions of one sender are always drained in nonce order.
// Ordering does not affect eviction, which depends on the effective tip only,
// so that age never protects a transaction (invariant I13).
type Ordering interface {
	// Score returns the priority of a transaction. The highest score goes
	// first; of equal scores, the earlier arrival. It is called for every
	// pending transaction in each drain, without a lock. It must depend on its
	// argument only.
	Score(Candidate) int64
}

// Candidate is a pending transaction.
type Candidate struct {
	// Tx is the transaction.
	Tx *types.Transaction
	// Tip is the price above the base fee, in wei per gas, at most 2^64-1.
	Tip uint64
	// Size is the size of the encoding, in bytes.
	Size uint64
	// Age is the time since the transaction was admitted.
	Age time.Duration
}

// ByTip is the default order: the higher effective tip first, then the earlier
// arrival. The pool maintains this order at all times, so the cost of a drain
// depends on the drained transactions only. With another order, each drain
// visits the whole pool.
type ByTip struct{}

// Score returns a score that grows with the tip.
func (ByTip) Score(c Candidate) int64 { return int64(c.Tip >> 1) }

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

// Score returns the weighted sum, in units of 2^-24.
func (s ByScore) Score(c Candidate) int64 {
	if s.Fee == 0 && s.Size == 0 && s.Age == 0 {
		s.Fee, s.Size, s.Age = 1000, 150, 100
	}
	const gwei = 1_000_000_000
	base := s.BaseTip
	if base == 0 {
		base = gwei
	}
	fee := lnQuotient(c.Tip, base)
	size := (int64(1024) << fraction) / int64(max(c.Size, 1))
	age := sqrtSeconds(c.Age)
	return (fee*int64(s.Fee) + size*int64(s.Size) + age*int64(s.Age)) / perMille
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
	chains := make(map[*account]*chain)
	var heads chainHeap
	v.index.Ascend(func(r ranked) bool {
		c := chains[r.entry.account]
		if c == nil {
			c = new(chain)
			chains[r.entry.account] = c
			heads = append(heads, c)
		}
		c.txs = append(c.txs, r.entry)
		return true
	})
	for _, c := range heads {
		c.score = v.score(c.txs[0])
	}
	heap.Init(&heads)
	for len(heads) > 0 {
		c := heads[0]
		if !yield(c.txs[0]) {
			return
		}
		if c.txs = c.txs[1:]; len(c.txs) == 0 {
			heap.Pop(&heads)
			continue
		}
		c.score = v.score(c.txs[0])
		heap.Fix(&heads, 0)
	}
}

func (v *view) score(e *entry) int64 {
	tip := min(e.tip, e.feeCap-min(e.feeCap, v.base))
	return v.ordering.Score(Candidate{Tx: e.tx, Tip: tip, Size: uint64(e.size), Age: time.Duration(v.now - e.at)})
}

// chain is the rest of a sender's transactions.
type chain struct {
	txs   []*entry
	score int64
}

// chainHeap is a heap of chains with the best next transaction at its top.
type chainHeap []*chain

func (h chainHeap) Len() int { return len(h) }
func (h chainHeap) Less(i, j int) bool {
	if h[i].score != h[j].score {
		return h[i].score > h[j].score
	}
	return h[i].txs[0].seq < h[j].txs[0].seq
}
func (h chainHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *chainHeap) Push(x any)   { *h = append(*h, x.(*chain)) }
func (h *chainHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
