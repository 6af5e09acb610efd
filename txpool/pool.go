package txpool

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Pool is a transaction pool. It is safe for concurrent use. Pool starts at
// most one background goroutine. It delivers queued events to Config.Observe
// and to subscriptions when they are produced faster than the calling
// goroutines can deliver them, and exits when the queue is empty.
type Pool struct {
	cfg        Config
	lenient    Config // for transactions that come back
	state      State
	signer     types.Signer
	recoveries chan struct{} // one token per concurrent recovery

	// long is held by calls that work in slices (drains, commits, releases,
	// resets and sweeps), so that they exclude one another.
	long sync.Mutex

	mu      sync.Mutex   // held for one slice at most
	waiting atomic.Int32 // goroutines waiting for mu
	core    *core
	leases  map[uint64]*Lease
	lastID  uint64
	// generation counts the heads. Accounts that were read before the newest
	// head are outdated.
	generation uint64
	poisoned   [][]byte // records that Restore cannot read
	frozen     *view    // readers' view during sliced calls

	out outbox
}

// slice is the number of transactions or accounts that are processed before
// other goroutines can take the lock.
const slice = 128

// New returns an empty pool. The error wraps [ErrInvalidConfig].
func New(cfg Config, state State) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, fmt.Errorf("%w: State must be given", ErrInvalidConfig)
	}
	p := &Pool{cfg: cfg.withDefaults(), state: state, signer: types.NewPragueSigner(cfg.ChainID), leases: make(map[uint64]*Lease)}
	if p.cfg.MaxRecoveries == 0 {
		p.cfg.MaxRecoveries = runtime.GOMAXPROCS(0)
	}
	p.lenient = p.cfg.lenient()
	p.recoveries = make(chan struct{}, p.cfg.MaxRecoveries)
	p.core = newCore(&p.cfg)
	p.core.listening = p.listens()
	return p, nil
}

// Add admits a transaction. A nil error means that the pool has stored it; its
// later fate is reported by events. Errors wrap one of this package's errors or
// are those of Config.Precheck. A refused transaction changes nothing.
func (p *Pool) Add(tx *types.Transaction) error { return p.add(tx, false) }

// AddPrivate is Add for a transaction that must stay secret until it is in a
// block. It is drained and priced like any other, but Pending, Snapshot,
// Content and ordinary subscriptions do not show it.
func (p *Pool) AddPrivate(tx *types.Transaction) error { return p.add(tx, true) }

func (p *Pool) add(tx *types.Transaction, private bool) error {
	began := p.cfg.Now()
	one := [1]candidate{{tx: tx}}
	p.examine(one[:], began)
	c := &one[0]
	if c.err == nil {
		c.entry.private = private
		c.err = p.admit(c.entry, c.from)
	}
	p.measure(began, c.err)
	return c.err
}

// AddRaw is Add for the binary encoding of a transaction (EIP-2718). It returns
// the transaction's hash if it was admitted.
func (p *Pool) AddRaw(raw []byte) (common.Hash, error) {
	began := p.cfg.Now()
	tx, err := p.decode(raw)
	if err != nil {
		p.measure(began, err)
		return common.Hash{}, err
	}
	if err := p.add(tx, false); err != nil {
		return common.Hash{}, err
	}
	return tx.Hash(), nil
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

// examine makes the checks that need no account, cheap ones first (invariant
// I8). It skips candidates that already have an error.
func (p *Pool) examine(batch []candidate, now time.Time) {
	for i := range batch {
		c := &batch[i]
		if c.err != nil {
			continue
		}
		cfg := &p.cfg
		if c.back {
			cfg = &p.lenient
		}
		if c.entry, c.err = cfg.inspect(c.tx); c.err == nil {
			c.entry.exempt = c.back
			c.entry.at = now.UnixNano()
			c.entry.prefix = hashPrefix(c.tx.Hash())
		}
	}
	p.lock()
	for i := range batch {
		if c := &batch[i]; c.err == nil && !c.back {
			if c.err = p.core.checkNew(c.entry); c.err != nil {
				c.early = true
				continue
			}
			c.entry.rank = p.core.fees.rank(c.entry)
			c.err = p.core.checkPrice(c.entry, true)
		}
	}
	p.mu.Unlock()
	p.recoveries <- struct{}{}
	defer func() { <-p.recoveries }() // even if a hook panics
	for i := range batch {
		if c := &batch[i]; c.err == nil {
			c.from, c.err = p.cfg.authenticate(p.signer, c.entry)
		}
		if c := &batch[i]; c.err == nil && c.tx.Type() == types.SetCodeTxType {
			if !c.back {
				c.err = p.preview(c.entry, c.from)
			}
			if c.err == nil {
				c.entry.rare = &rare{authorities: p.cfg.authorities(c.tx)}
			}
		}
	}
}

// preview makes checks of the admission early for a transaction with
// authorizations, because recovering each of their signatures costs as much as
// recovering the sender.
func (p *Pool) preview(e *entry, from common.Address) (err error) {
	p.lock()
	known := p.core.accounts.get(from) != nil || p.core.cache.has(from)
	generation := p.generation
	p.mu.Unlock()
	var account Account
	if !known {
		if account, err = p.account(from); err != nil {
			return err
		}
	}
	p.lock()
	defer p.mu.Unlock()
	if !known && generation == p.generation && p.core.accounts.get(from) == nil {
		p.core.cache.put(from, account)
	}
	return p.core.preview(e, from)
}

// preview is checkOwn for a sender that the pool knows. It accepts other
// senders, which admission checks.
func (c *core) preview(e *entry, from common.Address) error {
	a := c.accounts.get(from)
	if a == nil {
		known, there := c.cache.get(from)
		if !there {
			return nil
		}
		a = newAccount(from, known)
	}
	if a.stale {
		return nil
	}
	_, _, err := c.checkOwn(a, e)
	return err
}

// Prepared is a transaction whose sender is known and that has passed all
// checks that do not need the account: see Pool.Prepare.
type Prepared struct {
	entry *entry
	from  common.Address
}

// Sender returns the sender of the transaction.
func (t *Prepared) Sender() common.Address { return t.from }

// Prepare does the part of Add that does not need the pool's lock, such as the
// recovery of the sender. It is for hosts that do so in their own workers.
// Errors are those of Add.
func (p *Pool) Prepare(tx *types.Transaction) (Prepared, error) {
	one := [1]candidate{{tx: tx}}
	p.examine(one[:], p.cfg.Now())
	if err := one[0].err; err != nil {
		p.cfg.Metrics.count(CountRejected, label(err))
		return Prepared{}, err
	}
	return Prepared{one[0].entry, one[0].from}, nil
}

// AddPrepared does the rest of Add. The transaction must have been prepared by
// the same pool, and can be added once. Errors are those of Add.
func (p *Pool) AddPrepared(t Prepared) error {
	if t.entry == nil || t.entry.account != nil {
		return fmt.Errorf("%w: not prepared, or added before", ErrMalformed)
	}
	err := p.admit(t.entry, t.from)
	if err != nil {
		p.cfg.Metrics.count(CountRejected, label(err))
	}
	return err
}

// admit stores a transaction. If the pool does not know the sender, it reads
// the account outside the lock.
func (p *Pool) admit(e *entry, from common.Address) error {
	var account Account
	var known *Account
	var read uint64
	if err := p.retryJournal(); err != nil {
		return err
	}
	for {
		p.lock()
		if known != nil && read != p.generation {
			known = nil // the chain has changed
		}
		need, err := p.core.add(e, from, known)
		read = p.generation
		told := p.unlock()
		if !need {
			if told {
				err = p.secure(e, err)
				p.deliverSome(deliverShare)
			}
			return err
		}
		if account, err = p.account(from); err != nil {
			return err
		}
		known = &account
	}
}

// account reads an account from the host's state.
func (p *Pool) account(address common.Address) (Account, error) {
	account, err := p.state.Account(address)
	if err != nil {
		return Account{}, fmt.Errorf("%w: %v: %w", ErrState, address, err)
	}
	return account, nil
}

// measure reports the result of an Add to the metrics.
func (p *Pool) measure(began time.Time, err error) {
	if !p.cfg.Metrics.enabled() {
		return
	}
	if err != nil {
		p.cfg.Metrics.count(CountRejected, label(err))
		return
	}
	p.cfg.Metrics.observe(AdmitSeconds, p.cfg.Now().Sub(began).Seconds())
}

// Remove drops a transaction. Errors wrap ErrNotFound, or ErrInBundle if the
// transaction is in an open lease.
func (p *Pool) Remove(hash common.Hash) error {
	return p.change(func(c *core) error {
		e := c.all.get(hash)
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, hash)
		}
		if e.lease != nil {
			return fmt.Errorf("%w: %s", ErrInBundle, hash)
		}
		c.dropEntry(e, Dropped, ErrRemoved)
		return nil
	})
}

// Reject drops a transaction that failed while a block was built, even from an
// open lease, and refuses it for Config.QuarantineTime (invariant I14). reason
// becomes Event.Reason. The error wraps ErrNotFound.
func (p *Pool) Reject(hash common.Hash, reason error) error {
	now := p.cfg.Now().UnixNano()
	return p.change(func(c *core) error {
		e := c.all.get(hash)
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, hash)
		}
		c.reject(e, reason, now)
		return nil
	})
}

// reject drops a transaction and quarantines it.
func (c *core) reject(e *entry, reason error, now int64) {
	c.seq++ // invalidates checkNew's result
	c.failed.bury(e.prefix, now, c.cfg.QuarantineTime)
	c.dropEntry(e, Dropped, reason)
}

// change calls f under the lock, restores the caps, and delivers the events.
func (p *Pool) change(f func(*core) error) error {
	err := p.step(f)
	p.deliverAll()
	return err
}

// step is change for a caller that holds p.long. It records the events and
// leaves their delivery to the caller, so that an observer may call any method.
func (p *Pool) step(f func(*core) error) error {
	err, more := p.hold(f)
	for more {
		p.pause()
		_, more = p.hold(func(*core) error { return nil })
	}
	return err
}

// hold calls f under the lock and does a part of the work that follows from it.
// It reports whether more work remains.
func (p *Pool) hold(f func(*core) error) (err error, more bool) {
	told := false
	defer func() {
		if told {
			_ = p.writeDown() // the next Add returns the error
		}
	}()
	p.lock()
	defer p.mu.Unlock()
	err = f(p.core)
	more = p.core.settleRooms(slice)
	told = len(p.core.events) > 0
	return err, more
}

// begin starts a call that works in slices. The caller must call end when it is
// done.
func (p *Pool) begin() (end func()) {
	p.long.Lock()
	return func() {
		p.long.Unlock()
		p.deliverAll()
	}
}

// lock takes the pool's lock and lets the holder see that a goroutine waits for
// it.
func (p *Pool) lock() {
	if !p.mu.TryLock() {
		p.waiting.Add(1)
		p.mu.Lock()
		p.waiting.Add(-1)
	}
}

// pause, called between two slices, lets a goroutine that waits for the lock
// take it now.
func (p *Pool) pause() {
	if p.waiting.Load() > 0 {
		runtime.Gosched()
	}
}

// unlock releases the lock and reports whether there are events to deliver.
func (p *Pool) unlock() bool {
	told := len(p.core.events) > 0
	p.mu.Unlock()
	return told
}
