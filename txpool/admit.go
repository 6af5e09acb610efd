package txpool

import (
	"fmt"
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// add admits a transaction, or returns an error and changes nothing. known is
// the sender's account; it is needed only if the pool does not know the sender.
// If it is needed and nil, add returns true.
func (c *core) add(e *entry, from common.Address, known *Account) (need bool, err error) {
	if e.exempt {
		if c.all.get(e.hash()) != nil {
			return false, ErrAlreadyKnown
		}
	} else if err := c.checkNew(e); err != nil {
		return false, err
	}
	a := c.accounts.get(from)
	if a != nil && a.stale {
		if known == nil {
			return true, nil
		}
		c.refresh(a, *known)
		a = c.accounts.get(from)
	}
	if a == nil {
		if known == nil {
			cached, there := c.cache.get(from)
			if !there {
				return true, nil
			}
			a = c.open(from, cached)
		} else {
			a = c.open(from, *known)
		}
	}
	if err := c.admit(a, e); err != nil {
		e.seq = 0 // makes checkNew check again
		c.remember(a)
		c.close(a)
		return false, err
	}
	c.settleRooms(slice)
	return false, nil
}

// checkNew refuses a transaction that is in the pool or left it recently. It
// skips the check if nothing was added since the last one, which e.seq records.
func (c *core) checkNew(e *entry) error {
	if e.seq == c.seq && e.seq > 0 {
		return nil
	}
	hash := e.hash()
	if c.all.get(hash) != nil || c.aside.txs[hash] != nil {
		return ErrAlreadyKnown
	}
	if wait := c.failed.find(e.prefix, e.at); wait > 0 {
		return fmt.Errorf("%w: %s, try again in %v", ErrQuarantined, hash, wait)
	}
	if wait := c.replaced.find(e.prefix, e.at); wait > 0 {
		return fmt.Errorf("%w: %s, try again in %v", ErrReplaced, hash, wait)
	}
	e.seq = c.seq
	return nil
}

// admit checks a transaction and stores it. It changes nothing before all
// checks have passed.
func (c *core) admit(a *account, e *entry) error {
	if e.exempt {
		return c.readmit(a, e)
	}
	i, old, err := c.checkOwn(a, e)
	if err != nil {
		return err
	}
	if err := c.checkAuthorities(a.address, e); err != nil {
		return err
	}
	makeWay, err := c.checkSenderLimit(a, i, old, e)
	if err != nil {
		return err
	}
	victims, err := c.checkRoom(a, i, old, e)
	if err != nil {
		return err
	}
	if c.cfg.Journal != nil {
		c.admitting = e
		defer func() { c.admitting = nil }()
	}
	for _, victim := range victims {
		c.evict(victim)
	}
	if makeWay {
		c.drop(a, len(a.txs)-1, Dropped, ErrSenderLimit, common.Hash{})
	}
	if old != nil {
		c.take(a, i)
		c.inherit(old, e)
		e.exempt = old.exempt // the nonce stays exempt
		c.replaced.bury(old.prefix, e.at, c.cfg.TombstoneTime)
		c.emit(Event{Kind: Replaced, By: e.hash()}, old)
	}
	c.store(a, i, e)
	return nil
}

// checkOwn makes the checks that depend on the sender only. It returns the
// transaction's index in the sender's chain, and the transaction that it would
// replace, or nil.
func (c *core) checkOwn(a *account, e *entry) (i int, old *entry, err error) {
	e.rank = c.fees.rank(e)
	if err := c.checkNonce(a, e); err != nil {
		return 0, nil, err
	}
	i, replaces := a.find(e.nonce)
	if err := c.checkPrice(e, replaces); err != nil {
		return 0, nil, err
	}
	if replaces {
		old = a.txs[i].entry
		err = c.checkReplacement(old, e)
	} else {
		err = c.checkDelegated(a)
	}
	if err != nil {
		return 0, nil, err
	}
	return i, old, c.checkFunds(a, old, e)
}

// checkNonce checks the distance to the account's nonce.
func (c *core) checkNonce(a *account, e *entry) error {
	if e.nonce < a.nonce {
		return fmt.Errorf("%w: address %v, tx: %d state: %d", ErrNonceTooLow, a.address, e.nonce, a.nonce)
	}
	if e.nonce-a.nonce >= c.cfg.MaxNonceDistance {
		return fmt.Errorf("%w: address %v, tx: %d state: %d, want < %d", ErrNonceTooHigh, a.address, e.nonce, a.nonce, a.nonce+c.cfg.MaxNonceDistance)
	}
	return nil
}

// checkPrice checks that a transaction pays enough. A newcomer must pay the
// floor with surge. A replacement must pay the floor only, because it does not
// make the pool fuller.
func (c *core) checkPrice(e *entry, replaces bool) error {
	least := c.fees.floor
	switch {
	case c.restoring:
		return nil // it paid enough then
	case !replaces:
		least = c.fees.least()
	}
	if price := c.fees.price(e); price < least {
		return fmt.Errorf("%w: pays %d wei per gas, want ≥ %d (floor %d, base fee %d)", ErrUnderpriced, price, least, c.fees.floor, c.fees.base)
	}
	return nil
}

// checkReplacement checks whether a transaction may replace one with the same
// nonce (invariant I6).
func (c *core) checkReplacement(old, e *entry) error {
	if old.lease != nil {
		return fmt.Errorf("%w: %s has nonce %d", ErrInBundle, old.hash(), old.nonce)
	}
	if old.blob != e.blob {
		return fmt.Errorf("%w: type %d cannot replace type %d: blob transactions only replace each other", ErrReplaceUnderpriced, e.tx.Type(), old.tx.Type())
	}
	if err := c.cfg.checkBump(old, e); err != nil {
		return err
	}
	if wait := c.replacementWait(old, e.at); wait > 0 && int(old.replacements) >= c.cfg.MaxReplacements {
		return fmt.Errorf("%w: nonce %d was replaced %d times, try again in %v", ErrReplaceTooOften, e.nonce, old.replacements, wait)
	}
	return nil
}

// replacementWait returns for how long the replacements of a nonce still count.
// 0 or less means that they do not.
func (c *core) replacementWait(e *entry, now int64) time.Duration {
	if e.replacements == 0 {
		return 0
	}
	return c.cfg.ReplacementWindow - time.Duration(now-int64(e.since)*int64(time.Second))
}

// inherit passes the count of replacements on to the new transaction.
func (c *core) inherit(old, e *entry) {
	e.replacements, e.since = 1, uint32(e.at/int64(time.Second))
	if c.replacementWait(old, e.at) > 0 {
		e.replacements, e.since = min(old.replacements, math.MaxUint16-1)+1, old.since
	}
}

// checkFunds checks that the balance covers all transactions of a sender
// together (invariant I2). Otherwise one balance could fill the pool many times
// over.
func (c *core) checkFunds(a *account, old, e *entry) error {
	spare := a.spare
	if old != nil && a.unsettled(old.nonce) {
		spare.Add(&spare, &old.cost) // already covered
	}
	if !a.short && !spare.Lt(&e.cost) {
		return nil
	}
	total, over := new(uint256.Int).AddOverflow(a.totalCost(), &e.cost)
	if old != nil {
		total.Sub(total, &old.cost)
	}
	if over {
		return fmt.Errorf("%w: address %v have %v want more than 2^256-1", ErrInsufficientFunds, a.address, a.balance())
	}
	return fmt.Errorf("%w: address %v have %v want %v, including %v for other transactions", ErrInsufficientFunds, a.address, a.balance(), total,
		new(uint256.Int).Sub(total, &e.cost))
}

// checkSenderLimit enforces the cap of a sender. A transaction that could run
// may displace the sender's last one behind a gap. Otherwise a sender whose
// transactions arrived in the wrong order could never fill the gap.
func (c *core) checkSenderLimit(a *account, i int, old, e *entry) (makeWay bool, err error) {
	if old != nil || len(a.txs) < c.cfg.MaxPerSender {
		return false, nil
	}
	if last := a.txs[len(a.txs)-1]; len(a.txs) == c.cfg.MaxPerSender && e.nonce == a.next() && i < len(a.txs) && last.status == queued && last.lease == nil && !last.exempt {
		return true, nil
	}
	return false, fmt.Errorf("%w: address %v has %d transactions, limit %d", ErrSenderLimit, a.address, len(a.txs), c.cfg.MaxPerSender)
}

// checkRoom returns the transactions that must be evicted to make room for a
// transaction: the ends of other senders' chains that are strictly worse, worst
// first (invariants I1, I3, I4, I5). It returns an error if they do not
// suffice.
func (c *core) checkRoom(a *account, i int, old, e *entry) ([]*entry, error) {
	lead, status := c.foresee(a, i, e)
	return c.makeRoom(a, i, old, e, lead, status)
}

// makeRoom is checkRoom for a transaction with a known place and status.
func (c *core) makeRoom(a *account, i int, old, e *entry, lead place, status status) ([]*entry, error) {
	space := c.space(old, e, status)
	if space.fits(usage{}) {
		return nil, nil
	}
	return c.displace(a, i, old, e, lead, status, space)
}

// displace chooses the transactions that must go for one that does not fit.
func (c *core) displace(a *account, i int, old, e *entry, lead place, status status, space space) ([]*entry, error) {
	room := space.fits
	gain := e.worth()
	if old != nil { // its fees are lost
		if worth := old.worth(); worth.Lt(gain) {
			gain.Sub(gain, worth)
		} else {
			gain.Clear()
		}
	}
	switch status {
	case queued:
		if victims := c.giveWay(a, room); victims != nil {
			return victims, nil
		}
		return nil, fmt.Errorf("%w: %d transactions of %d bytes are behind nonce gaps, %d of them from address %v", ErrPoolFull, c.uses[queued].count, c.uses[queued].bytes, a.waits, a.address)
	case parked:
		return c.victims(c.parked, newcomer{a, lead, gain, old != nil}, room)
	}
	if lead.rank = min(lead.rank, c.rankAfterRise(a, i, e)); lead.rank < tipless {
		return nil, fmt.Errorf("%w: %w: it cannot pay the next base fee, which may be %d wei", ErrPoolFull, ErrUnderpriced, c.fees.next())
	}
	if quota := c.cfg.MinReadyPerSender; quota > 0 {
		victims, err := c.victims(c.surplus, newcomer{a, lead, gain, old != nil}, room)
		if err == nil || c.readyBefore(a, i) >= quota {
			return victims, err
		}
	}
	return c.victims(c.ready, newcomer{a, lead, gain, old != nil}, room)
}

// rankAfterRise returns the lowest rank that a newcomer and its ancestors will
// have if the base fee rises as far as it can in the next block (EIP-1559). A
// transaction that can pay only the current base fee must not displace one that
// can pay the next.
func (c *core) rankAfterRise(a *account, i int, e *entry) uint64 {
	base := c.fees.next()
	least := rankAt(base, e)
	for _, ancestor := range a.txs[:i] {
		if ancestor.lease == nil {
			least = min(least, rankAt(base, ancestor.entry))
		}
	}
	return least
}

// readyBefore counts the pending transactions among the first i of a chain.
func (c *core) readyBefore(a *account, i int) int {
	n := 0
	for _, e := range a.txs[:i] {
		if e.status == ready {
			n++
		}
	}
	return n
}

// foresee returns the place and status that a transaction will have.
func (c *core) foresee(a *account, i int, e *entry) (place, status) {
	next, lead, lowest := a.nonce, noLead, ready
	if i > 0 {
		next, lead, lowest = a.before(i)
	}
	if lowest == queued || e.nonce != next {
		return noLead, queued
	}
	e.seq = c.seq + 1 // as after admission
	return c.stands(a, e, lead, lowest)
}

// newcomer is the transaction that victims makes room for.
type newcomer struct {
	account *account
	lead    place
	// gain is the least value of the newcomer in wei, minus that of the
	// transaction that it replaces.
	gain     *uint256.Int
	replaces bool
}

// victims chooses the transactions in an index that must go for a newcomer.
// Every victim pays less per gas than the newcomer. If more than one must go,
// or the newcomer is a replacement that grew, the victims' total value must
// also be below the newcomer's.
func (c *core) victims(index *btree.BTreeG[ranked], e newcomer, room func(usage) bool) (victims []*entry, err error) {
	var freed usage
	var best ranked // best of the victims
	enough, passed := false, 0
	index.Descend(func(r ranked) bool {
		if r.entry.account == e.account {
			return true // own ancestors or successors
		}
		if r.entry.exempt {
			passed++
			return passed < maxPassed
		}
		if best = r; r.rank >= e.lead.rank {
			return false
		}
		freed.add(r.entry)
		victims = append(victims, r.entry)
		enough = room(freed)
		return !enough
	})
	switch {
	case best.entry == nil:
		return nil, fmt.Errorf("%w: none of %d transactions can be displaced", ErrPoolFull, index.Len())
	case !enough && e.lead.rank < tipless:
		return nil, fmt.Errorf("%w: %w: maxFeePerGas %d wei, want > %d (base fee %d)", ErrPoolFull, ErrUnderpriced, e.lead.rank, min(best.rank, c.fees.base), c.fees.base)
	case !enough:
		return nil, fmt.Errorf("%w: %w: tip %d wei, want ≥ %d", ErrPoolFull, ErrUnderpriced, tipOf(e.lead.rank), addSaturating(tipOf(best.rank), 1))
	}
	if len(victims) > 1 || e.replaces {
		sum := new(uint256.Int)
		for _, v := range victims {
			sum.Add(sum, v.worth())
		}
		if !sum.Lt(e.gain) {
			return nil, fmt.Errorf("%w: %w: adds at least %v wei, want > %v to displace %d transactions", ErrPoolFull, ErrUnderpriced, e.gain, sum, len(victims))
		}
	}
	return victims, nil
}

// worth returns the least amount that a builder earns with an entry, in wei. If
// the entry does not pay the base fee now, it is the amount at a base fee of 0.
func (e *entry) worth() *uint256.Int {
	price := e.rank
	if price >= tipless {
		price = tipOf(price)
	}
	return new(uint256.Int).Mul(uint256.NewInt(price), uint256.NewInt(uint64(e.work)))
}
