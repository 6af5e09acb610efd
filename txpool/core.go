package txpool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// core is the pool as a value, without clock, lock and cryptography. Equal
// calls in equal order have equal results. The cost of a call grows with the
// transactions of one sender and the logarithm of the pool (invariant I9).
type core struct {
	cfg      *Config
	accounts table[common.Address, *account]
	list     []*account // same accounts, for sweeps
	free     []*account
	all      table[common.Hash, *entry]
	cache    accountCache
	replaced graveyard // recently replaced transactions
	// failed has transactions that failed while a block was built. It is
	// separate, so that a flood of replacements cannot push them out.
	failed graveyard
	// secret has included private transactions, which are private again if they
	// come back.
	secret graveyard
	fees   fees

	// ready and parked order all transactions in line that are not in a lease.
	// surplus is the part of ready beyond Config.MinReadyPerSender.
	ready, parked, surplus *btree.BTreeG[ranked]
	waiting                waitingRoom
	authorizations         authorizations
	// uses counts transactions by status. Leased transactions count as ready,
	// whatever their status.
	uses [ready + 1]usage
	// exempt is the part of uses that is exempt from the caps: see exempt.go.
	exempt [ready + 1]usage
	bound  usage // limit for newcomers
	leased int

	touched []*account // accounts to arrange before unlocking

	patient   bool // a running Reset closes gaps
	keeping   bool // transactions are coming back
	restoring bool // transactions were admitted before

	// moreToSettle means that settleRooms must be called again.
	moreToSettle bool
	checked      int // next index for checkSome

	seq       uint64
	listening bool    // events have a receiver
	events    []Event // not yet taken by writeDown
	// admitting is the newcomer that displaces others now. displacedBy has the
	// transactions that each newcomer has displaced until the journal has
	// recorded it. Both are empty without a journal.
	admitting   *entry
	displacedBy map[*entry][]candidate
	// collecting is set while a Reset or Restore records dropped transactions
	// in displaced.
	collecting bool
	displaced  []Displaced
	departures departures
	aside      heldAside
}

// usage counts transactions and the bytes that they take in memory.
type usage struct {
	count int
	bytes uint64
}

func (u *usage) add(e *entry)    { u.count++; u.bytes += uint64(e.memory) }
func (u *usage) remove(e *entry) { u.count--; u.bytes -= uint64(e.memory) }

func newCore(cfg *Config) *core {
	return &core{
		cfg:            cfg,
		accounts:       newTable[common.Address, *account](addressPrefix),
		all:            newTable[common.Hash, *entry](hashPrefix),
		cache:          newAccountCache(cfg.AccountCache),
		replaced:       newGraveyard(),
		failed:         newGraveyard(),
		secret:         newGraveyard(),
		fees:           newFees(cfg),
		ready:          newIndex(),
		parked:         newIndex(),
		surplus:        newIndex(),
		authorizations: make(authorizations),
		departures:     newDepartures(cfg),
		bound:          cfg.bound(),
		displacedBy:    make(map[*entry][]candidate),
		aside:          heldAside{txs: make(map[common.Hash]*past)},
	}
}

// counts returns the status that an entry counts towards.
func (e *entry) counts() status {
	if e.lease != nil {
		return ready
	}
	return e.status
}

// chunk is the number of accounts that are allocated together.
const chunk = 64

// open returns the sender's account. If there is none, it creates one from
// known.
func (c *core) open(address common.Address, known Account) *account {
	if len(c.free) == 0 {
		more := make([]account, chunk)
		for i := range more {
			c.free = append(c.free, &more[i])
		}
	}
	last := len(c.free) - 1
	a := c.free[last]
	c.free = c.free[:last]
	*a = *newAccount(address, known)
	a.slot = int32(len(c.list))
	c.list = append(c.list, a)
	c.accounts.put(a)
	return a
}

// close removes an account without transactions.
func (c *core) close(a *account) {
	if len(a.txs) > 0 || a.nonce > a.state || a.slot == closed {
		return
	}
	c.accounts.remove(a)
	last := len(c.list) - 1
	c.list[a.slot] = c.list[last]
	c.list[a.slot].slot = a.slot
	c.list[last] = nil
	c.list = c.list[:last]
	*a = account{slot: closed}
	c.free = append(c.free, a)
}

// closed is the slot of a removed account.
const closed = -1

// remember caches an account that has no transactions in the pool.
func (c *core) remember(a *account) {
	if len(a.txs) == 0 && a.nonce == a.state && !a.stale && !a.short {
		c.cache.put(a.address, Account{Nonce: a.state, Balance: a.spare, Delegated: a.delegated})
	}
}

// arrange updates the status and place of a sender's transactions from index
// from on; those before it must be up to date. Every change of a chain ends
// with it.
func (c *core) arrange(a *account, from, changed int) {
	if a.short || a.held { // funding depends on the whole chain
		from, changed = 0, len(a.txs)
	}
	c.arrangeChain(a, from, changed)
	if a.held && !a.short {
		c.arrangeChain(a, 0, len(a.txs))
	}
	c.recount(a)
}

// arrangeChain is arrange without the count of queued transactions. It stops
// when the rest does not change.
func (c *core) arrangeChain(a *account, from, changed int) {
	next, lead, lowest, surplus := a.nonce, noLead, ready, c.drainable(a, from)
	if from > 0 {
		next, lead, lowest = a.before(from)
	}
	held := lowest == queued
	funded := a.funded()
	a.held = a.short
	for i := from; i < len(a.txs); i++ {
		e := a.txs[i].entry
		status, at := queued, noLead
		switch {
		case e.nonce < a.nonce: // used, but still leased
			status = ready
		case lowest == queued || e.nonce != next:
			lowest = queued
		case e.lease != nil:
			status = ready // keeps its predecessors in line
			next++
		default:
			lead, lowest = c.stands(a, e, lead, lowest)
			if i >= funded {
				lead, lowest = place{0, e.seq}, parked
			}
			status, at = lowest, lead
			next++
		}
		if status == queued {
			a.line = min(a.line, int32(i))
		} else {
			a.line = max(a.line, int32(i)+1)
		}
		if status == ready && !e.fresh && e.counts() != ready && !c.fits(e) {
			lowest, status = parked, parked // until promote finds room
		}
		moved := c.put(e, status, at, surplus >= c.cfg.MinReadyPerSender)
		// The authorities were not checked at admission, because the
		// transaction could not run then.
		if moved && status == ready && !e.fresh && !e.exempt && e.lease == nil && c.checkAuthorities(a.address, e) != nil {
			c.take(a, i)
			c.emit(Event{Kind: Dropped, Reason: ErrAuthorityReserved}, e)
			lowest = queued
			i--
			funded--
			continue
		}
		if e.fresh {
			e.fresh = false
			c.emitMove(e, true)
		}
		if status == ready && e.lease == nil {
			surplus++
		}
		if i >= changed && held || i > changed && !moved && e.lease == nil && c.cfg.MinReadyPerSender == 0 {
			return
		}
	}
}

// drainable counts the pending transactions before an index that are not in a
// lease, if Config.MinReadyPerSender is set.
func (c *core) drainable(a *account, before int) (n int) {
	if c.cfg.MinReadyPerSender == 0 {
		return 0
	}
	for _, e := range a.txs[:before] {
		if e.status == ready && e.lease == nil {
			n++
		}
	}
	return n
}

// stands returns the place and status of an entry in line, given those of its
// predecessor.
func (c *core) stands(a *account, e *entry, lead place, lowest status) (place, status) {
	lead = lead.after(e)
	if a.delegated && e.nonce-a.nonce >= uint64(c.cfg.MaxDelegated) {
		// The account became delegated after this was admitted: it must wait
		// for its turn.
		lead = place{0, e.seq}
	}
	if lead.rank < c.fees.leastRank() {
		lowest = parked
	}
	return lead, lowest
}

// put moves an entry to a status and a place, and reports whether anything
// changed.
func (c *core) put(e *entry, status status, at place, surplus bool) bool {
	surplus = surplus && status == ready && c.cfg.MinReadyPerSender > 0 && e.lease == nil
	if e.status == status && e.lead == at && e.surplus == surplus {
		return false
	}
	c.unindex(e)
	was := e.counts()
	c.uncount(e)
	e.status, e.lead, e.surplus = status, at, surplus
	c.count(e)
	if is := e.counts(); is != was {
		if !e.fresh {
			c.emitMove(e, false)
		}
		c.enlist(e, is == ready)
	}
	c.index(e)
	return true
}

// index adds an entry to its index.
func (c *core) index(e *entry) {
	if e.lease != nil {
		return
	}
	switch e.status {
	case ready:
		c.ready.ReplaceOrInsert(ranked{e.lead, e})
		if e.surplus {
			c.surplus.ReplaceOrInsert(ranked{e.lead, e})
		}
	case parked:
		c.parked.ReplaceOrInsert(ranked{e.lead, e})
	}
}

// unindex removes an entry from its index.
func (c *core) unindex(e *entry) {
	if e.lease != nil || e.lead == noLead {
		return
	}
	switch e.status {
	case ready:
		c.ready.Delete(ranked{e.lead, e})
		if e.surplus {
			c.surplus.Delete(ranked{e.lead, e})
		}
	case parked:
		c.parked.Delete(ranked{e.lead, e})
	}
}

// store adds a new entry to its sender's chain.
func (c *core) store(a *account, i int, e *entry) {
	c.seq++
	e.seq, e.account, e.lead, e.fresh = c.seq, a, noLead, true
	e.rank = c.fees.rank(e)
	a.insert(i, e)
	if a.unsettled(e.nonce) {
		a.spare.Sub(&a.spare, &e.cost)
	}
	c.all.put(e)
	c.departures.forget(e.hash())
	c.count(e)
	if e.exempt {
		a.exempt++
	}
	c.arrange(a, i, i)
}

// take removes the entry at an index of a chain, without an event. The caller
// must then arrange the chain from there.
func (c *core) take(a *account, i int) *entry {
	e := a.txs[i].entry
	c.unindex(e)
	c.uncount(e)
	if e.lease != nil {
		c.leased--
		a.leased--
		e.lease = nil
	}
	if e.exempt {
		a.exempt--
	}
	c.enlist(e, false)
	a.cut(i)
	if a.unsettled(e.nonce) {
		a.spare.Add(&a.spare, &e.cost)
		a.short = a.short && a.balance().Lt(a.totalCost())
	}
	c.all.remove(e)
	e.gone = true
	return e
}

// drop removes the entry at an index of a chain and emits an event with the
// reason.
func (c *core) drop(a *account, i int, kind Kind, reason error, by common.Hash) {
	e := c.take(a, i)
	c.emit(Event{Kind: kind, Reason: reason, By: by}, e)
	c.arrange(a, i, i)
}

// dropEntry is drop for an entry whose index is unknown.
func (c *core) dropEntry(e *entry, kind Kind, reason error) {
	a := e.account
	i, _ := a.find(e.nonce)
	c.drop(a, i, kind, reason, common.Hash{})
	c.close(a)
}

// lend puts a ready entry into a lease. Its chain is arranged later: see
// core.touched.
func (c *core) lend(e *entry, l *Lease) {
	c.unindex(e)
	e.lease, e.lead, e.surplus = l, noLead, false
	c.leased++
	a := e.account
	a.leased++
	c.touch(a)
}

// touch marks an account whose chain must be arranged. Several changes then
// cost one arrangement.
func (c *core) touch(a *account) {
	if n := len(c.touched); n == 0 || c.touched[n-1] != a {
		c.touched = append(c.touched, a)
	}
}

// arrangeTouched arranges the chains of all touched accounts.
func (c *core) arrangeTouched() {
	for i, a := range c.touched {
		c.touched[i] = nil
		if a.slot == closed {
			continue
		}
		c.arrange(a, 0, len(a.txs))
		c.close(a)
	}
	c.touched = c.touched[:0]
}

// giveBack removes an entry from its lease. If its nonce is used, it is
// dropped. Its chain is arranged later: see core.touched.
func (c *core) giveBack(e *entry) {
	was := e.counts()
	c.uncount(e)
	e.lease = nil
	c.count(e)
	c.leased--
	a := e.account
	a.leased--
	c.exemptEntry(e)
	i, _ := a.find(e.nonce)
	if e.nonce < a.nonce {
		c.drop(a, i, Dropped, ErrNonceTooLow, common.Hash{})
		c.close(a)
		return
	}
	if e.counts() != was {
		c.emitMove(e, false)
		c.enlist(e, false)
	}
	if a.short {
		c.settle(a, a.balance())
	}
	c.touch(a)
}

// refresh updates an account from the host's state. Transactions that the new
// nonce or balance do not allow are dropped, from the end of the chain, so that
// no gap opens. Leased ones stay until the lease is closed.
func (c *core) refresh(a *account, known Account) {
	if len(a.txs) == 0 && known.Nonce >= a.nonce { // only committed ones, all shown
		a.state, a.nonce = known.Nonce, known.Nonce
		c.shown(a, known.Nonce)
		c.close(a)
		return
	}
	a.stale = false
	a.delegated = known.Delegated
	if known.Nonce >= a.nonce || a.nonce == a.state { // all committed ones shown, or none
		a.nonce = known.Nonce
	}
	c.shown(a, known.Nonce)
	a.state = known.Nonce
	c.dropUsed(a)
	c.settle(a, &known.Balance)
	c.arrange(a, 0, len(a.txs))
	c.close(a)
}

// dropUsed drops transactions whose nonce is used, except leased ones.
func (c *core) dropUsed(a *account) {
	for i := 0; i < len(a.txs) && a.txs[i].nonce < a.nonce; {
		if a.txs[i].lease != nil {
			i++
			continue
		}
		e := c.take(a, i)
		c.emit(Event{Kind: Dropped, Reason: ErrNonceTooLow}, e)
	}
}

// settle compares a balance with the cost of all transactions. It drops
// uncovered ones from the end of the chain. Exempt ones stay, as do those that
// become exempt because blocks were reverted; arrangeChain parks them until the
// balance covers them.
func (c *core) settle(a *account, balance *uint256.Int) {
	covered := a.totalCost()
	for i := len(a.txs) - 1; i >= 0 && balance.Lt(covered); i-- {
		e := a.txs[i].entry
		if e.lease != nil || !a.unsettled(e.nonce) {
			continue
		}
		covered.Sub(covered, &e.cost)
		if c.keeping {
			c.exemptEntry(e)
		}
		if !e.exempt {
			c.take(a, i)
			c.emit(Event{Kind: Dropped, Reason: ErrInsufficientFunds}, e)
		}
	}
	total := a.totalCost()
	a.spare.Sub(balance, total)
	a.short = balance.Lt(total)
}
