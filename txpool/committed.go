package txpool

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// spending is a committed transaction that the host's state does not show yet.
//
// A transaction in an enqueued bundle has left the pool, and its nonce is used,
// but the host's state is one or more bundles behind. Until the state shows the
// transaction, the account's balance must still pay for it, and its
// authorizations still count. An account has its spendings by nonce, because the
// state shows them one after the other and failed bundles are reverted from the
// end.
type spending struct {
	Nonce       uint64
	Cost        uint256.Int
	Authorities []authority
}

// spend records a committed transaction. Its authorizations count until the host's
// state shows it.
func (c *core) spend(a *account, s spending, now int64) {
	a.spent, a.spentAt = append(a.spent, s), now
	a.cost.Add(&a.cost, &s.Cost)
	for _, auth := range s.Authorities {
		c.authorizations.add(auth)
	}
}

// forget forgets committed transactions.
func (a *account) forget(c *core, which func(*spending) bool) {
	a.spent = slices.DeleteFunc(a.spent, func(s spending) bool {
		gone := which(&s)
		for i := 0; gone && i < len(s.Authorities); i++ {
			c.authorizations.remove(s.Authorities[i])
		}
		return gone
	})
}

// commit removes a transaction that is in an enqueued bundle or a block. Until the
// host's state shows it, the balance must still pay for it.
func (c *core) commit(e *entry, now int64) {
	a := e.account
	c.take(a, c.indexOf(e))
	if a.unsettled(e.nonce) {
		c.spend(a, spending{e.nonce, e.cost, e.authorities}, now)
	}
	a.nonce = max(a.nonce, e.nonce+1)
	if e.private {
		c.privately.put(e.hash(), struct{}{}, now)
	}
	c.emit(Event{Kind: Included}, e)
	p := plan{account: a, together: true}
	for _, e := range a.txs {
		if e.nonce >= a.nonce {
			break
		}
		if e.lease == nil {
			p.leaves = append(p.leaves, leaving{e.entry, Dropped, ErrNonceTooLow})
		}
	}
	c.apply(p)
	if a.delegated { // its limit counts from the next nonce
		c.touch(a, 0, len(a.txs))
	}
}

// uncommit makes the nonces from the given one on free again, except those that
// the host's state shows. The next nonce is then the one after the committed
// transactions that remain, as after a restart.
func (c *core) uncommit(a *account, nonce uint64) {
	if max(nonce, a.state) >= a.nonce {
		return
	}
	a.forget(c, func(s *spending) bool { return s.Nonce >= nonce })
	a.nonce = a.state
	for _, s := range a.spent {
		a.nonce = max(a.nonce, s.Nonce+1)
	}
	a.recost()
	a.stale = true // read again in any case
	c.arrange(a, 0, len(a.txs))
	c.close(a)
}

// recommit restores the committed transactions of an account that has no
// transactions in the pool. stale means that known was not read.
func (c *core) recommit(address common.Address, known Account, spent []spending, stale bool, now int64) {
	next := known.Nonce
	for i := range spent {
		next = max(next, spent[i].Nonce+1)
	}
	if next == known.Nonce {
		return // all shown by the state
	}
	a := c.open(address, known)
	a.nonce, a.stale = next, stale
	for _, s := range spent {
		if s.Nonce >= a.state {
			c.spend(a, s, now)
		}
	}
}
