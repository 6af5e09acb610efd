package txpool

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// plan is a decision about one sender's chain, for example that a newcomer enters and
// that others must leave. Making a plan changes nothing; applyPlan carries it out.
type plan struct {
	account *account
	// index is the first index in the chain that the plan changes.
	index int
	// enters is the newcomer, and replaces the transaction that it replaces. promotes
	// was waiting for room in the pool and gets it now. Each may be nil.
	enters, replaces, promotes *entry
	// runs is set if the newcomer can run.
	runs bool
	// leaves contains the transactions, of any sender, that must leave.
	leaves []leaving
	// returns are transactions that a session had locked but did not put into a block; they
	// are unlocked. exempts are transactions to which the caps of the pool no longer apply, so
	// that no newcomer can push them out.
	returns, exempts []*entry
	// state is the nonce and balance to store in the account, or nil.
	state *Account
	// together is set if more plans for this account follow. The order of its
	// transactions is then computed once, before the pool's lock is released.
	together bool
}

// leaving is a transaction that must leave, with the fields of its event.
type leaving struct {
	*entry
	kind   Kind
	reason error
}

// decide returns a plan to admit the transaction, or an error that refuses it.
func (c *core) decide(a *account, e *entry) (plan, error) {
	if e.exempt {
		return c.decideReturned(a, e)
	}
	i, old, err := c.checkOwn(a, e)
	if err != nil {
		return plan{}, err
	}
	if err := c.checkAuthorities(a.address, e); err != nil {
		return plan{}, err
	}
	last, err := c.checkSenderLimit(a, old, e)
	if err != nil {
		return plan{}, err
	}
	at := c.foreseeSeat(a, i, e)
	leaves, err := c.makeRoom(a, i, old, e, at, maxVictims)
	if err != nil {
		return plan{}, err
	}
	// The newcomer may close a nonce gap, so that later transactions of the sender could run
	// too. A delegated sender may have only a few that can run, so the rest leave.
	if old == nil {
		leaves = append(leaves, c.findBeyondTurn(a, e)...)
	}
	// The sender has as many transactions as allowed. Its last one, which waits behind a nonce
	// gap, gives way to the newcomer.
	if last != nil && !slices.ContainsFunc(leaves, func(l leaving) bool { return l.entry == last }) {
		leaves = append(leaves, leaving{last, Dropped, ErrSenderLimit})
	}
	return plan{account: a, index: i, enters: e, replaces: old, runs: at.status == ready, leaves: leaves}, nil
}

// decideReturned decides about a transaction that comes back, for example from a failed
// block.
func (c *core) decideReturned(a *account, e *entry) (plan, error) {
	if e.nonce < a.Nonce {
		return plan{}, tooLow(a, e)
	}
	i, taken := a.find(e.nonce)
	if taken {
		// The sender has used the nonce for a newer transaction in the meantime.
		return plan{}, &superseded{a.txs[i].hash()}
	}
	total, over := new(uint256.Int).AddOverflow(&a.cost, &e.cost)
	if over {
		return plan{}, fmt.Errorf("%w: address %v have %v want more than 2^256-1", ErrInsufficientFunds, a.address, &a.Balance)
	}
	// No cap applies, because the pool has accepted the transaction before.
	p := plan{account: a, index: i, enters: e}
	// The transaction comes back and must not be lost, but the balance may not cover all of
	// the sender's transactions now. The last ones stay in the pool, exempt from its caps.
	for j := len(a.txs) - 1; j >= 0 && a.Balance.Lt(total); j-- { // the last are not covered
		if j == i-1 {
			total.Sub(total, &e.cost)
		}
		l := a.txs[j].entry
		if !l.locked && a.unsettled(l.nonce) && a.Balance.Lt(total) {
			total.Sub(total, &l.cost)
			p.exempts = append(p.exempts, l)
		}
	}
	return p, nil
}

// checkOwn checks a transaction against its sender's account and other transactions.
func (c *core) checkOwn(a *account, e *entry) (i int, old *entry, err error) {
	e.rank = c.fees.rank(e)
	if err := c.checkNonce(a, e); err != nil {
		return 0, nil, err
	}
	// i is the position for the transaction in its sender's list. If replaces is true, the
	// list has a transaction with the same nonce there.
	i, replaces := a.find(e.nonce)
	if err := c.checkPrice(e, replaces); err != nil {
		return 0, nil, err
	}
	if replaces {
		old = a.txs[i].entry
		err = c.checkReplacement(old, e)
	} else {
		err = c.checkDelegated(a, e)
	}
	if err != nil {
		return 0, nil, err
	}
	return i, old, c.checkFunds(a, old, e)
}

// checkNonce refuses a nonce that is used or too far above the account's nonce.
func (c *core) checkNonce(a *account, e *entry) error {
	if e.nonce < a.Nonce {
		return tooLow(a, e)
	}
	if e.nonce-a.Nonce > c.cfg.MaxNonceDistance() {
		return fmt.Errorf("%w: address %v, tx: %d state: %d, want ≤ %d", ErrNonceTooHigh, a.address, e.nonce, a.Nonce, addSaturating(a.Nonce, c.cfg.MaxNonceDistance()))
	}
	return nil
}

func tooLow(a *account, e *entry) error {
	return fmt.Errorf("%w: address %v, tx: %d state: %d", ErrNonceTooLow, a.address, e.nonce, a.Nonce)
}

// checkPrice refuses a transaction that pays too little.
func (c *core) checkPrice(e *entry, replaces bool) error {
	least := c.fees.floor
	switch {
	case c.restoring:
		return nil // it paid enough when it was first admitted
	case !replaces:
		// A newcomer pays a surge if the pool is nearly full. A replacement pays only
		// the floor, because it does not make the pool fuller.
		least = c.fees.least()
	}
	price := c.fees.price(e)
	if price < least {
		return fmt.Errorf("%w: pays %d wei per gas, want ≥ %d (floor %d, base fee %d)", ErrUnderpriced, price, least, c.fees.floor, c.fees.base)
	}
	return nil
}

// checkReplacement decides whether e may replace old (invariant I6).
func (c *core) checkReplacement(old, e *entry) error {
	if old.locked {
		return fmt.Errorf("%w: %s has nonce %d", ErrInBundle, old.hash(), old.nonce)
	}
	if (old.tx.Type() == types.BlobTxType) != (e.tx.Type() == types.BlobTxType) {
		return fmt.Errorf("%w: type %d cannot replace type %d: blob transactions only replace each other", ErrReplaceUnderpriced, e.tx.Type(), old.tx.Type())
	}
	if err := c.cfg.checkBump(old, e); err != nil {
		return err
	}
	wait := c.replacementWait(old, e.at)
	if wait > 0 && int(old.replacements) >= maxReplacements {
		return fmt.Errorf("%w: nonce %d was replaced %d times, try again in %v", ErrReplaceTooOften, e.nonce, old.replacements, wait)
	}
	return nil
}

// checkFunds refuses a transaction if the balance does not cover all the sender's
// transactions.
func (c *core) checkFunds(a *account, old, e *entry) error {
	var total uint256.Int
	_, over := total.AddOverflow(&a.cost, &e.cost)
	if over {
		return fmt.Errorf("%w: address %v have %v want more than 2^256-1", ErrInsufficientFunds, a.address, &a.Balance)
	}
	// The replaced transaction can no longer run, so the balance need not cover it.
	if old != nil && a.unsettled(old.nonce) {
		total.Sub(&total, &old.cost)
	}
	if !a.Balance.Lt(&total) {
		return nil
	}
	want := total // allocated, unlike total
	return fmt.Errorf("%w: address %v have %v want %v, including %v for other transactions", ErrInsufficientFunds, a.address, &a.Balance, &want,
		new(uint256.Int).Sub(&want, &e.cost))
}

// checkSenderLimit enforces the cap on one sender, and returns a transaction that makes
// room.
func (c *core) checkSenderLimit(a *account, old, e *entry) (last *entry, err error) {
	n := len(a.txs)
	if old != nil || n < c.cfg.MaxPerSender {
		return nil, nil
	}
	// At the cap, a transaction with the sender's next nonce may displace the sender's
	// last transaction behind a gap. Otherwise a sender whose transactions arrived in
	// the wrong order could never fill its gap.
	for i := n - 1; i >= int(a.line) && n == c.cfg.MaxPerSender && e.nonce == a.next(); i-- {
		last := a.txs[i].entry
		if !last.locked && !last.exempt {
			return last, nil
		}
	}
	return nil, fmt.Errorf("%w: address %v has %d transactions, limit %d", ErrSenderLimit, a.address, n, c.cfg.MaxPerSender)
}

// foreseeSeat returns the seat that a newcomer will get if it is admitted.
func (c *core) foreseeSeat(a *account, i int, e *entry) seat {
	at := c.position(a, i)
	// checkFunds has already checked that the balance covers the newcomer.
	at.funded = i + 1
	e.seq = c.seq + 1 // as it will be after admission
	return c.standing(a, i, e, &at)
}

// newcomer is a transaction that needs room in a full pool.
type newcomer struct {
	*entry
	account *account
	lead    place
	// gain is the least that the builder earns by admitting the newcomer, in wei: its
	// fees, minus those of the transaction that it replaces.
	gain     *uint256.Int
	replaces bool
	most     int // greatest number of transactions that it may displace
}

// maxVictims is how many transactions one newcomer may displace at most.
const maxVictims = 4096

// makeRoom returns at most most transactions that must leave so that e has room.
func (c *core) makeRoom(a *account, i int, old, e *entry, s seat, most int) ([]leaving, error) {
	space := c.space(old, e, s.status)
	if space.fits(usage{}) {
		return nil, nil
	}
	n := newcomer{entry: e, account: a, lead: s.lead, gain: e.worth(), replaces: old != nil, most: most}
	if old != nil { // its fees are lost
		worth := old.worth()
		if worth.Lt(n.gain) {
			n.gain.Sub(n.gain, worth)
		} else {
			n.gain.Clear()
		}
	}
	switch s.status {
	case queued:
		return c.findGapped(a, e, space.fits)
	case parked:
		return c.findVictims(c.parked, n, space.fits)
	}
	// There is room for transactions of this status, but the pool as a whole is full.
	// Transactions that cannot run give way first.
	if fit(space.need, space.have, space.limit, usage{}) {
		leaves := c.findIdle(n, space)
		if leaves != nil {
			return leaves, nil
		}
	}
	// The base fee may rise with the next block. A transaction that could not pay it must not
	// push out one that can.
	n.lead.rank = min(n.lead.rank, c.rankAfterRise(a, i, e))
	if n.lead.rank < tipless {
		return nil, fmt.Errorf("%w: %w: it cannot pay the next base fee, which may be %d wei", ErrPoolFull, ErrUnderpriced, c.fees.next())
	}
	return c.findVictims(c.ready, n, space.fits)
}

// findIdle returns transactions that cannot run and make room for a newcomer that can.
func (c *core) findIdle(n newcomer, s space) (leaves []leaving) {
	var freed usage
	passed := 0
	// The number of examined transactions is limited, so that Add costs the same in any
	// pool (invariant I9).
	more := func() bool { return passed < maxPassed && len(leaves) < n.most && !s.fits(freed) }
	leave := func(e *entry) bool {
		if e.account == n.account || e.exempt || e.locked {
			passed++
		} else {
			freed.add(e.uses(1))
			leaves = append(leaves, leaving{e, Dropped, ErrPoolFull})
		}
		return more()
	}
	// The worst of the parked transactions give way first. If that is not enough, the newest
	// senders lose their last transactions behind nonce gaps.
	c.parked.Descend(func(r ranked) bool { return leave(r.entry) })
	for i := len(c.list) - 1; i >= 0 && more(); i-- {
		passed++
		a := c.list[i]
		for j := len(a.txs) - 1; j >= int(a.line) && leave(a.txs[j].entry); j-- {
			continue
		}
	}
	if !s.fits(freed) {
		return nil
	}
	return leaves
}

// rankAfterRise returns what a newcomer is worth to a builder after the highest possible
// rise of the base fee. Earlier transactions of its sender must run first, so the lowest
// rank among them counts.
func (c *core) rankAfterRise(a *account, i int, e *entry) uint64 {
	// This is as far as the base fee can rise in one block (EIP-1559).
	base := c.fees.next()
	least := rankAt(base, e)
	for _, ancestor := range a.txs[min(int(a.ahead), i):i] {
		if !ancestor.locked {
			least = min(least, rankAt(base, ancestor.entry))
		}
	}
	return least
}

// findVictims chooses the transactions of an index that must leave for a newcomer.
func (c *core) findVictims(index *btree.BTreeG[ranked], n newcomer, room func(usage) bool) (leaves []leaving, err error) {
	var freed usage
	var best ranked // best of the victims so far
	enough, passed := false, 0
	sum := new(uint256.Int)
	dear := make(map[*account]bool) // senders with a parked transaction that has a higher tip
	index.Descend(func(r ranked) bool {
		if r.entry.account == n.account {
			return true // the newcomer's own ancestors or successors
		}
		// The base fee earns the builder nothing, so a parked transaction with a higher
		// tip than the newcomer's is worth more and stays. The index yields the last
		// transaction of a sender's chain first, and its tip is at most the lowest fee
		// cap of the chain.
		if index == c.parked && min(r.entry.tip, r.rank) > n.tip {
			dear[r.entry.account] = true
		}
		if r.entry.keeps() || dear[r.entry.account] {
			passed++
			return passed < maxPassed
		}
		best = r
		if r.rank >= n.lead.rank || len(leaves) == n.most {
			return false
		}
		freed.add(r.entry.uses(1))
		sum.Add(sum, r.entry.worth())
		leaves = append(leaves, leaving{r.entry, Dropped, ErrPoolFull})
		enough = room(freed)
		return !enough
	})
	switch {
	case best.entry == nil:
		return nil, fmt.Errorf("%w: none of %d transactions can be displaced", ErrPoolFull, index.Len())
	case !enough && n.lead.rank < tipless:
		return nil, fmt.Errorf("%w: %w: maxFeePerGas %d wei, want > %d (base fee %d)", ErrPoolFull, ErrUnderpriced, n.lead.rank, min(best.rank, c.fees.base), c.fees.base)
	case !enough:
		return nil, fmt.Errorf("%w: %w: tip %d wei, want ≥ %d", ErrPoolFull, ErrUnderpriced, tipOf(n.lead.rank), addSaturating(tipOf(best.rank), 1))
	// The newcomer pays more per gas than each transaction that would leave. Together they may
	// still pay more in total; then the newcomer is refused.
	case (len(leaves) > 1 || n.replaces) && !sum.Lt(n.gain):
		return nil, fmt.Errorf("%w: %w: adds at least %v wei, want > %v to displace %d transactions", ErrPoolFull, ErrUnderpriced, n.gain, sum, len(leaves))
	}
	return leaves, nil
}

// worth returns the least that a builder earns with a transaction, in wei.
func (e *entry) worth() *uint256.Int {
	price := e.rank
	if price >= tipless {
		price = tipOf(price)
	}
	// The transaction pays its tip for the minimum amount of gas. If it does not pay
	// the present base fee, its price is its fee cap, as if the base fee were 0.
	return new(uint256.Int).Mul(uint256.NewInt(price), uint256.NewInt(uint64(e.work)))
}

// decideState returns the plan for an account that has changed in the host's state.
func (c *core) decideState(a *account, known Account) plan {
	p := plan{account: a, state: &known}
	covered := new(uint256.Int)
	used := 0 // transactions that have a used nonce
	for _, e := range a.txs {
		if e.nonce >= known.Nonce {
			covered.Add(covered, &e.cost)
			continue
		}
		used++
		if !e.locked {
			p.leaves = append(p.leaves, leaving{e.entry, Dropped, ErrNonceTooLow})
		}
	}
	// The balance no longer covers all transactions. The last ones leave first, so that no
	// nonce gap opens between the others.
	for i := len(a.txs) - 1; i >= used && known.Balance.Lt(covered); i-- {
		e := a.txs[i].entry
		switch {
		// A locked transaction stays until its session ends. One that is exempt from the caps
		// stays too, parked until the balance covers it.
		case e.locked:
			continue
		// Blocks are being reverted, and their transactions may not be lost.
		case c.keeping && !e.exempt:
			p.exempts = append(p.exempts, e)
		case !e.exempt:
			p.leaves = append(p.leaves, leaving{e, Dropped, ErrInsufficientFunds})
		}
		covered.Sub(covered, &e.cost)
	}
	return p
}

// decideReturn returns the plan for a transaction that a session gives back.
func (c *core) decideReturn(e *entry, exempt bool) plan {
	a := e.account
	p := plan{account: a, index: a.indexOf(e), together: true}
	if e.nonce < a.Nonce {
		p.leaves = []leaving{{e, Dropped, ErrNonceTooLow}}
		return p
	}
	p.returns = []*entry{e}
	if exempt || a.short() {
		// The transaction was accepted before and must stay, although newcomers have taken its
		// room or the balance is too low. Exempt it from the caps.
		p.exempts = p.returns
	}
	return p
}

// planDrop returns the plan that drops a transaction for a reason.
func planDrop(e *entry, reason error) plan {
	return plan{account: e.account, index: e.account.indexOf(e), leaves: []leaving{{e, Dropped, reason}}}
}

// maxPassed bounds the time that Add takes when the pool is full. Add then searches for
// cheap transactions that make room for a better one, and gives up after it has skipped
// maxPassed transactions that may not be removed.
const maxPassed = 4096
