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

// status tells whether a transaction can run. It depends on the nonces, prices and
// costs of the transaction itself and of the sender's earlier transactions.
type status uint8

const (
	// queued means that a nonce before the transaction is missing.
	queued status = iota
	// parked means that no earlier nonce is missing, but the transaction, or one before
	// it, pays too little or exceeds the sender's balance.
	parked
	// ready means that the transaction can run.
	ready
	// building is the group of the transactions that a session has locked, because it
	// builds a block with them. It is never the status of a transaction.
	building
	// groups is the number of groups in which entries are counted.
	groups
)

// entry is a transaction in the pool together with the pool's data about it. The fields
// above the line never change after admission, so that snapshots can read them without
// the lock.
type entry struct {
	tx     *types.Transaction
	nonce  uint64
	feeCap uint64 // wei per gas, saturated
	tip    uint64
	gas    uint64      // limit
	seq    uint64      // order of admission
	at     int64       // time of admission, Unix nanoseconds
	cost   uint256.Int // gas·feeCap + value + Config.ExtraCost
	// authorized lists the accounts that signed authorizations (EIP-7702) in the
	// transaction, or is nil.
	authorized *[]authority
	size       uint32 // bytes of the encoding
	memory     uint32 // approximate bytes in memory
	work       uint32 // minimum gas
	private    bool

	// ———— the fields below may change
	status   status
	roomless bool // could run, but waits for room; in core.roomless
	locked   bool // a session has taken it
	gone     bool // no longer in the pool
	fresh    bool // admitted, but no event emitted yet
	exempt   bool // exempt from the caps: see apply.go
	ran      bool // could run at some time since its admission
	enlisted bool // its authorities are counted in core.authorizations
	// replacements counts how often this nonce was replaced since a time, in Unix
	// seconds.
	replacements uint16
	since        uint32
	account      *account
	rank         uint64 // value to the builder: see fees.rank
	lead         place  // place in its index; noLead if it is in none
}

func (e *entry) authorities() []authority {
	if e.authorized == nil {
		return nil
	}
	return *e.authorized
}

// hash returns the transaction's hash, which the transaction caches.
func (e *entry) hash() common.Hash { return e.tx.Hash() }

// place is the key by which transactions are sorted: the higher rank first, then the
// earlier arrival, then the lower nonce. A builder that always takes the best next
// transaction of any sender takes them in this order.
//
// A transaction never sorts before an earlier one of its sender: if the earlier one has
// a worse place, the later one has that place too. A child that pays well therefore
// follows directly after a parent that pays badly, and the last transaction of the
// order is always the last of its sender's chain (invariants I3, I4).
type place struct {
	rank, seq uint64
}

// ranked is an element of a sorted list of transactions. It has a copy of the
// transaction's place, so that a snapshot of the list stays sorted when the transaction
// gets another place later. It also has copies of gas and size, at most 2^32-1, so that a
// session that skips thousands of transactions need not read each entry from memory.
type ranked struct {
	place
	entry     *entry
	gas, size uint32
}

// ranked returns the entry as it is stored in an index at a place.
func (e *entry) ranked(p place) ranked {
	return ranked{p, e, uint32(min(e.gas, math.MaxUint32)), e.size}
}

func before(a, b ranked) bool {
	if a.place == b.place {
		return a.entry.nonce < b.entry.nonce
	}
	return a.place.before(b.place)
}

// compare orders like before, for sorting.
func compare(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.seq, b.seq), cmp.Compare(a.entry.nonce, b.entry.nonce))
}

func (p place) before(other place) bool {
	if p.rank != other.rank {
		return p.rank > other.rank
	}
	return p.seq < other.seq
}

// degree is the degree of the B-trees, google/btree's usual value.
const degree = 32

func newIndex() *btree.BTreeG[ranked] { return btree.NewG(degree, before) }

// noLead is the place before all others. It stands for the place of the previous
// transaction if a transaction is the first of its chain.
var noLead = place{rank: math.MaxUint64}

// after returns the position of e in the order of the pool. It is never better than p,
// the position of the sender's previous transaction.
func (p place) after(e *entry) place {
	own := (place{e.rank, e.seq})
	if p.before(own) {
		return own
	}
	// A transaction never comes before the sender's previous one.
	return p
}

// behind returns the earliest place that the sender's next transaction can have.
func (e *entry) behind() place {
	if e.roomless {
		// This transaction waits for room in the pool. The sender's next one cannot run before
		// it, so its place is behind all others.
		return place{0, e.seq}
	}
	return e.lead
}

// saturate converts a price to 64 bits; a higher price becomes 2^64-1. That is more
// than 18 ether per gas, and the pool need not distinguish prices above it.
func saturate(price *uint256.Int) uint64 {
	if !price.IsUint64() {
		return math.MaxUint64
	}
	return price.Uint64()
}

// addSaturating returns a + b, but 2^64-1 if the sum is larger.
func addSaturating(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// class returns the size class; each class covers twice the memory of the one before.
func (e *entry) class() int {
	const smallest = 10 // in bits, so that the first class has everything below 1 kB
	return min(max(bits.Len32(e.memory)-smallest, 0), classes-1)
}

// classes is the number of size classes; the last begins at 512 kB.
const classes = 11
