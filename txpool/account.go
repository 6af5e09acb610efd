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
	// call from Next, Reset or CleanupExpired blocks the other calls of these
	// three until it returns. Account must therefore not wait for a goroutine
	// that calls one of them.
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

// account is a sender together with its transactions in the pool. It exists only while it has some.
type account struct {
	address  common.Address
	slot     int32 // index in core.list
	stale    bool  // last read of State failed
	unfunded bool  // some are parked as unfunded
	touched  bool  // in core.touched

	Account // in the host's state
	// cost is the highest total cost of those transactions that the host's state does not show yet,
	// in wei.
	cost uint256.Int

	line   int32 // number in line; they come first
	locked int32 // number locked by the session
	ahead  int32 // number of locked ones before the first that is not
	exempt int32 // number exempt from the caps
	fixed  int32 // number behind a gap that cannot give way
	gapped int32 // number behind a gap that can
	// from and to are the range of indexes whose transactions have changed, if touched is set.
	from, to int32
	since    uint64 // place among those with an equal number: see gaps

	txs   []link  // by nonce, without duplicates
	first [1]link // room for one, as most senders have
}

// link is an entry in the chain of an account. It repeats the nonce, so that a search for a nonce
// need not read the entries.
type link struct {
	nonce uint64
	*entry
}

func newAccount(address common.Address, known Account) *account {
	a := &account{address: address, Account: known}
	a.txs = a.first[:0]
	return a
}

// find returns the index at which a nonce is or would be in the chain, and whether a transaction
// has the nonce.
func (a *account) find(nonce uint64) (int, bool) {
	n := len(a.txs)
	if n == 0 || a.txs[n-1].nonce < nonce { // common case: nonces in order
		return n, false
	}
	first := a.txs[0].nonce
	if nonce >= first && nonce-first < uint64(n) && a.txs[nonce-first].nonce == nonce {
		return int(nonce - first), true // no gap before it
	}
	return slices.BinarySearchFunc(a.txs, nonce, func(l link, n uint64) int { return cmp.Compare(l.nonce, n) })
}

// indexOf returns the index of an entry in the chain of its account.
func (a *account) indexOf(e *entry) int {
	i, _ := a.find(e.nonce)
	return i
}

// insertAt inserts an entry at an index of the chain. The caller must then update the places of the
// transactions from there on: see core.arrangeChain.
func (a *account) insertAt(i int, e *entry) {
	a.txs = slices.Insert(a.txs, i, link{e.nonce, e})
	if i < int(a.line) {
		a.line++
	}
	a.ahead, a.from = min(a.ahead, int32(i)), min(a.from, int32(i))
}

// removeAt removes the entry at an index of the chain. The caller must then update the places of
// the transactions from there on: see core.arrangeChain.
func (a *account) removeAt(i int) {
	if i == 0 { // in constant time, for long chains
		a.txs[0] = link{}
		a.txs = a.txs[1:]
	} else {
		a.txs = slices.Delete(a.txs, i, i+1)
	}
	if i < int(a.line) {
		a.line--
	}
	if i < int(a.ahead) {
		a.ahead--
	}
	a.from = min(a.from, int32(i))
	a.countAhead()
}

// countAhead counts how many transactions at the beginning of the chain are locked, after more of
// them may have become so.
func (a *account) countAhead() {
	for int(a.ahead) < len(a.txs) && a.txs[a.ahead].locked {
		a.ahead++
	}
}

// head returns the next transaction of the sender that a builder can take, or nil if there is none.
// The transactions before it are locked, because a builder has taken them already.
func (a *account) head() *entry {
	if int(a.ahead) < len(a.txs) {
		e := a.txs[a.ahead].entry
		if e.status == ready {
			return e
		}
	}
	return nil
}

// next returns the first nonce after the transactions that follow each other without a gap from the
// account's nonce on.
func (a *account) next() uint64 {
	if a.line > 0 {
		return max(a.Nonce, a.txs[a.line-1].nonce+1)
	}
	return a.Nonce
}

// inFlight returns how many transactions follow each other without a gap from the account's nonce
// on.
func (a *account) inFlight() int { return int(a.next() - a.Nonce) }

// unsettled reports whether nonce has not been applied to the host's state, so
// that its cost still counts against the balance.
func (a *account) unsettled(nonce uint64) bool { return nonce >= a.Nonce }

// short reports whether the balance does not cover the cost of all transactions together. Newcomers
// are admitted only if it does, so the balance can be short only because of transactions that came
// back or that are locked.
func (a *account) short() bool { return a.Balance.Lt(&a.cost) }

// differs reports whether the account in the host's state is another one than the pool knows.
func (a *account) differs(known Account) bool { return a.stale || a.Account != known }

// countCost adds up the cost of the transactions again, because the nonce in the host's state has
// changed.
func (a *account) countCost() {
	a.cost.Clear()
	for _, e := range a.txs {
		if a.unsettled(e.nonce) {
			a.cost.Add(&a.cost, &e.cost)
		}
	}
}

// funded returns the index of the first transaction that the balance does not cover, if the
// sender's transactions are paid in the order of their nonces.
func (a *account) funded() int {
	i := len(a.txs)
	if !a.short() {
		return i
	}
	covered := a.cost
	for i > 0 && a.Balance.Lt(&covered) {
		i--
		e := a.txs[i].entry
		if a.unsettled(e.nonce) {
			covered.Sub(&covered, &e.cost)
		}
	}
	return i
}

// before returns what the place of the transaction at index i > 0 depends on: the next nonce
// without a gap, and the place and status of the transaction before i. A locked transaction has no
// place, so before looks at the one that precedes it.
func (a *account) before(i int) (next uint64, lead place, lowest status) {
	next = max(a.Nonce, a.txs[i-1].nonce+1)
	if i <= int(a.ahead) && a.txs[i-1].status != queued {
		return next, noLead, ready
	}
	for i--; i >= 0; i-- {
		e := a.txs[i].entry
		if !e.locked || e.status == queued {
			return next, e.behind(), e.status
		}
	}
	return next, noLead, ready
}
