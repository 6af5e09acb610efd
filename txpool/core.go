package txpool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/google/btree"
)

// core contains the contents and the rules of the pool. It uses no clock, lock or
// cryptography, so that the same sequence of calls always has the same results; Pool
// adds time and locking around it.
type core struct {
	cfg      *Config
	accounts map[common.Address]*account
	list     []*account // the same accounts, for visiting all of them
	all      map[common.Hash]*entry
	// cache holds the accounts of senders without transactions in the pool. Without it,
	// each transaction of a flood that the pool refuses would read the host's state.
	cache lru.BasicLRU[common.Address, Account]
	// departures remembers why transactions left the pool, for Pool.Departure.
	departures recent[Departure]
	// replaced and failed contain transactions that left the pool recently and are
	// refused if they are sent again. privately contains included transactions that
	// were private, so that they become private again if their block is reverted.
	replaced, failed, privately recent[struct{}]
	fees                        fees

	// ready has the transactions that can run, and parked those that do not pay enough,
	// both with the best first.
	ready, parked *btree.BTreeG[ranked]
	// roomless has, by size class, the transactions that could run but wait for room in
	// the pool: see settle.go.
	roomless       [classes]*btree.BTreeG[ranked]
	queue          gaps
	authorizations authorizations
	// uses is the number and size of the transactions in each group.
	uses [groups]usage
	// kept counts the transactions in uses to which the caps do not apply. exempt
	// counts those in kept that came back to the pool, for example from a failed block.
	kept   [groups]usage
	exempt usage
	limits [groups]usage
	bound  usage // limit for newcomers, over all groups

	session *Session   // the newest session, until its transactions are unlocked
	touched []*account // accounts to arrange before the lock is released

	patient   bool // a Reset is running, and transactions that come back may close gaps
	repricing bool // ranks are being changed to a new base fee
	keeping   bool // transactions are coming back, so none may be lost
	restoring bool // transactions of the log are being admitted, and are not recorded again

	// generation counts the changes of the chain's head, from 1. An account that was
	// read before the last change is out of date.
	generation uint64

	seq       uint64
	now       int64       // time of the call that holds the lock, Unix nanoseconds
	events    []Event     // not yet delivered
	changes   [][]byte    // records that the host has not taken yet
	displaced []Displaced // dropped transactions, collected while a Reset runs
	aside     heldAside
}

func newCore(cfg *Config) *core {
	c := &core{
		cfg:            cfg,
		generation:     1,
		accounts:       make(map[common.Address]*account),
		all:            make(map[common.Hash]*entry),
		cache:          lru.NewBasicLRU[common.Address, Account](accountCache),
		departures:     newRecent[Departure](maxDepartures, departureTime),
		replaced:       newRecent[struct{}](maxQuarantined, cfg.QuarantineTime),
		failed:         newRecent[struct{}](maxQuarantined, cfg.QuarantineTime),
		privately:      newRecent[struct{}](maxQuarantined, cfg.Lifetime),
		fees:           newFees(cfg),
		ready:          newIndex(),
		parked:         newIndex(),
		authorizations: make(authorizations),
		queue:          newGaps(),
		aside:          heldAside{txs: make(map[common.Hash]*past)},
	}
	c.limits, c.bound = cfg.limits()
	for i := range c.roomless {
		c.roomless[i] = newIndex()
	}
	return c
}

// openAccount adds a sender that has no transactions in the pool yet.
func (c *core) openAccount(address common.Address, known Account) *account {
	a := newAccount(address, known)
	a.slot = int32(len(c.list))
	c.list = append(c.list, a)
	c.accounts[address] = a
	return a
}

// closeAccount removes a sender that has no more transactions in the pool.
func (c *core) closeAccount(a *account) {
	if len(a.txs) > 0 || a.slot == closed {
		return
	}
	// Otherwise the pool would grow with each sender that it has ever seen.
	delete(c.accounts, a.address)
	last := len(c.list) - 1
	c.list[a.slot] = c.list[last]
	c.list[a.slot].slot = a.slot
	c.list[last] = nil
	c.list = c.list[:last]
	a.slot = closed
	if c.session != nil {
		c.session.forgetSender(a.address)
	}
}

// closed is the slot of an account that was removed.
const closed = -1

// cacheAccount remembers the account of a sender without transactions in the pool.
func (c *core) cacheAccount(a *account) {
	if len(a.txs) == 0 && !a.stale {
		// The sender may send another transaction soon. If that one is refused too, the host's
		// state need not be read for it.
		c.cache.Add(a.address, a.Account)
	}
}

// touchAccount marks a sender's transactions from an index to another as changed.
func (c *core) touchAccount(a *account, from, to int) {
	if !a.touched {
		a.touched, a.from, a.to = true, int32(from), int32(to)
		// Only remember the sender here. arrangeTouched computes the order of its transactions
		// once, before the lock is released, even if they change several times.
		c.touched = append(c.touched, a)
		return
	}
	a.from, a.to = min(a.from, int32(from)), max(a.to, int32(to))
}

// arrangeAll arranges all transactions of a sender again, because prices have changed.
func (c *core) arrangeAll(a *account) {
	c.arrangeChain(a, 0, len(a.txs))
	c.closeAccount(a)
}

// arrangeTouched arranges the transactions that touchAccount has marked.
func (c *core) arrangeTouched() {
	for i, a := range c.touched {
		c.touched[i] = nil
		if a.slot == closed || !a.touched {
			continue
		}
		a.touched = false
		// The locked transactions at the beginning of a sender's list have no place in the
		// order, so the computation starts after them.
		from := min(max(int(a.from), int(a.ahead)), len(a.txs))
		if from > 0 && a.txs[from-1].status == queued {
			from = 0
		}
		c.arrangeChain(a, from, max(from, int(a.to)))
		c.closeAccount(a)
	}
	c.touched = c.touched[:0]
}
