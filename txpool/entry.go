package txpool

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// status is the position of a transaction in its sender's chain.
type status uint8

const (
	// queued means behind a nonce gap.
	queued status = iota
	// parked means in line, but this transaction or one before it does not pay
	// the floor or the base fee, or is not covered by the balance.
	parked
	// ready means in line and able to run.
	ready
	// building means locked. Entries are counted by it; none has it as its status.
	building
	// groups is the number of values by which entries are counted.
	groups
)

// entry is a transaction in the pool. The fields above the line never change
// after admission, so snapshots read them without the lock.
type entry struct {
	tx     *types.Transaction
	nonce  uint64
	feeCap uint64 // wei per gas, saturated
	tip    uint64
	gas    uint64      // limit
	seq    uint64      // order of admission
	at     int64       // time of admission, Unix nanoseconds
	cost   uint256.Int // gas·feeCap + value + Config.ExtraCost
	// authorized has the authorities of its authorizations, if there are any.
	authorized *[]authority
	size       uint32 // bytes of the encoding
	memory     uint32 // approximate bytes in memory
	work       uint32 // minimum gas
	private    bool

	// ————
	status   status
	roomless bool // could run if there were room; in core.roomless
	locked   bool // by the session of the core, which has taken it
	gone     bool // no longer in the pool
	fresh    bool // no event yet
	exempt   bool // see apply.go
	ran      bool // could run at some time since its admission
	enlisted bool // authorities are in core.authorizations
	// replacements is the number of replacements of this nonce since the time
	// since, in seconds of Unix time.
	replacements uint16
	since        uint32
	account      *account
	rank         uint64 // see fees.rank
	lead         place  // place in its index
}

func (e *entry) authorities() []authority {
	if e.authorized == nil {
		return nil
	}
	return *e.authorized
}

// hash returns the transaction's hash, which the transaction caches.
func (e *entry) hash() common.Hash { return e.tx.Hash() }

// place orders transactions that can run: the higher rank first, then the
// earlier arrival, then the lower nonce. Rank and seq are those of the last one,
// in this order, of a transaction and its ancestors. Therefore a well-paying
// child does not precede its badly paying parent, and the last place is always
// the end of a chain (invariants I3, I4).
//
// This is the order in which a builder takes transactions that always takes the
// best next transaction of any sender: the transactions that pay more than an
// ancestor follow it directly.
type place struct {
	rank, seq uint64
}

// ranked is an entry with its place in an index. The place is a copy, so that
// it does not change in snapshots. gas and size are those of the transaction, at most
// 2^32-1. A session that passes over thousands of transactions reads the index only.
type ranked struct {
	place
	entry     *entry
	gas, size uint32
}

// ranked returns the entry with a place.
func (e *entry) ranked(p place) ranked {
	return ranked{p, e, uint32(min(e.gas, math.MaxUint32)), e.size}
}

func before(a, b ranked) bool {
	if a.place == b.place {
		return a.entry.nonce < b.entry.nonce
	}
	return a.place.before(b.place)
}

// compare is before for sorting.
func compare(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.seq, b.seq), cmp.Compare(a.entry.nonce, b.entry.nonce))
}

// before reports whether a place precedes another one.
func (p place) before(other place) bool {
	if p.rank != other.rank {
		return p.rank > other.rank
	}
	return p.seq < other.seq
}

// degree is the degree of the B-trees, google/btree's usual value.
const degree = 32

func newIndex() *btree.BTreeG[ranked] { return btree.NewG(degree, before) }

// noLead is the place before the first transaction of a chain.
var noLead = place{rank: math.MaxUint64}

// after returns the place of an entry whose predecessor in the chain has place
// p.
func (p place) after(e *entry) place {
	own := (place{e.rank, e.seq})
	if p.before(own) {
		return own
	}
	return p
}

// behind returns the place from which that of the next transaction in the chain
// follows. The transactions after one that waits for room are behind all
// others.
func (e *entry) behind() place {
	if e.roomless {
		return place{0, e.seq}
	}
	return e.lead
}

// saturate returns a price as 64 bits. 2^64-1 wei is more than 18 ether per
// gas; higher prices need not be distinguished.
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

// class returns the size class of an entry.
func (e *entry) class() int {
	const smallest = 10 // bits: the first class has everything below 1 kB
	return min(max(bits.Len32(e.memory)-smallest, 0), classes-1)
}

// classes is the number of size classes. The last one has everything from 512
// kB.
const classes = 11
