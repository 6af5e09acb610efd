package txpool

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// committed are the transactions of an account that were committed and that the
// host's state does not show yet. nil means none.
//
// A transaction in an enqueued bundle has left the pool, and its nonce is used,
// but the host's state is one or more bundles behind. Until the state shows the
// transaction, the account's balance must still pay for it, and its
// authorizations still count. The transactions are kept by nonce, because the
// state shows them one after the other and failed bundles are reverted from the
// end.
type committed struct {
	spent  []spending
	inline [1]spending // backing array of spent
	at     int64       // last commit, Unix nanoseconds
}

// spending is a committed transaction that the host's state does not show yet.
type spending struct {
	nonce   uint64
	cost    uint256.Int
	carrier *entry // set if it has authorizations
}

// spend records a committed transaction.
func (a *account) spend(s spending, now int64) {
	if a.committed == nil {
		a.committed = new(committed)
		a.committed.spent = a.committed.inline[:0]
	}
	a.committed.spent = append(a.committed.spent, s)
	a.committed.at = now
	a.spare.Sub(&a.spare, &s.cost)
}

// all returns the committed transactions, oldest first.
func (c *committed) all() []spending {
	if c == nil {
		return nil
	}
	return c.spent
}

// owed returns the cost of the committed transactions that the state does not
// show.
func (a *account) owed() *uint256.Int {
	sum := new(uint256.Int)
	for _, s := range a.committed.all() {
		if s.nonce >= a.state {
			sum.Add(sum, &s.cost)
		}
	}
	return sum
}

// commit removes an entry that is in an enqueued bundle.
func (c *core) commit(e *entry, now int64) {
	a := e.account
	i, _ := a.find(e.nonce)
	short := a.short
	c.take(a, i)
	if a.unsettled(e.nonce) {
		s := spending{nonce: e.nonce, cost: e.cost}
		if e.rare != nil {
			s.carrier = e
			c.enlist(e, true)
		}
		a.spend(s, now)
		a.short = short
	}
	a.nonce = max(a.nonce, e.nonce+1)
	if e.private {
		c.secret.bury(e.prefix, now, c.cfg.Lifetime)
	}
	c.emit(Event{Kind: Included}, e)
	c.departures.forget(e.hash())
	if i > 0 {
		c.dropUsed(a)
		i = 0
	}
	c.arrange(a, i, i)
	c.close(a)
}

// uncommit makes the nonces from the given one on free again, except those that
// the host's state shows.
func (c *core) uncommit(a *account, nonce uint64) {
	nonce = max(nonce, a.state)
	if nonce >= a.nonce {
		return
	}
	for _, s := range a.committed.all() {
		if s.nonce >= nonce {
			a.spare.Add(&a.spare, &s.cost)
		}
	}
	c.forgetSpent(a, func(s *spending) bool { return s.nonce >= nonce })
	a.nonce = nonce
	a.short = a.short && a.balance().Lt(a.totalCost())
	a.stale = true // read again in any case
	c.arrange(a, 0, len(a.txs))
	c.close(a)
}

// shown forgets the committed transactions below a nonce, because the host's
// state shows them.
func (c *core) shown(a *account, nonce uint64) {
	c.forgetSpent(a, func(s *spending) bool { return s.nonce < nonce })
}

func (c *core) forgetSpent(a *account, which func(*spending) bool) {
	if a.committed == nil {
		return
	}
	a.committed.spent = slices.DeleteFunc(a.committed.spent, func(s spending) bool {
		gone := which(&s)
		if gone && s.carrier != nil {
			c.enlist(s.carrier, false)
		}
		return gone
	})
	if len(a.committed.spent) == 0 {
		a.committed = nil
	}
}

// recommit restores the committed transactions of an account that has no
// transactions in the pool. stale means that known was not read.
func (c *core) recommit(address common.Address, known Account, spent []spending, stale bool, now int64) {
	next := known.Nonce
	for i := range spent {
		next = max(next, spent[i].nonce+1)
	}
	if next == known.Nonce {
		return // all shown by the state
	}
	a := c.open(address, known)
	a.nonce, a.stale = next, stale
	for _, s := range spent {
		if s.nonce >= a.state {
			a.spend(s, now)
			if s.carrier != nil {
				c.enlist(s.carrier, true)
			}
		}
	}
	a.short = known.Balance.Lt(a.owed())
}
