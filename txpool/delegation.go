package txpool

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Delegated accounts (EIP-7702, invariant I7). Whoever can spend a sender's balance can make all its transactions worthless at once, for
// the price of one. So a sender that is delegated, or about to be, has few transactions here. "About to be" means: by an authorization
// that could apply, inside a transaction that can run. Anything weaker would let strangers throttle an account with old signatures.

// authority is an account whose authorization a transaction carries.
type authority struct {
	address common.Address
	nonce   uint64 // that the account must have for the authorization to apply
}

// authorized is an authorization in the pool.
type authorized struct {
	nonce uint64
	by    *entry
}

// authorities returns the valid authorizations of a transaction.
func (c *Config) authorities(tx *types.Transaction) []authority {
	var valid []authority
	for _, auth := range tx.SetCodeAuthorizations() {
		if !auth.ChainID.IsZero() && auth.ChainID.ToBig().Cmp(c.ChainID) != 0 {
			continue
		}
		if address, err := auth.Authority(); err == nil {
			valid = append(valid, authority{address, auth.Nonce})
		}
	}
	return valid
}

// register makes the authorizations of a stored transaction known.
func (c *core) register(e *entry) {
	if e.rare == nil {
		return
	}
	for _, auth := range e.rare.authorities {
		c.authorizations[auth.address] = append(c.authorizations[auth.address], authorized{auth.nonce, e})
	}
}

// unregister is the opposite.
func (c *core) unregister(e *entry) {
	if e.rare == nil {
		return
	}
	for _, auth := range e.rare.authorities {
		left := slices.DeleteFunc(c.authorizations[auth.address], func(a authorized) bool { return a.by == e })
		if len(left) == 0 {
			delete(c.authorizations, auth.address)
		} else {
			c.authorizations[auth.address] = left
		}
	}
}

// applies reports whether an authorization with this nonce could apply: now, or after some of the account's own transactions in the pool
// and one that is about to come.
func (a *account) applies(nonce uint64) bool { return a.state <= nonce && nonce <= a.next()+1 }

// throttled reports whether others can spend the account's balance, or soon will.
func (c *core) throttled(a *account) bool {
	if a.delegated {
		return true
	}
	return slices.ContainsFunc(c.authorizations[a.address], func(auth authorized) bool {
		return (auth.by.status == ready || auth.by.lease != nil) && a.applies(auth.nonce)
	})
}

// checkDelegated refuses a new nonce of a sender that has all that it may have. Replacements are always possible.
func (c *core) checkDelegated(a *account) error {
	if len(a.txs) >= c.cfg.MaxDelegated && c.throttled(a) {
		return fmt.Errorf("%w: address %v has %d, limit %d", ErrDelegatedLimit, a.address, len(a.txs), c.cfg.MaxDelegated)
	}
	return nil
}

// checkAuthorities refuses a transaction that would delegate an account with more transactions than that may have then.
func (c *core) checkAuthorities(from common.Address, e *entry) error {
	if e.rare == nil {
		return nil
	}
	for _, auth := range e.rare.authorities {
		a := c.accounts.get(auth.address)
		if a == nil || !a.applies(auth.nonce) {
			continue
		}
		own, n := auth.address == from, len(a.txs)
		if _, there := a.find(e.nonce); own && there {
			n-- // itself, or what it replaces
		}
		if n > c.cfg.MaxDelegated || own && n == c.cfg.MaxDelegated {
			return fmt.Errorf("%w: address %v has %d transactions, limit %d", ErrAuthorityReserved, auth.address, n, c.cfg.MaxDelegated)
		}
	}
	return nil
}
