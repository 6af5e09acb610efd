package txpool

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// State is the pool's view of the chain: the accounts after the newest block that the host has
// executed. When the newest block changes, the host first makes State show the change and then
// calls [Pool.Reset].
type State interface {
	// Account returns the account of an address. If the account does not exist, it
	// returns the zero Account and no error.
	//
	// The pool calls Account concurrently and without holding its lock, so a slow
	// Account does not block the readers or other calls of Add. Next, Reset and
	// CleanupExpired exclude one another, however: while one of them waits for Account,
	// the other two wait as well. Account must therefore not wait for a goroutine that
	// calls Next, Reset or CleanupExpired.
	Account(address common.Address) (Account, error)
}

// Account holds the fields of an account in the host's state that the pool needs to
// decide which of the account's transactions can run.
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

// account holds a sender's transactions. It is removed when the last one leaves.
type account struct {
	address  common.Address
	slot     int32 // index in core.list
	stale    bool  // last read of State failed
	unfunded bool  // balance did not cover all txs when they were last arranged
	touched  bool  // in core.touched

	Account // in the host's state
	// cost is the maximum total cost of the transactions with unused nonces, in wei.
	cost uint256.Int

	line   int32 // number of transactions without a nonce gap before them; they come first
	locked int32 // number locked by a session
	ahead  int32 // number of locked transactions at the beginning of the chain
	exempt int32 // number exempt from the caps
	fixed  int32 // number behind a gap that newcomers cannot displace
	gapped int32 // number behind a gap that newcomers can displace
	// If touched is set, txs[from] to txs[to] have changed and must be arranged.
	from, to int32
	since    uint64 // order among senders with an equal gapped: see gaps

	txs   []link  // by nonce, without duplicates
	first [1]link // memory for one transaction, because most senders have one
}

// link is one transaction in a sender's list, which is sorted by nonce. The link
// repeats the nonce, so that a search by nonce need not read every entry from memory.
type link struct {
	nonce uint64
	*entry
}

func newAccount(address common.Address, known Account) *account {
	a := &account{address: address, Account: known}
	a.txs = a.first[:0]
	return a
}

// find returns the index of a nonce, or where to insert it and false.
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

// insertAt inserts a transaction at an index. The caller must then call
// core.arrangeChain.
func (a *account) insertAt(i int, e *entry) {
	a.txs = slices.Insert(a.txs, i, link{e.nonce, e})
	if i < int(a.line) {
		a.line++
	}
	a.ahead, a.from = min(a.ahead, int32(i)), min(a.from, int32(i))
}

// removeAt removes the transaction at an index. The caller must then call
// core.arrangeChain.
func (a *account) removeAt(i int) {
	if i == 0 { // takes constant time even for long chains
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

// countAhead updates ahead after it may have grown.
func (a *account) countAhead() {
	for int(a.ahead) < len(a.txs) && a.txs[a.ahead].locked {
		a.ahead++
	}
}

// head returns the sender's next transaction for a builder, or nil.
func (a *account) head() *entry {
	if int(a.ahead) < len(a.txs) {
		// The builder has already taken the transactions before this index: they are
		// locked.
		e := a.txs[a.ahead].entry
		if e.status == ready {
			return e
		}
	}
	return nil
}

// next returns the sender's lowest free nonce, starting at the account's nonce.
func (a *account) next() uint64 {
	if a.line > 0 {
		// Up to a.line, no nonce is missing. The first free nonce is the one after the last of
		// these transactions.
		return max(a.Nonce, a.txs[a.line-1].nonce+1)
	}
	return a.Nonce
}

// inFlight returns how many nonces in a row, from the account's nonce on, are taken.
func (a *account) inFlight() int { return int(a.next() - a.Nonce) }

// unsettled reports whether a transaction with this nonce can still cost the sender
// something.
func (a *account) unsettled(nonce uint64) bool { return nonce >= a.Nonce }

// short reports whether the balance does not cover all transactions of the sender
// together. A new transaction that would cause this is refused, so one of the sender's
// transactions must have come back from a failed block, or must be locked by a session.
func (a *account) short() bool { return a.Balance.Lt(&a.cost) }

// differs reports whether the stored account is outdated, compared with known.
func (a *account) differs(known Account) bool { return a.stale || a.Account != known }

// countCost recomputes cost after the account's nonce in the host's state has changed.
func (a *account) countCost() {
	a.cost.Clear()
	for _, e := range a.txs {
		if a.unsettled(e.nonce) {
			a.cost.Add(&a.cost, &e.cost)
		}
	}
}

// funded returns how many of the sender's transactions, in nonce order, the balance
// covers.
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

// before returns how the earlier transactions of the sender limit the one at index i,
// which must be above 0: the nonce that must come next, and the best place and status that
// it can have.
func (a *account) before(i int) (next uint64, lead place, lowest status) {
	next = max(a.Nonce, a.txs[i-1].nonce+1)
	if i <= int(a.ahead) && a.txs[i-1].status != queued {
		// All earlier transactions are locked. A builder has taken them already, so this one
		// need not wait for them.
		return next, noLead, ready
	}
	for i--; i >= 0; i-- {
		e := a.txs[i].entry
		// A transaction cannot run before the one with the preceding nonce, so it never has a
		// better place or status than that one.
		if !e.locked || e.status == queued {
			return next, e.behind(), e.status
		}
	}
	return next, noLead, ready
}
