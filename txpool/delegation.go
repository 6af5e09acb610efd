package txpool

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// authority is an account that has signed an authorization in a transaction, which
// turns the account's code into a delegation (EIP-7702).
//
// Another party can spend the balance of a delegated account and so invalidate all its
// transactions at once, for the price of one. The pool therefore holds few transactions
// of a sender that is delegated or about to be (invariant I7). A sender is about to be
// delegated if a transaction that can run contains an authorization of the sender that
// could apply. Only transactions that can run count: otherwise strangers could restrict
// an account for free, with old signatures of the account in transactions that never
// run.
type authority struct {
	Address common.Address
	Nonce   uint64 // nonce of the authorization
}

// authorizations counts the authorizations in transactions that can run, by the account
// that signed them and by nonce. The counts show which accounts may become delegated
// soon.
type authorizations map[common.Address]map[uint64]int

// authorities returns the valid authorizations of a transaction, without duplicates.
func (c *Config) authorities(tx *types.Transaction) []authority {
	var valid []authority
	for _, auth := range tx.SetCodeAuthorizations() {
		// The authorization is for another chain.
		if !auth.ChainID.IsZero() && auth.ChainID.ToBig().Cmp(c.ChainID) != 0 {
			continue
		}
		address, err := auth.Authority()
		a := (authority{address, auth.Nonce})
		if err == nil && !slices.Contains(valid, a) {
			valid = append(valid, a)
		}
	}
	return valid
}

// enlistAuthorities adds the authorizations of a transaction to the counts, or removes
// them.
func (c *core) enlistAuthorities(e *entry, counts bool) {
	if e.enlisted == counts {
		return
	}
	e.enlisted = counts
	for _, auth := range e.authorities() {
		if counts {
			c.authorizations.add(auth)
		} else {
			c.authorizations.remove(auth)
		}
	}
}

func (all authorizations) add(auth authority) {
	nonces := all[auth.Address]
	if nonces == nil {
		nonces = make(map[uint64]int)
		all[auth.Address] = nonces
	}
	nonces[auth.Nonce]++
}

func (all authorizations) remove(auth authority) {
	nonces := all[auth.Address]
	nonces[auth.Nonce]--
	if nonces[auth.Nonce] == 0 {
		delete(nonces, auth.Nonce)
	}
	if len(nonces) == 0 {
		delete(all, auth.Address)
	}
}

// applicable returns the range of nonces with which an authorization by the account
// could apply.
func (a *account) applicable() (first, last uint64) {
	last = a.Nonce
	n := len(a.txs)
	if n > 0 {
		last = max(last, a.txs[n-1].nonce+1)
	}
	// The range must not be too small. It therefore assumes that all nonce gaps are filled,
	// and that one more transaction arrives.
	return a.Nonce, addSaturating(last, 1)
}

// throttled reports whether the pool admits only few transactions of the account.
func (c *core) throttled(a *account) bool {
	if a.Delegated {
		// Another party can already spend the account's balance (EIP-7702).
		return true
	}
	nonces := c.authorizations[a.address]
	if len(nonces) == 0 {
		return false
	}
	// An authorization in this range of nonces could apply as soon as its transaction is in a
	// block, and would then delegate the account.
	first, last := a.applicable()
	if last-first < uint64(len(nonces)) {
		for n := range last - first + 1 {
			if nonces[first+n] > 0 {
				return true
			}
		}
		return false
	}
	for n := range nonces {
		if first <= n && n <= last {
			return true
		}
	}
	return false
}

// checkDelegated refuses a new transaction of a delegated sender that has reached its
// limit.
func (c *core) checkDelegated(a *account, e *entry) error {
	if !c.throttled(a) {
		return nil
	}
	// Only transactions that can run count towards the limit (invariant I1).
	have := a.inFlight()
	if have >= c.cfg.MaxDelegated {
		return fmt.Errorf("%w: address %v has %d, limit %d", ErrDelegatedLimit, a.address, have, c.cfg.MaxDelegated)
	}
	// Only transactions without a nonce gap count against the limit. One behind a gap would
	// not count, and could still run when the gap is closed.
	if e.nonce != a.next() {
		return fmt.Errorf("%w: address %v, tx: %d next: %d", ErrDelegatedGap, a.address, e.nonce, a.next())
	}
	return nil
}

// findBeyondTurn returns transactions behind a nonce gap that a delegated sender may
// not have.
func (c *core) findBeyondTurn(a *account, e *entry) (all []leaving) {
	if !c.throttled(a) && !a.delegatedBy(e) {
		return nil
	}
	for _, l := range a.txs[a.line:] {
		// This transaction waits behind a nonce gap since before the delegation. If the
		// newcomer e closes the gap, it could run although the limit is reached, so it must
		// leave.
		if l.nonce-a.Nonce >= uint64(c.cfg.MaxDelegated) && !l.locked && !l.exempt {
			all = append(all, leaving{l.entry, Dropped, ErrDelegatedGap})
		}
	}
	return all
}

// delegatedBy reports whether a transaction contains an applicable authorization by the
// account itself.
func (a *account) delegatedBy(e *entry) bool {
	first, last := a.applicable()
	return slices.ContainsFunc(e.authorities(), func(auth authority) bool {
		return auth.Address == a.address && first <= auth.Nonce && auth.Nonce <= last
	})
}

// checkAuthorities refuses a transaction that would delegate an account with too many
// transactions.
func (c *core) checkAuthorities(from common.Address, e *entry) error {
	for _, auth := range e.authorities() {
		a := c.accounts[auth.Address]
		if a == nil {
			continue
		}
		first, last := a.applicable()
		if auth.Nonce < first || auth.Nonce > last {
			continue
		}
		own, n := auth.Address == from, a.inFlight()
		if own && a.Nonce <= e.nonce && e.nonce < a.next() {
			n-- // itself or its replacement
		}
		if n > c.cfg.MaxDelegated || own && n == c.cfg.MaxDelegated {
			return fmt.Errorf("%w: address %v has %d transactions, limit %d", ErrAuthorityReserved, auth.Address, n, c.cfg.MaxDelegated)
		}
	}
	return nil
}
