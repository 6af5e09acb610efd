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

// account is a sender with its transactions. It stays in the pool while it has
// some, or while a committed bundle contains transactions of it that the host's
// state does not show yet.
type account struct {
	address   common.Address
	slot      int32 // index in core.list
	delegated bool
	stale     bool // last read of State failed
	short     bool // balance below leased and exempt costs
	held      bool // some are parked as unfunded

	state uint64 // nonce in the host's state
	nonce uint64 // state, or after committed ones
	// spare is the balance minus the cost of txs and of committed, modulo 2^256
	// if short is set.
	spare     uint256.Int
	committed *committed // not yet in the host's state

	waits  int32 // number behind a gap
	line   int32 // number in line; they come first
	leased int32 // number in leases
	exempt int32 // number exempt from the caps
	// waitsAfter and waitsBefore are the neighbours in core.waiting: the
	// account that gives way before this one, and the one after it.
	waitsAfter, waitsBefore *account

	txs    []link  // by nonce, without duplicates
	inline [1]link // backing array for one transaction
}

// link is an entry of an account together with its nonce.
type link struct {
	nonce uint64
	*entry
}

func newAccount(address common.Address, known Account) *account {
	return &account{address: address, state: known.Nonce, nonce: known.Nonce, spare: known.Balance, delegated: known.Delegated}
}

// find returns the index of a nonce among the transactions, and whether there
// is a transaction with it.
func (a *account) find(nonce uint64) (int, bool) {
	if n := len(a.txs); n == 0 || a.txs[n-1].nonce < nonce { // common case: nonces in order
		return n, false
	}
	return slices.BinarySearchFunc(a.txs, nonce, func(l link, n uint64) int { return cmp.Compare(l.nonce, n) })
}

// insert inserts an entry at an index. The caller must then arrange the chain
// from there.
func (a *account) insert(i int, e *entry) {
	if len(a.txs) == 0 {
		a.txs = a.inline[:0]
	}
	a.txs = slices.Insert(a.txs, i, link{e.nonce, e})
	if i < int(a.line) {
		a.line++
	}
}

// cut removes the entry at an index. The caller must then arrange the chain
// from there.
func (a *account) cut(i int) {
	a.txs = slices.Delete(a.txs, i, i+1)
	if i < int(a.line) {
		a.line--
	}
}

// next returns the nonce after the transactions in line.
func (a *account) next() uint64 {
	if a.line > 0 {
		return max(a.nonce, a.txs[a.line-1].nonce+1)
	}
	return a.nonce
}

// unsettled reports whether nonce has not been applied to the host's state, so
// that its cost still counts against the balance.
func (a *account) unsettled(nonce uint64) bool { return nonce >= a.state }

// totalCost returns the maximum cost of all transactions and of committed ones
// together. Admission makes sure that it does not overflow.
func (a *account) totalCost() *uint256.Int {
	total := a.owed()
	for _, e := range a.txs {
		if a.unsettled(e.nonce) {
			total.Add(total, &e.cost)
		}
	}
	return total
}

// balance returns the balance in the host's state.
func (a *account) balance() *uint256.Int { return new(uint256.Int).Add(&a.spare, a.totalCost()) }

// before returns the state of a chain before index i > 0: the next nonce in
// line, and the place and status of the last transaction before i. A leased
// transaction has no place, so the one before it counts.
func (a *account) before(i int) (next uint64, lead place, lowest status) {
	next = max(a.nonce, a.txs[i-1].nonce+1)
	for i--; i >= 0; i-- {
		if e := a.txs[i].entry; e.lease == nil || e.status == queued {
			return next, e.lead, e.status
		}
	}
	return next, noLead, ready
}
