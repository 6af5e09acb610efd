package txpool

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Admission is how a transaction enters the pool. It has four stages, and each
// transaction goes through them once:
//
//	inspect       checks the transaction alone                        inspect.go
//	authenticate  recovers the sender, and makes the host's check     this file
//	decide        finds room in the sender's chain and in the pool    decide.go
//	apply         changes the pool, and emits events                  apply.go
//
// The first two stages are expensive, so they run without the pool's lock, and the
// cheap checks come first. They hold the lock only for two short reads, in
// refuseEarly and previewAdmission. The other two stages run under the lock.

// candidate is a transaction that is being added to the pool.
type candidate struct {
	tx      *types.Transaction
	raw     []byte // encoding of tx; nil if tx is given
	private bool
	// origin is set if the transaction comes back into the pool, for example from a
	// failed block; it is nil for a new transaction. Because the pool has accepted it
	// before, the caps do not apply to it and it keeps its time of admission.
	origin *past

	entry *entry // set by the first stage
	from  common.Address
	known Account // account of from in the host's state
	read  uint64  // generation in which known was read; 0 if it was not read
	early bool    // err may become outdated, so it is checked again: see admitSome
	err   error
}

// examine takes candidates through the first two stages of admission, which need no lock: inspect
// and authenticate (invariant I8). It skips candidates that already have an error.
func (p *Pool) examine(batch []candidate, now int64) {
	for i := range batch {
		t := &batch[i]
		if t.err == nil {
			t.err = p.inspectOne(t, now)
		}
	}
	p.refuseEarly(batch)
	_ = p.recoveries.Acquire(context.Background(), 1) // cannot fail
	defer p.recoveries.Release(1)
	for i := range batch {
		t := &batch[i]
		if t.err == nil {
			t.err = p.authenticate(t)
		}
	}
}

// inspectOne decodes the transaction if necessary, and checks it by itself.
func (p *Pool) inspectOne(t *candidate, now int64) (err error) {
	if t.raw != nil {
		if t.tx, err = p.decode(t.raw); err != nil {
			return err
		}
	}
	e, err := p.rulesFor(t).inspect(t.tx)
	if err != nil {
		return err
	}
	e.at, e.private = now, t.private
	if t.origin != nil {
		e.at, e.exempt, e.ran = min(t.origin.at, now), true, t.origin.ran
	}
	t.entry = e
	return nil
}

func (p *Pool) decode(raw []byte) (*types.Transaction, error) {
	if uint64(len(raw)) > p.cfg.MaxTxSize {
		return nil, fmt.Errorf("%w: transaction size %d, limit %d", ErrOversized, len(raw), p.cfg.MaxTxSize)
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return tx, nil
}

// rulesFor returns more lenient rules if the transaction was accepted before.
func (p *Pool) rulesFor(t *candidate) *Config {
	if t.origin == nil {
		return &p.cfg
	}
	return &p.lenient
}

// refuseEarly refuses candidates that the pool already has or that pay too little.
// It runs before the signatures are recovered, because recovering a signature is
// much more expensive.
func (p *Pool) refuseEarly(batch []candidate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range batch {
		t := &batch[i]
		if t.err != nil || t.origin != nil {
			continue
		}
		t.err = p.core.checkNew(t.entry)
		if t.err != nil {
			t.early = true
			continue
		}
		t.entry.rank = p.core.fees.rank(t.entry)
		t.err = p.core.checkPrice(t.entry, true)
	}
}

// authenticate is the second stage of admission. It recovers the sender, which is by far the most
// expensive of the pool's own checks.
//
// Recovering the signers of authorizations, and the host's own check, can be just
// as expensive. Before these two, authenticate therefore checks whether the pool
// would admit the transaction at all, so that an attacker must pay as much for them
// as for an admission.
func (p *Pool) authenticate(t *candidate) (err error) {
	if t.from, err = p.cfg.sender(p.signer, t.tx); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidSender, err)
	}
	check, authorizes := p.rulesFor(t).Precheck, t.tx.Type() == types.SetCodeTxType
	if !authorizes && check == nil {
		return nil
	}
	if t.origin == nil {
		if err := p.previewAdmission(t); err != nil {
			return err
		}
	}
	if authorizes {
		all := p.cfg.authorities(t.tx)
		t.entry.authorized = &all
	}
	if check != nil {
		return check(t.tx)
	}
	return nil
}

// previewAdmission returns an error if the pool would refuse the candidate now.
// authenticate calls it before the expensive recovery of authorizations and before
// Precheck, so that only a transaction that would be admitted causes this cost. It
// changes no transactions in the pool.
func (p *Pool) previewAdmission(t *candidate) (err error) {
	one := [1]candidate{{from: t.from}}
	p.readUnknown(one[:])
	if one[0].err != nil {
		return one[0].err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one[0].read == p.core.generation && p.core.accounts[t.from] == nil {
		p.core.cache.Add(t.from, one[0].known)
	}
	return p.core.previewPlan(t)
}

// previewPlan makes the decision about a candidate without carrying it out. If the
// pool does not know the sender's account, previewPlan returns nil, because the
// decision is made again at admission in any case.
func (c *core) previewPlan(t *candidate) error {
	a := c.accounts[t.from]
	if a == nil {
		known, there := c.cache.Get(t.from)
		if !there {
			return nil
		}
		a = newAccount(t.from, known)
	}
	if a.stale {
		return nil
	}
	_, err := c.decide(a, t.entry)
	return err
}

// checkNew refuses a transaction that the pool already has, or that left the pool a short time ago
// because it failed or was replaced.
func (c *core) checkNew(e *entry) error {
	hash := e.hash()
	if c.all[hash] != nil {
		return ErrAlreadyKnown
	}
	if e.exempt {
		return nil
	}
	if c.aside.txs[hash] != nil {
		return ErrAlreadyKnown
	}
	_, wait := c.failed.find(hash, e.at)
	if wait > 0 {
		return fmt.Errorf("%w: %s, try again in %v", ErrQuarantined, hash, wait)
	}
	_, wait = c.replaced.find(hash, e.at)
	if wait > 0 {
		return fmt.Errorf("%w: %s, try again in %v", ErrReplaced, hash, wait)
	}
	return nil
}

// admitAll takes examined candidates through the last two stages, decide and apply.
func (p *Pool) admitAll(batch []candidate) {
	for len(batch) > 0 {
		if batch[0].early { // its turn: examine again
			batch[0].early, batch[0].err = false, nil
			p.examine(batch[:1], batch[0].entry.at)
		}
		p.lockCore()
		done := p.core.admitSome(batch)
		p.mu.Unlock()
		batch = batch[done:]
		if len(batch) > 0 {
			p.readUnknown(batch[:min(batchSize, len(batch))])
		}
	}
}

// readUnknown reads from the host's state the accounts of those candidates whose senders the pool
// does not know. It reads without the pool's lock, because the host's state may be slow.
func (p *Pool) readUnknown(batch []candidate) {
	p.mu.Lock()
	for i := range batch {
		t := &batch[i]
		t.read = 0
		if t.err == nil && !t.early && p.core.needs(t.from) {
			t.read = p.core.generation
		}
	}
	p.mu.Unlock()
	for i := range batch {
		t := &batch[i]
		if t.read > 0 {
			t.known, t.err = p.readAccount(t.from)
		}
	}
}

// needs reports whether the account of a sender must be read first.
func (c *core) needs(sender common.Address) bool {
	a := c.accounts[sender]
	if a != nil {
		return a.stale
	}
	return !c.cache.Contains(sender)
}

// admitSome admits candidates in order, and returns how many of them it has
// finished. It stops at a candidate in these cases:
//
//   - The account of the sender must be read first.
//   - The candidate must be examined again, because the pool had the transaction at
//     the first examination but has lost it since.
func (c *core) admitSome(batch []candidate) int {
	for i := range batch {
		t := &batch[i]
		if t.early {
			t.err = c.checkNew(t.entry)
			if t.err == nil {
				return i
			}
			t.early = false
		}
		if t.err == nil && c.admitOne(t) {
			return i
		}
	}
	return len(batch)
}

// admitOne takes a candidate through the last two stages of admission. If the sender's account must
// be read first, admitOne returns true and changes nothing.
func (c *core) admitOne(t *candidate) (need bool) {
	t.err = c.checkNew(t.entry)
	if t.err != nil {
		return false
	}
	a := c.accounts[t.from]
	read := t.read == c.generation // and not before the newest head
	if a != nil && a.stale {
		if !read {
			return true
		}
		c.refreshAccount(a, t.known)
		a = c.accounts[t.from]
	}
	if a == nil {
		known := t.known
		if !read {
			var cached bool
			known, cached = c.cache.Get(t.from)
			if !cached {
				return true
			}
		}
		a = c.openAccount(t.from, known)
	}
	plan, err := c.decide(a, t.entry)
	if err != nil {
		t.err = err
		c.cacheAccount(a)
		c.closeAccount(a)
		return false
	}
	c.applyPlan(plan)
	c.restoreCaps()
	return false
}

// share is how many transactions one goroutine examines at a time. This is small enough that all
// processors finish at about the same time, and large enough that distributing the work costs
// little.
const share = 16

// examineAll examines a batch of candidates on all processors, because most of the time
// goes into recovering signatures. If the first candidates show that the senders are
// already known, it uses only one processor, which is then faster.
func (p *Pool) examineAll(batch []candidate, now int64) {
	// slow is the time per transaction above which examineAll assumes that
	// signatures are recovered. Recovering a signature takes about ten times as
	// long as slow, and all other work about a tenth of it.
	const slow = 3 * time.Microsecond
	shares := (len(batch) + share - 1) / share
	switch shares {
	case 0:
	case 1: // most batches are one transaction
		p.examine(batch, now)
	default:
		forEach(shares, p.recoverers, share*slow, func(k int) {
			p.examine(batch[k*share:min((k+1)*share, len(batch))], now)
		})
	}
}
