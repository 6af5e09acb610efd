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
	// origin is nil for a new transaction. It is set if the transaction comes back, for
	// example from a failed block.
	origin *past

	entry *entry // set by the first stage
	from  common.Address
	known Account // account of from in the host's state
	read  uint64  // generation in which known was read; 0 if it was not read
	early bool    // err may become outdated, so it is checked again: see admitSome
	err   error
}

// examine takes candidates through the two stages of admission that need no lock.
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

// rulesFor returns more lenient rules if the pool has accepted the transaction before.
func (p *Pool) rulesFor(t *candidate) *Config {
	if t.origin == nil {
		return &p.cfg
	}
	return &p.lenient
}

// refuseEarly refuses candidates that the pool already has or that pay too little.
func (p *Pool) refuseEarly(batch []candidate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range batch {
		t := &batch[i]
		if t.err != nil || t.origin != nil {
			continue
		}
		// Refuse known and underpriced transactions before their signatures are
		// recovered, because recovering a signature is much more expensive than these
		// checks.
		t.err = p.core.checkNew(t.entry)
		if t.err != nil {
			t.early = true
			continue
		}
		t.entry.rank = p.core.fees.rank(t.entry)
		t.err = p.core.checkPrice(t.entry, true)
	}
}

// authenticate recovers the sender and makes the host's own check (Precheck).
func (p *Pool) authenticate(t *candidate) (err error) {
	if t.from, err = p.cfg.sender(p.signer, t.tx); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidSender, err)
	}
	check, authorizes := p.rulesFor(t).Precheck, t.tx.Type() == types.SetCodeTxType
	if !authorizes && check == nil {
		return nil
	}
	// Recovering the signers of authorizations, and Precheck, can be as expensive as
	// recovering the sender. Check first whether the pool would admit the transaction,
	// so that an attacker pays as much for this work as for an admission.
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
func (p *Pool) previewAdmission(t *candidate) (err error) {
	one := [1]candidate{{from: t.from}}
	p.readUnknown(one[:])
	if one[0].err != nil {
		return one[0].err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one[0].read == p.core.generation && p.core.accounts[t.from] == nil {
		// The host has just returned this account. Cache it, because the preview and the
		// admission both need it.
		p.core.cache.Add(t.from, one[0].known)
	}
	return p.core.previewPlan(t)
}

// previewPlan makes the decision about a candidate without carrying it out.
func (c *core) previewPlan(t *candidate) error {
	a := c.accounts[t.from]
	if a == nil {
		known, there := c.cache.Get(t.from)
		if !there {
			// The account is not known yet, so the transaction cannot be judged. The admission
			// reads the account first.
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

// checkNew refuses a transaction that the pool has, or that left it recently.
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
	// A transaction that failed in a block would fail again, so it is refused for
	// Config.QuarantineTime. A transaction that was replaced is refused for the same time.
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

// readUnknown reads the accounts of senders that the pool does not know.
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
	// Read without the pool's lock, because the host's State may be slow.
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

// admitSome admits candidates in order, and returns how many it has finished.
func (c *core) admitSome(batch []candidate) int {
	for i := range batch {
		t := &batch[i]
		// When this transaction was examined, the pool already had it, so its signature was not
		// recovered. If the pool has lost it since, the caller must examine it again.
		if t.early {
			t.err = c.checkNew(t.entry)
			if t.err == nil {
				return i
			}
			t.early = false
		}
		// Stop also at a candidate whose sender's account must be read first.
		if t.err == nil && c.admitOne(t) {
			return i
		}
	}
	return len(batch)
}

// admitOne decides about a candidate, or returns true if an account is needed first.
func (c *core) admitOne(t *candidate) (need bool) {
	t.err = c.checkNew(t.entry)
	if t.err != nil {
		return false
	}
	a := c.accounts[t.from]
	read := t.read == c.generation // not before the newest change of the chain
	if a != nil && a.stale {
		if !read {
			// The account could not be read, or the chain has moved since. The caller reads the
			// account again and then repeats this call.
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

// examineAll examines a batch of candidates, on all processors if that is faster.
func (p *Pool) examineAll(batch []candidate, now int64) {
	// slow tells the two costs of examining a transaction apart: recovering a signature takes
	// about ten times as long, and everything else about a tenth. If a transaction takes
	// longer than slow, signatures are being recovered, and more processors help.
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
