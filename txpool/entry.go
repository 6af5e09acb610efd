package txpool

import (
	"bytes"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// entry is a transaction in the pool. Its prices are in wei.
type entry struct {
	tx    *types.Transaction
	hash  common.Hash
	from  common.Address
	nonce uint64
	size  uint64
	cost  uint256.Int // gas·feeCap + value
	tip   uint256.Int
	// feeCap is the greatest price per gas, tip included.
	feeCap uint256.Int
	seq    uint64 // order of arrival
	at     time.Time

	pending bool   // consecutive from the account's nonce on
	lease   uint64 // the lease that holds it, or 0
}

// goesBefore orders entries of different senders: the greater tip first, then the earlier arrival, then the smaller hash.
func goesBefore(a, b *entry) bool {
	if c := a.tip.Cmp(&b.tip); c != 0 {
		return c > 0
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return bytes.Compare(a.hash[:], b.hash[:]) < 0
}

// tail is the last pending transaction of a sender, which may be evicted. Its rank is the least tip of the sender's chain up to
// it (invariant I4): a rich child does not protect a poor parent.
type tail struct {
	rank  uint256.Int
	entry *entry
}

// worseThan orders tails, the first to be evicted first: the lower rank, then the later arrival.
func worseThan(a, b tail) bool {
	if c := a.rank.Cmp(&b.rank); c != 0 {
		return c < 0
	}
	if a.entry.seq != b.entry.seq {
		return a.entry.seq > b.entry.seq
	}
	return bytes.Compare(a.entry.hash[:], b.entry.hash[:]) < 0
}

// account is a sender with its transactions by nonce.
type account struct {
	address common.Address
	nonce   uint64 // the next one that can run
	balance uint256.Int
	txs     []*entry
	cost    uint256.Int // of all txs

	head *entry // the first that can be drained, as it stands in core.heads
	tail *tail  // as it stands in core.tails
}

// find returns the place of a nonce among the transactions, and whether one is there.
func (a *account) find(nonce uint64) (int, bool) {
	return slices.BinarySearchFunc(a.txs, nonce, func(e *entry, n uint64) int {
		switch {
		case e.nonce < n:
			return -1
		case e.nonce > n:
			return 1
		}
		return 0
	})
}

// nextNonce returns the nonce after the pending transactions.
func (a *account) nextNonce() uint64 {
	next := a.nonce
	for _, e := range a.txs {
		if e.pending {
			next = e.nonce + 1
		}
	}
	return next
}
