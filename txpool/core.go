package txpool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// core is the pool as a value, without clock, lock and cryptography: the same calls in the same order have the same results. Each call
// costs one sender's transactions and the logarithm of the pool (invariant I9).
type core struct {
	cfg      *Config
	accounts table[common.Address, *account]
	list     []*account // the same, so that sweeps can stop and go on
	free     []*account
	all      table[common.Hash, *entry]
	cache    accountCache
	replaced graveyard // a short time ago
	failed   graveyard // in building; a flood of replacements does not make it forget these
	secret   graveyard // private ones that were included: when they come back they are private again
	fees     fees

	// ready and parked order all transactions in line that are in no lease. surplus is the part of ready that is beyond
	// Config.MinReadyPerSender.
	ready, parked, surplus *btree.BTreeG[ranked]
	waiting                waitingRoom
	authorizations         authorizations
	// uses counts what lies where. Leased transactions count as ready, wherever they stand.
	uses [ready + 1]usage
	// exempt is the part of uses that no cap evicts: see exempt.go.
	exempt [ready + 1]usage
	bound  usage // see Config.bound
	leased int

	touched []*account // whose chains must be arranged before the lock is released

	patient   bool // a Reset is under way that will close gaps
	keeping   bool // a Reset or Restore that brings transactions back is under way
	restoring bool // what is admitted was admitted before

	// unsettled says that settleRooms has more to do: see settleRooms.
	unsettled bool
	checked   int // place in list of the next sender for checkSome

	seq       uint64
	listening bool    // somebody wants events
	events    []Event // that happened since they were last taken
	// admitting is the newcomer that displaces others now, displacedBy what each
	// newcomer has displaced that is not written down yet. Without a journal both
	// are empty.
	admitting   *entry
	displacedBy map[*entry][]candidate
	// collecting says that a Reset or Restore wants to know what is dropped.
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

// limit returns the caps of a status.
func (c *core) limit(s status) usage {
	switch s {
	case ready:
		return usage{c.cfg.MaxPending, c.cfg.MaxPendingBytes}
	case parked:
		return usage{c.cfg.MaxParked, c.cfg.MaxParkedBytes}
	default:
		return usage{c.cfg.MaxQueued, c.cfg.MaxQueuedBytes}
	}
}

// over reports whether more lies somewhere than may. Exempt transactions do not
// count.
func (c *core) over(s status) bool {
	u, limit := c.capped(s), c.limit(s)
	return u.count > limit.count || u.bytes > limit.bytes
}

// counts returns where an entry counts.
func (e *entry) counts() status {
	if e.lease != nil {
		return ready
	}
	return e.status
}

// chunk is how many accounts are allocated at once.
const chunk = 64

// open returns the sender's account, a new one with what the host's state says if it has none yet.
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

// close forgets an account that has nothing in the pool.
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

// closed is the slot of an account that is in none.
const closed = -1

// remember keeps an account that has nothing in the pool after all.
func (c *core) remember(a *account) {
	if len(a.txs) == 0 && a.nonce == a.state && !a.stale && !a.short {
		c.cache.put(a.address, Account{Nonce: a.state, Balance: a.spare, Delegated: a.delegated})
	}
}

// arrange puts a sender's transactions where they belong, from one on: all before it are where they belong already. Every change of a chain
// ends here.
func (c *core) arrange(a *account, from, changed int) {
	if a.short || a.held { // which ones are unfunded depends on the whole chain
		from, changed = 0, len(a.txs)
	}
	c.line(a, from, changed)
	if a.held && !a.short {
		c.line(a, 0, len(a.txs))
	}
	c.recount(a)
}

// line is arrange but for the count. It stops where nothing changes any more.
func (c *core) line(a *account, from, changed int) {
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
		case e.nonce < a.nonce: // used up, but still in a lease
			status = ready
		case lowest == queued || e.nonce != next:
			lowest = queued
		case e.lease != nil:
			status = ready // and what is before it stays before what is after it
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
			lowest, status = parked, parked // until there is room, or it wins some: see promote
		}
		moved := c.put(e, status, at, surplus >= c.cfg.MinReadyPerSender)
		if moved && status == ready && !e.fresh && !e.exempt && e.lease == nil && c.checkAuthorities(a.address, e) != nil { // it was not able to run when it was admitted
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

// drainable counts those before a place that can run and are in no lease, if
// senders have a quota of them.
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

// stands returns place and status of an entry in line, given those of the one before it.
func (c *core) stands(a *account, e *entry, lead place, lowest status) (place, status) {
	lead = lead.after(e)
	if a.delegated && e.nonce-a.nonce >= uint64(c.cfg.MaxDelegated) {
		lead = place{0, e.seq} // the account became delegated when this was here already: it must wait its turn
	}
	if lead.rank < c.fees.leastRank() {
		lowest = parked
	}
	return lead, lowest
}

// put moves an entry to a status and a place, and reports whether that changed anything.
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

// index puts an entry into the index that it belongs to.
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

// unindex is the opposite.
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

// store puts a new entry into its sender's chain.
func (c *core) store(a *account, i int, e *entry) {
	c.seq++
	e.seq, e.account, e.lead, e.fresh = c.seq, a, noLead, true
	e.rank = c.fees.rank(e)
	a.insert(i, e)
	if a.weighs(e.nonce) {
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

// take removes the entry at a place of a chain, without a word. The chain must be arranged from there afterwards.
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
	if a.weighs(e.nonce) {
		a.spare.Add(&a.spare, &e.cost)
		a.short = a.short && a.balance().Lt(a.totalCost())
	}
	c.all.remove(e)
	e.gone = true
	return e
}

// drop removes the entry at a place of a chain for a reason.
func (c *core) drop(a *account, i int, kind Kind, reason error, by common.Hash) {
	e := c.take(a, i)
	c.emit(Event{Kind: kind, Reason: reason, By: by}, e)
	c.arrange(a, i, i)
}

// dropEntry is drop for one of whom only the hash was known.
func (c *core) dropEntry(e *entry, kind Kind, reason error) {
	a := e.account
	i, _ := a.find(e.nonce)
	c.drop(a, i, kind, reason, common.Hash{})
	c.close(a)
}

// lend puts a ready entry into a lease. Its chain must be arranged afterwards: see core.touched.
func (c *core) lend(e *entry, l *Lease) {
	c.unindex(e)
	e.lease, e.lead, e.surplus = l, noLead, false
	c.leased++
	a := e.account
	a.leased++
	c.touch(a)
}

// touch notes an account whose chain must be arranged, once for all that is done to it: each arranging costs the whole chain.
func (c *core) touch(a *account) {
	if n := len(c.touched); n == 0 || c.touched[n-1] != a {
		c.touched = append(c.touched, a)
	}
}

// arrangeTouched arranges what was touched.
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

// giveBack takes an entry out of its lease. If its nonce is used up, it leaves. Its chain must be arranged afterwards: see core.touched.
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

// refresh gives an account what the host's state says. What its nonce or balance no longer allow leaves: from the end of the chain, so
// that no gap opens. What is in a lease stays until that is closed.
func (c *core) refresh(a *account, known Account) {
	if len(a.txs) == 0 && known.Nonce >= a.nonce { // there was nothing but what was committed, and it shows
		a.state, a.nonce = known.Nonce, known.Nonce
		c.shown(a, known.Nonce)
		c.close(a)
		return
	}
	a.stale = false
	a.delegated = known.Delegated
	if known.Nonce >= a.nonce || a.nonce == a.state { // everything that was committed shows, or nothing was
		a.nonce = known.Nonce
	}
	c.shown(a, known.Nonce)
	a.state = known.Nonce
	c.dropUsed(a)
	c.settle(a, &known.Balance)
	c.arrange(a, 0, len(a.txs))
	c.close(a)
}

// dropUsed drops what has a nonce that is used up, unless it is in a lease.
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

// settle compares a balance with all that it must pay for. From the end of the
// chain it drops what is not covered. What is exempt, or becomes so because
// blocks were reverted, stays: line parks it until the balance covers it.
func (c *core) settle(a *account, balance *uint256.Int) {
	covered := a.totalCost()
	for i := len(a.txs) - 1; i >= 0 && balance.Lt(covered); i-- {
		e := a.txs[i].entry
		if e.lease != nil || !a.weighs(e.nonce) {
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

// settleRooms evicts the worst until everything is within its caps, and promotes what waits for room. It ends when it has done so much and there may
// be more.
func (c *core) settleRooms(most int) (more bool) {
	c.arrangeTouched()
	for c.over(ready) && most > 0 {
		worst := c.worst(c.ready)
		if worst == nil {
			break
		}
		c.evict(worst)
		most--
	}
	for !c.patient && most > 0 && c.promote() { // what comes back with a Reset keeps its room
		most--
	}
	for c.over(parked) && most > 0 {
		worst := c.worst(c.parked)
		if worst == nil {
			break
		}
		c.evict(worst)
		most--
	}
	for !c.patient && c.over(queued) && most > 0 && c.shrinkWaiting() {
		most--
	}
	c.fees.occupy(c.uses[ready])
	c.unsettled = most == 0
	return c.unsettled
}

// fits reports whether there is room for one more that can run.
func (c *core) fits(e *entry) bool {
	u, limit := c.capped(ready), c.limit(ready)
	return e.exempt || u.count < limit.count && u.bytes+uint64(e.memory) <= limit.bytes
}

// promote brings in line the best of those that could run and wait for room: into free room, or by the rules that newcomers displace others by.
// Whatever waited for nothing must not displace for nothing. It reports whether it has found one.
func (c *core) promote() bool {
	if c.parked.Len() == 0 {
		return false
	}
	const enough = 16 // candidates: one that is long, and finds no room, does not keep others out
	var candidates [enough]*entry
	n := 0
	least := c.fees.leastRank()
	c.parked.Ascend(func(r ranked) bool {
		if r.rank < least || n == enough {
			return false
		}
		candidates[n] = r.entry
		n++
		return true
	})
	for _, e := range candidates[:n] {
		a := e.account
		i, _ := a.find(e.nonce)
		if i > 0 && a.txs[i-1].status == parked {
			continue // not before the one that it follows
		}
		if !c.fits(e) {
			victims, err := c.makeRoom(a, i, nil, e, e.lead, ready)
			if err != nil {
				continue
			}
			for _, victim := range victims {
				c.evict(victim)
			}
		}
		c.arrange(a, i, i)
		c.close(a)
		return true
	}
	return false
}

// evict drops an entry that is the last that can run of its sender, with what waits in line behind it: it could never run. Or it is one that
// waits behind a gap.
func (c *core) evict(e *entry) {
	a := e.account
	first, _ := a.find(e.nonce)
	for i := max(int(a.line)-1, first); i >= first; i-- {
		if a.txs[i].lease == nil && !a.txs[i].exempt { // those stay, whatever becomes of what is before them
			c.drop(a, i, Dropped, ErrPoolFull, common.Hash{})
		}
	}
	c.close(a)
}
