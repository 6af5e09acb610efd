package txpool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/google/btree"
)

// core contains the contents and the rules of the pool. It uses no clock, lock or
// cryptography, so that the same sequence of calls always has the same results;
// Pool adds time and locking around it. The cost of a call grows with the number of
// transactions of one sender and with the logarithm of the size of the pool
// (invariant I9).
type core struct {
	cfg      *Config
	accounts map[common.Address]*account
	list     []*account // the same accounts, for visiting all of them
	all      map[common.Hash]*entry
	// cache holds the accounts of senders that have no transactions in the pool, so
	// that a flood of refused transactions does not cause a read of the host's
	// state each time.
	cache lru.BasicLRU[common.Address, Account]
	// The following lists remember transactions that have left the pool:
	//
	//   - departures has the reasons that Pool.Departure returns.
	//   - replaced has the transactions that a newcomer has replaced, and failed those
	//     that failed while a block was built. The pool refuses both for a while.
	//   - privately has the private transactions that were included in a block, so that
	//     they are private again if they come back.
	departures                  recent[Departure]
	replaced, failed, privately recent[struct{}]
	fees                        fees

	// ready and parked are the indexes of the transactions that are not locked and have
	// no nonce gap before them, the best first. Those in ready can run; those in parked
	// do not pay enough. roomless contains, by size class, the transactions that could
	// run but wait for room in the pool: see settle.go.
	ready, parked  *btree.BTreeG[ranked]
	roomless       [classes]*btree.BTreeG[ranked]
	queue          gaps
	authorizations authorizations
	// uses is how many transactions each group has, and their size.
	uses [groups]usage
	// kept is the part of uses to which the caps do not apply: see entry.keeps. exempt is
	// the part of kept that came back to the pool, for example from a failed block. Both
	// are counted, so that the caps can be compared with the rest.
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

	// generation is the number of changes of the chain's head that the pool has received, counted
	// from 1. An account that was read in an earlier generation is out of date.
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

// closeAccount removes a sender that has no more transactions in the pool, so that
// the pool does not grow with each sender that it has ever seen. It does nothing if
// the sender still has transactions.
func (c *core) closeAccount(a *account) {
	if len(a.txs) > 0 || a.slot == closed {
		return
	}
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

// cacheAccount caches the nonce and balance of a sender that has no transactions in
// the pool. If the sender's next transaction is refused too, the host's state need
// not be read again.
func (c *core) cacheAccount(a *account) {
	if len(a.txs) == 0 && !a.stale {
		c.cache.Add(a.address, a.Account)
	}
}

// touchAccount marks the sender's transactions from index from to index to as changed.
// arrangeTouched computes their status and order before the lock is released, so that
// several changes to one sender cost only one computation.
func (c *core) touchAccount(a *account, from, to int) {
	if !a.touched {
		a.touched, a.from, a.to = true, int32(from), int32(to)
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

// arrangeTouched computes the order of the transactions that touchAccount has marked as
// changed. It leaves out the locked transactions at the beginning of a chain, because
// they are not in the order.
func (c *core) arrangeTouched() {
	for i, a := range c.touched {
		c.touched[i] = nil
		if a.slot == closed || !a.touched {
			continue
		}
		a.touched = false
		from := min(max(int(a.from), int(a.ahead)), len(a.txs))
		if from > 0 && a.txs[from-1].status == queued {
			from = 0
		}
		c.arrangeChain(a, from, max(from, int(a.to)))
		c.closeAccount(a)
	}
	c.touched = c.touched[:0]
}
