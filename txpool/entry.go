package txpool

import (
	"math"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// status is where a transaction stands in its sender's chain.
type status uint8

const (
	// queued: behind a nonce gap.
	queued status = iota
	// parked: in line, but it or one before it does not pay the floor or the base fee.
	parked
	// ready: in line, and it can run.
	ready
)

// entry is a transaction in the pool. What is above the line never changes after admission, so snapshots may read it without the lock.
type entry struct {
	tx      *types.Transaction
	prefix  uint64 // of the hash: so that leaving does not look at the transaction
	nonce   uint64
	feeCap  uint64 // wei per gas, as are all prices here, and no more than 2^64-1
	tip     uint64
	seq     uint64      // order of admission
	at      int64       // time of admission, Unix nanoseconds
	cost    uint256.Int // gas·feeCap + value, and what the host adds
	size    uint32      // bytes of the encoding
	memory  uint32      // bytes in memory, about
	da      uint32      // bytes of data availability
	work    uint32      // the least gas that it takes
	blob    bool
	private bool

	// ————
	account *account
	lease   *Lease // that holds it, or nil
	rare    *rare
	rank    uint64 // see fees.rank
	lead    place  // as in the index that holds the entry
	status  status
	surplus bool // in core.surplus
	gone    bool // not in the pool any more
	fresh   bool // nobody was told of it yet
	exempt  bool // see exempt.go
	// replacements is how often this nonce was replaced since then, in seconds of Unix time.
	since        uint32
	replacements uint16
}

// hash is cached by the transaction.
func (e *entry) hash() common.Hash { return e.tx.Hash() }

// place orders transactions that can run: the greater rank first, then the earlier arrival, then the smaller nonce. The rank is the
// least of a transaction and its ancestors, and seq that ancestor's: so a sender's transactions follow each other, a rich child does
// not come before its poor parent, and the last place is always the end of a chain (invariants I3, I4).
//
// It is also the order in which a builder gets most when it always takes the best next transaction of any sender: whatever follows the
// poor ancestor and is richer comes right after it.
type place struct {
	rank, seq uint64
}

// ranked is an entry at its place, in an index. The place is a copy, so that it stays as it is in snapshots.
type ranked struct {
	place
	entry *entry
}

func before(a, b ranked) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.seq != b.seq:
		return a.seq < b.seq
	default:
		return a.entry.nonce < b.entry.nonce
	}
}

// degree is google/btree's usual one.
const degree = 32

func newIndex() *btree.BTreeG[ranked] { return btree.NewG(degree, before) }

// noLead is the place before the first of a chain.
var noLead = place{rank: math.MaxUint64}

// after returns the place of an entry whose predecessor in the chain has this one.
func (p place) after(e *entry) place {
	if e.rank < p.rank {
		return place{e.rank, e.seq}
	}
	return p
}

// saturate returns a price as 64 bits. 2^64-1 wei is more than 18 ether per gas: what is above need not be told apart.
func saturate(price *uint256.Int) uint64 {
	if !price.IsUint64() {
		return math.MaxUint64
	}
	return price.Uint64()
}

// addSaturating returns a + b, or 2^64-1.
func addSaturating(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}
