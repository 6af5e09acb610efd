package txpool

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// State is the pool's view of the chain: the accounts after the host's newest
// executed block. When that block changes, the host calls [Pool.Reset] after
// State shows the change.
type State interface {
	// Account returns an account. It returns the zero Account and no error if
	// the account does not exist. The pool calls it from several goroutines
	// concurrently, without the lock that Add and the readers use. However, a
	// call from Drain, Reset, Commit, Release or CleanupExpired blocks the
	// other calls of these five until it returns. Account must therefore not
	// wait for a goroutine that calls one of them.
	Account(address common.Address) (Account, error)
}

// Account has the data of an account that decides whether its transactions can
// run.
type Account struct {
	// Nonce is the nonce of the account's next transaction.
	Nonce uint64
	// Balance is the balance in wei.
	Balance uint256.Int
	// Delegated reports whether the account's code is a delegation (EIP-7702),
	// so that others can spend its balance.
	Delegated bool
}

// StateFunc makes a function a [State].
type StateFunc func(common.Address) (Account, error)

// Account calls f.
func (f StateFunc) Account(address common.Address) (Account, error) { return f(address) }

// account is a sender with its transactions. It stays in the pool while it has some, or while a committed bundle holds
// transactions of it that the host's state does not show yet.
type account struct {
	address   common.Address
	slot      int32 // place in core.list
	delegated bool
	stale     bool // State failed when the account was to be read again
	short     bool // the balance does not cover what is in leases or exempt
	held      bool // some were parked as unfunded when the chain was last arranged

	state uint64 // the nonce in the host's state
	nonce uint64 // the next one that the pool may give out: state, or after what was committed
	// spare is the balance without the cost of txs and of what was committed, modulo 2^256 if that is short.
	spare     uint256.Int
	committed *committed // what the host's state does not show yet

	waits  int32 // how many of txs are behind a gap
	line   int32 // how many of txs are in line; they come first
	leased int32 // how many of txs are in leases
	exempt int32 // how many of txs are exempt from the caps
	// Neighbours in core.waiting: the one that gives way before this one, and the one that does after it.
	waitsAfter, waitsBefore *account

	txs    []link  // by nonce, no two of the same
	inline [1]link // where txs begins, since most senders have one
}

// link is an entry of an account, with its nonce at hand.
type link struct {
	nonce uint64
	*entry
}

func newAccount(address common.Address, known Account) *account {
	return &account{address: address, state: known.Nonce, nonce: known.Nonce, spare: known.Balance, delegated: known.Delegated}
}

// find returns the place of a nonce among the transactions, and whether one is there.
func (a *account) find(nonce uint64) (int, bool) {
	if n := len(a.txs); n == 0 || a.txs[n-1].nonce < nonce { // nonces mostly arrive in order
		return n, false
	}
	return slices.BinarySearchFunc(a.txs, nonce, func(l link, n uint64) int { return cmp.Compare(l.nonce, n) })
}

// insert puts an entry at its place. The chain must be arranged from there afterwards.
func (a *account) insert(i int, e *entry) {
	if len(a.txs) == 0 {
		a.txs = a.inline[:0]
	}
	a.txs = slices.Insert(a.txs, i, link{e.nonce, e})
	if i < int(a.line) {
		a.line++
	}
}

// cut takes the entry at a place out. The chain must be arranged from there afterwards.
func (a *account) cut(i int) {
	a.txs = slices.Delete(a.txs, i, i+1)
	if i < int(a.line) {
		a.line--
	}
}

// next returns the nonce after those in line.
func (a *account) next() uint64 {
	if a.line > 0 {
		return max(a.nonce, a.txs[a.line-1].nonce+1)
	}
	return a.nonce
}

// weighs reports whether the balance must still pay for a nonce: the host's state does not show it yet.
func (a *account) weighs(nonce uint64) bool { return nonce >= a.state }

// totalCost returns what all transactions and what was committed cost together at most. Admission sees to it that it does not overflow.
func (a *account) totalCost() *uint256.Int {
	total := a.owed()
	for _, e := range a.txs {
		if a.weighs(e.nonce) {
			total.Add(total, &e.cost)
		}
	}
	return total
}

// balance returns what the host's state said.
func (a *account) balance() *uint256.Int { return new(uint256.Int).Add(&a.spare, a.totalCost()) }

// before returns what a chain is like before a place that is not the first: the nonce that would be in line there, and the place and status of
// the last one before it. Leased ones pass on what was before them.
func (a *account) before(i int) (next uint64, lead place, lowest status) {
	next = max(a.nonce, a.txs[i-1].nonce+1)
	for i--; i >= 0; i-- {
		if e := a.txs[i].entry; e.lease == nil || e.status == queued {
			return next, e.lead, e.status
		}
	}
	return next, noLead, ready
}
