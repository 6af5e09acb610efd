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

// account is a sender with its transactions. It stays in the pool while it has
// some.
type account struct {
	address  common.Address
	slot     int32 // index in core.list
	stale    bool  // last read of State failed
	unfunded bool  // some are parked as unfunded
	touched  bool  // in core.touched

	Account // in the host's state
	// cost is the maximum cost of all transactions that the host's state does
	// not show.
	cost uint256.Int

	line   int32 // number in line; they come first
	locked int32 // number locked by the session
	ahead  int32 // number of locked ones before the first that is not
	exempt int32 // number exempt from the caps
	fixed  int32 // number behind a gap that cannot give way
	gapped int32 // number behind a gap that can
	// from and to are the range of indexes of changed transactions, if touched is
	// set.
	from, to int32
	since    uint64 // place among those with an equal number: see gaps

	txs   []link  // by nonce, without duplicates
	first [1]link // room for one, as most senders have
}

// link is an entry of an account together with its nonce.
type link struct {
	nonce uint64
	*entry
}

func newAccount(address common.Address, known Account) *account {
	a := &account{address: address, Account: known}
	a.txs = a.first[:0]
	return a
}

// find returns the index of a nonce among the transactions, and whether there
// is a transaction with it.
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

// indexOf returns the index of an entry of the account.
func (a *account) indexOf(e *entry) int {
	i, _ := a.find(e.nonce)
	return i
}

// insertAt inserts an entry at an index. The caller must then arrange the chain
// from there.
func (a *account) insertAt(i int, e *entry) {
	a.txs = slices.Insert(a.txs, i, link{e.nonce, e})
	if i < int(a.line) {
		a.line++
	}
	a.ahead, a.from = min(a.ahead, int32(i)), min(a.from, int32(i))
}

// removeAt removes the entry at an index. The caller must then arrange the chain
// from there.
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

// countAhead extends the count of leading locked transactions.
func (a *account) countAhead() {
	for int(a.ahead) < len(a.txs) && a.txs[a.ahead].locked {
		a.ahead++
	}
}

// head returns the next transaction of the sender that a builder can take, or
// nil. All transactions before it are locked.
func (a *account) head() *entry {
	if int(a.ahead) < len(a.txs) {
		e := a.txs[a.ahead].entry
		if e.status == ready {
			return e
		}
	}
	return nil
}

// next returns the nonce after the transactions in line.
func (a *account) next() uint64 {
	if a.line > 0 {
		return max(a.Nonce, a.txs[a.line-1].nonce+1)
	}
	return a.Nonce
}

// inFlight returns how many transactions are in line.
func (a *account) inFlight() int { return int(a.next() - a.Nonce) }

// unsettled reports whether nonce has not been applied to the host's state, so
// that its cost still counts against the balance.
func (a *account) unsettled(nonce uint64) bool { return nonce >= a.Nonce }

// short reports whether the balance does not cover the cost of all
// transactions. It covers those of newcomers; only transactions that came back
// or that are locked can exceed it.
func (a *account) short() bool { return a.Balance.Lt(&a.cost) }

// differs reports whether the host's state has changed.
func (a *account) differs(known Account) bool { return a.stale || a.Account != known }

// countCost counts the cost of all transactions again, because the host's state
// shows another nonce.
func (a *account) countCost() {
	a.cost.Clear()
	for _, e := range a.txs {
		if a.unsettled(e.nonce) {
			a.cost.Add(&a.cost, &e.cost)
		}
	}
}

// funded returns the index of the first transaction of a chain that the balance
// does not cover, in nonce order.
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

// before returns the state of a chain before index i > 0: the next nonce in
// line, and the place and status of the last transaction before i. A locked
// transaction has no place, so the one before it counts.
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
