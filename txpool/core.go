package txpool

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// core is the pool without clock and lock: the same calls in the same order give the same result. Work per call is
// proportional to one sender's transactions, and logarithmic in the pool.
type core struct {
	cfg      *Config
	accounts map[common.Address]*account
	all      map[common.Hash]*entry
	heads    *btree.BTreeG[*entry] // the next transaction of each sender, best first
	tails    *btree.BTreeG[tail]   // the last pending transaction of each sender, worst first
	seq      uint64
	pending  usage
	queued   usage
	events   []Event // what happened since they were last taken
}

// usage counts transactions and the bytes of their encodings.
type usage struct {
	count int
	bytes uint64
}

func (u *usage) add(e *entry)    { u.count++; u.bytes += e.size }
func (u *usage) remove(e *entry) { u.count--; u.bytes -= e.size }

// btreeDegree is google/btree's usual one.
const btreeDegree = 32

func newCore(cfg *Config) *core {
	return &core{
		cfg:      cfg,
		accounts: make(map[common.Address]*account),
		all:      make(map[common.Hash]*entry),
		heads:    btree.NewG(btreeDegree, goesBefore),
		tails:    btree.NewG(btreeDegree, worseThan),
	}
}

// add admits a transaction of an account with the given state, or says why not and changes nothing but what the new state of
// the account brings about.
func (c *core) add(e *entry, nonce uint64, balance *uint256.Int) error {
	if c.all[e.hash] != nil {
		return ErrAlreadyKnown
	}
	a := c.accounts[e.from]
	if a == nil {
		a = &account{address: e.from}
	} else {
		nonce = max(nonce, a.nonce) // committed transactions count before the host's state shows them
	}
	if a.nonce != nonce || !a.balance.Eq(balance) {
		c.refresh(a, nonce, balance)
	}
	i, replaces := a.find(e.nonce)
	var old *entry
	if replaces {
		old = a.txs[i]
	}
	if err := c.checkAccount(a, e, old); err != nil {
		return err
	}
	if old == nil {
		if err := c.checkRoom(a, e); err != nil {
			return err
		}
	}
	c.seq++
	e.seq = c.seq
	if old != nil {
		c.forget(a, i)
		c.emit(Event{Kind: Replaced, Tx: old.tx, By: e.hash})
	}
	c.accounts[e.from] = a
	a.txs = slices.Insert(a.txs, i, e)
	a.cost.Add(&a.cost, &e.cost)
	c.all[e.hash] = e
	c.queued.add(e)
	c.emit(Event{Kind: Added, Tx: e.tx})
	c.index(a)
	c.shrink(e)
	return nil
}

// checkAccount applies the rules that concern the sender alone; old is the transaction to be replaced, or nil.
func (c *core) checkAccount(a *account, e, old *entry) error {
	if e.nonce < a.nonce {
		return fmt.Errorf("%w: address %s, tx: %d state: %d", ErrNonceTooLow, a.address, e.nonce, a.nonce)
	}
	if e.nonce-a.nonce >= c.cfg.MaxNonceDistance {
		return fmt.Errorf("%w: address %s, tx: %d state: %d, want below %d", ErrNonceTooHigh, a.address, e.nonce, a.nonce, a.nonce+c.cfg.MaxNonceDistance)
	}
	total, over := new(uint256.Int).AddOverflow(&a.cost, &e.cost)
	if old != nil {
		if old.lease != 0 {
			return fmt.Errorf("%w: %s has nonce %d", ErrInBundle, old.hash, old.nonce)
		}
		if err := c.cfg.checkBump(old, e); err != nil {
			return err
		}
		total, over = new(uint256.Int).Sub(&a.cost, &old.cost), false
		total, over = total.AddOverflow(total, &e.cost)
	} else if len(a.txs) >= c.cfg.MaxPerSender {
		return fmt.Errorf("%w: address %s has %d transactions, limit %d", ErrSenderLimit, a.address, len(a.txs), c.cfg.MaxPerSender)
	}
	if over || a.balance.Lt(total) {
		return fmt.Errorf("%w: address %s have %v want %v", ErrInsufficientFunds, a.address, &a.balance, total)
	}
	return nil
}

// checkRoom says whether a new transaction fits, if need be in place of a worse one.
func (c *core) checkRoom(a *account, e *entry) error {
	if e.nonce != a.nextNonce() {
		if c.queued.count >= c.cfg.MaxQueued || c.queued.bytes+e.size > c.cfg.MaxQueuedBytes {
			return fmt.Errorf("%w: %d transactions wait behind nonce gaps", ErrPoolFull, c.queued.count)
		}
		return nil
	}
	if c.pending.count < c.cfg.MaxPending && c.pending.bytes+e.size <= c.cfg.MaxPendingBytes {
		return nil
	}
	// Whoever comes in must pay strictly more than those that go, ranked by the poorest of its chain like them, and none of
	// those may be its own ancestor (I4, I5).
	rank := e.tip
	for _, before := range a.txs {
		if before.pending && before.nonce < e.nonce && before.tip.Lt(&rank) {
			rank = before.tip
		}
	}
	room := usage{c.cfg.MaxPending - c.pending.count, c.cfg.MaxPendingBytes - c.pending.bytes}
	enough := false
	var least tail
	c.tails.Ascend(func(t tail) bool {
		if t.entry.from == e.from {
			return true
		}
		least = t
		if !t.rank.Lt(&rank) {
			return false
		}
		room.count++
		room.bytes += t.entry.size
		enough = room.count >= 1 && room.bytes >= e.size
		return !enough
	})
	if enough {
		return nil
	}
	if least.entry == nil {
		return fmt.Errorf("%w: %d transactions can run, all of them in bundles or this sender's", ErrPoolFull, c.pending.count)
	}
	return fmt.Errorf("%w: %w: tip %v wei, want more than %v", ErrPoolFull, ErrUnderpriced, &rank, &least.rank)
}

// index sorts a sender's transactions into pending and queued and puts head and tail into the trees. Every change of a
// sender ends here.
func (c *core) index(a *account) {
	c.unindex(a)
	next := a.nonce
	var rank uint256.Int
	rank.SetAllOne()
	var last *entry
	for _, e := range a.txs {
		runs := e.nonce == next
		if runs {
			next++
			last = e
			if e.tip.Lt(&rank) {
				rank = e.tip
			}
			if a.head == nil && e.lease == 0 {
				a.head = e
			}
		}
		c.move(e, runs || e.lease != 0) // what is in a bundle needs no place behind a gap
	}
	if a.head != nil {
		c.heads.ReplaceOrInsert(a.head)
	}
	if last != nil && last.lease == 0 {
		a.tail = &tail{rank: rank, entry: last}
		c.tails.ReplaceOrInsert(*a.tail)
	}
	// What fell behind a gap may be more than fits there.
	for c.queued.count > c.cfg.MaxQueued || c.queued.bytes > c.cfg.MaxQueuedBytes {
		last := len(a.txs) - 1
		for last >= 0 && a.txs[last].pending {
			last--
		}
		if last < 0 {
			break
		}
		c.discard(a, last, ErrPoolFull)
	}
	if len(a.txs) == 0 {
		delete(c.accounts, a.address)
	}
}

func (c *core) unindex(a *account) {
	if a.head != nil {
		c.heads.Delete(a.head)
		a.head = nil
	}
	if a.tail != nil {
		c.tails.Delete(*a.tail)
		a.tail = nil
	}
}

// move counts a transaction as pending or queued.
func (c *core) move(e *entry, pending bool) {
	if e.pending == pending {
		return
	}
	e.pending = pending
	if pending {
		c.queued.remove(e)
		c.pending.add(e)
		return
	}
	c.pending.remove(e)
	c.queued.add(e)
}

// shrink evicts the worst tails until the pending transactions fit. The newcomer, if any, stays: checkRoom made sure that there are
// enough worse ones, and what its arrival promoted stands behind it.
func (c *core) shrink(newcomer *entry) {
	for c.pending.count > c.cfg.MaxPending || c.pending.bytes > c.cfg.MaxPendingBytes {
		var worst *entry
		c.tails.Ascend(func(t tail) bool {
			if t.entry != newcomer {
				worst = t.entry
			}
			return worst == nil
		})
		if worst == nil {
			return
		}
		a := c.accounts[worst.from]
		i, _ := a.find(worst.nonce)
		c.drop(a, i, ErrPoolFull)
		c.index(a)
	}
}

// forget takes a transaction out without a word; its sender must be indexed afterwards.
func (c *core) forget(a *account, i int) {
	c.unindex(a)
	c.takeOut(a, i)
}

// takeOut takes a transaction out that is neither head nor tail of its sender.
func (c *core) takeOut(a *account, i int) {
	e := a.txs[i]
	if e.pending {
		c.pending.remove(e)
	} else {
		c.queued.remove(e)
	}
	a.cost.Sub(&a.cost, &e.cost)
	a.txs = slices.Delete(a.txs, i, i+1)
	delete(c.all, e.hash)
}

// drop takes a transaction out for a reason; its sender must be indexed afterwards.
func (c *core) drop(a *account, i int, reason error) {
	c.unindex(a)
	c.discard(a, i, reason)
}

// discard is drop for a transaction that is neither head nor tail of its sender.
func (c *core) discard(a *account, i int, reason error) {
	e := a.txs[i]
	c.takeOut(a, i)
	c.emit(Event{Kind: Dropped, Tx: e.tx, Reason: reason})
}

// remove takes a transaction out for a reason, if it is there and in no bundle.
func (c *core) remove(hash common.Hash, reason error) error {
	e := c.all[hash]
	if e == nil {
		return nil
	}
	if e.lease != 0 {
		return fmt.Errorf("%w: %s", ErrInBundle, hash)
	}
	a := c.accounts[e.from]
	i, _ := a.find(e.nonce)
	c.drop(a, i, reason)
	c.index(a)
	return nil
}

// refresh gives an account a new nonce and balance, and drops what can no longer run or be paid: from the end of the chain,
// so that no gap opens.
func (c *core) refresh(a *account, nonce uint64, balance *uint256.Int) {
	a.nonce, a.balance = nonce, *balance
	for i := 0; i < len(a.txs) && a.txs[i].nonce < nonce; {
		if a.txs[i].lease != 0 {
			i++
			continue
		}
		c.drop(a, i, ErrNonceTooLow)
	}
	for i := len(a.txs) - 1; i >= 0 && a.balance.Lt(&a.cost); i-- {
		if a.txs[i].lease == 0 {
			c.drop(a, i, ErrInsufficientFunds)
		}
	}
	c.index(a)
}

func (c *core) emit(e Event) { c.events = append(c.events, e) }
