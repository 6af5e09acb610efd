package txpool

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// authority is an account that has signed an authorization in a transaction, which turns
// the account's code into a delegation (EIP-7702).
//
// Another party that can spend the balance of a sender can invalidate all transactions of
// that sender at once, for the price of one. The pool therefore holds few transactions of
// a sender that is delegated or about to be (invariant I7). A sender is about to be
// delegated if a transaction that can run contains an authorization of the sender that
// could apply. Signatures alone do not count, because strangers could otherwise restrict
// an account with its old signatures.
type authority struct {
	Address common.Address
	Nonce   uint64 // nonce of the authorization
}

// authorizations counts the authorizations in transactions that can run, for each account
// that signed them and each nonce. They show which accounts may become delegated soon.
type authorizations map[common.Address]map[uint64]int

// authorities returns the accounts that have signed valid authorizations in a transaction, each
// with the nonce of the authorization, without duplicates. Authorizations for other chains are left
// out.
func (c *Config) authorities(tx *types.Transaction) []authority {
	var valid []authority
	for _, auth := range tx.SetCodeAuthorizations() {
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

// enlistAuthorities adds the authorizations of a transaction to the counts if counts is
// true, and removes them otherwise. They count only while the transaction can run.
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

// applicable returns the range of nonces that an authorization signed by the account must
// have to take effect, now or after the account's transactions in the pool. The range is
// wide: it assumes that the nonce gaps between these transactions are filled and that one
// more transaction arrives.
func (a *account) applicable() (first, last uint64) {
	last = a.Nonce
	n := len(a.txs)
	if n > 0 {
		last = max(last, a.txs[n-1].nonce+1)
	}
	return a.Nonce, addSaturating(last, 1)
}

// throttled reports whether another party can spend the account's balance (EIP-7702), or may be
// able to soon. The pool then admits few transactions of the account.
func (c *core) throttled(a *account) bool {
	if a.Delegated {
		return true
	}
	nonces := c.authorizations[a.address]
	if len(nonces) == 0 {
		return false
	}
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

// checkDelegated refuses a new transaction of a delegated sender if its nonce is not the sender's
// next one, or if the sender has reached its limit. Only transactions that can run count towards
// the limit (invariant I1). Replacements are not checked, because they do not add to the number.
func (c *core) checkDelegated(a *account, e *entry) error {
	if !c.throttled(a) {
		return nil
	}
	have := a.inFlight()
	if have >= c.cfg.MaxDelegated {
		return fmt.Errorf("%w: address %v has %d, limit %d", ErrDelegatedLimit, a.address, have, c.cfg.MaxDelegated)
	}
	if e.nonce != a.next() {
		return fmt.Errorf("%w: address %v, tx: %d next: %d", ErrDelegatedGap, a.address, e.nonce, a.next())
	}
	return nil
}

// findBeyondTurn returns the transactions of a delegated sender that are behind a
// nonce gap and beyond the sender's limit, because they were admitted before the
// sender was delegated. They must leave when a transaction arrives that can run,
// because that transaction could close the gap before them.
func (c *core) findBeyondTurn(a *account, e *entry) (all []leaving) {
	if !c.throttled(a) && !a.delegatedBy(e) {
		return nil
	}
	for _, l := range a.txs[a.line:] {
		if l.nonce-a.Nonce >= uint64(c.cfg.MaxDelegated) && !l.locked && !l.exempt {
			all = append(all, leaving{l.entry, Dropped, ErrDelegatedGap})
		}
	}
	return all
}

// delegatedBy reports whether a transaction contains an authorization that the account itself has
// signed and that could apply, so that the account would become delegated.
func (a *account) delegatedBy(e *entry) bool {
	first, last := a.applicable()
	return slices.ContainsFunc(e.authorities(), func(auth authority) bool {
		return auth.Address == a.address && first <= auth.Nonce && auth.Nonce <= last
	})
}

// checkAuthorities refuses a transaction that would delegate an account (EIP-7702) which already
// has more transactions in the pool than a delegated account may have.
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
