package txpool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Lease is the set of transactions that a builder has taken for a bundle. They
// stay in the pool until the bundle is enqueued, and count only towards
// Config.MaxPerSender. They cannot be replaced or evicted and do not expire. The
// host must commit or release each lease. The methods of a Lease are safe for
// concurrent use.
type Lease struct {
	pool    *Pool
	id      uint64
	renewed int64    // by the pool's clock
	txs     []*entry // members have entry.lease set to it
	session *Session // nil if it takes no more transactions
	sealed  bool     // the journal has it
	bundled bool     // Commit was called, so the journal may have its record
	skipped []skipped
}

// renew makes the lease live for Config.LeaseLifetime from now on.
func (l *Lease) renew(now int64) { l.renewed = now }

// expired reports whether the lease has not been renewed for Config.LeaseLifetime. It
// compares a difference, because the sum of both could exceed an int64.
func (l *Lease) expired(now int64) bool {
	return now-l.renewed >= int64(l.pool.cfg.LeaseLifetime)
}

// ID returns the number of the lease. A host can store it with its bundle to
// find the lease after a restart: see Pool.Lease.
func (l *Lease) ID() uint64 { return l.id }

// Expires returns the time after which the pool releases the lease.
func (l *Lease) Expires() time.Time {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.pool.time(l.renewed).Add(l.pool.cfg.LeaseLifetime)
}

// Renew makes the lease live for Config.LeaseLifetime from now on. The error
// wraps ErrLeaseClosed.
func (l *Lease) Renew() error {
	return l.pool.step(func(c *core) error {
		err := l.checkOpen()
		if err == nil {
			l.renew(c.now)
		}
		return err
	})
}

// checkOpen returns an error if the lease is closed. The caller holds the pool's
// lock.
func (l *Lease) checkOpen() error {
	if l.pool.leases[l.id] != l {
		return fmt.Errorf("%w: lease %d", ErrLeaseClosed, l.id)
	}
	return nil
}

// Transactions returns the transactions in the lease, in the order in which
// they should run.
func (l *Lease) Transactions() []*types.Transaction {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	txs := make([]*types.Transaction, 0, len(l.txs))
	for e := range l.members {
		txs = append(txs, e.tx)
	}
	return txs
}

// holds reports whether an entry is still in the lease.
func (l *Lease) holds(e *entry) bool { return e.lease == l && !e.gone }

// members yields the entries in the lease. The caller holds the pool's lock.
func (l *Lease) members(yield func(*entry) bool) {
	for _, e := range l.txs {
		if l.holds(e) && !yield(e) {
			return
		}
	}
}

// Skipped returns the transactions that the session passed over, in
// the order in which it visited them, at most 4,096.
func (l *Lease) Skipped() []Skip {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	seen := make(map[*entry]bool) // a session can pass over one twice
	var all []Skip
	for _, skip := range l.skipped {
		if !seen[skip.entry] {
			seen[skip.entry] = true
			all = append(all, Skip{skip.entry.tx, skip.reason})
		}
	}
	return all
}

// skipped is a Skip before its transaction is read.
type skipped struct {
	entry  *entry
	reason SkipReason
}

// Reject drops a transaction from the lease and the pool because it failed
// while the block was built, and refuses it for Config.QuarantineTime. reason
// becomes Event.Reason; nil means ErrQuarantined. Later transactions of the same
// sender cannot run in this block; give them back with Return. Errors wrap
// ErrLeaseClosed or ErrNotLeased.
func (l *Lease) Reject(hash common.Hash, reason error) error {
	now := l.pool.clock()
	return l.pass(hash, func(c *core, e *entry) { c.reject(e, reason, now) })
}

// Return gives one transaction of the lease back to the pool, for example
// because it did not fit. The caps apply to it as before. If the lease's session
// still runs, it takes no other transaction of the sender. Errors wrap
// ErrLeaseClosed or ErrNotLeased, and change nothing, or ErrJournal: then the
// transaction has left the lease, and the journal does not have that. The host
// enqueues the bundle when Flush has returned nil, because Restore would otherwise
// open the lease with the transaction.
func (l *Lease) Return(hash common.Hash) error {
	return l.pass(hash, func(c *core, e *entry) {
		if l.session != nil {
			l.session.putAside(e, SkipLater)
		}
		if l.sealed || l.bundled { // else the journal does not know the lease
			c.note(encode(recordReturned, l.id, hash))
		}
		c.apply(c.decideReturn(e, false))
	})
}

// pass calls then with one transaction of an open lease. It does not run between
// the record of a commit and the commit, which would then differ.
func (l *Lease) pass(hash common.Hash, then func(*core, *entry)) error {
	defer l.pool.begin()()
	known := false // to the journal
	err := l.pool.step(func(c *core) error {
		if err := l.checkOpen(); err != nil {
			return err
		}
		e := c.all[hash]
		if e == nil || e.lease != l {
			return fmt.Errorf("%w: %s, lease %d", ErrNotLeased, hash, l.id)
		}
		known = l.sealed || l.bundled
		then(c, e)
		return nil
	})
	if err == nil && known {
		err = l.pool.retryJournal()
	}
	return err
}

// Commit removes the lease's transactions from the pool, because they are in an
// enqueued bundle. The sender's next nonce is then the one after them, even
// before the host's state shows it. If the bundle fails later, pass its block
// in Head.Reverted.
//
// The journal gets the commit in one record before the pool changes, and
// another record when the commit is complete. If the process ends before the
// journal has both, Restore opens the lease again, and the host decides by its
// own queue. If the journal accepts the first record and refuses the second,
// Commit returns nil, and the pool offers the second one again.
//
// Commit ends the session of the lease, if it still runs. Errors wrap
// ErrLeaseClosed if the lease is closed, or ErrJournal. They change nothing else.
// After ErrJournal the lease stays open and does not expire any more, because its
// transactions may be in a bundle. The host commits it again, or releases it if
// there is no bundle.
func (l *Lease) Commit() error {
	p := l.pool
	defer p.begin()()
	l.endSession()
	if p.cfg.Journal != nil {
		if err := p.writeDown(l.beginCommit()...); err != nil {
			return journalError(err)
		}
	}
	now := p.clock()
	return l.closeLocked(recordCommitted, func(c *core, e *entry) {
		c.recorded = p.cfg.Journal != nil
		c.commit(e, now)
		c.recorded = false
	})
}

// beginCommit returns the record of the commit of an open lease. From now on the
// journal may have it.
func (l *Lease) beginCommit() (records [][]byte) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.pool.leases[l.id] != l {
		return nil
	}
	l.bundled = true
	return [][]byte{l.committingRecord()}
}

// Release gives all transactions of the lease back. They are then exempt from
// the caps. If blocks are reverted too, call Reset first, because Release drops
// a transaction whose nonce counts as used. If the lease is already closed,
// Release returns an error that wraps ErrLeaseClosed and changes nothing.
func (l *Lease) Release() error {
	defer l.pool.begin()()
	return l.closeLocked(recordReleased, giveBack(true))
}

// giveBack returns a function that gives transactions back to the pool. If they
// were in a bundle, or newcomers have taken their room, they are exempt from the
// caps.
func giveBack(bundled bool) func(*core, *entry) {
	return func(c *core, e *entry) { c.apply(c.decideReturn(e, bundled || !c.fits(e))) }
}

// closeLocked closes the lease, with a record of the given kind, and calls each with
// its transactions, in order. The caller holds p.turn.
func (l *Lease) closeLocked(record byte, each func(*core, *entry)) error {
	p := l.pool
	l.endSession()
	return p.step(func(c *core) error {
		if err := l.checkOpen(); err != nil {
			return err
		}
		delete(p.leases, l.id)
		c.note(encode(record, l.id))
		for e := range l.members {
			each(c, e)
		}
		return nil
	})
}

// endSession makes the lease's session take no more transactions, if there is
// one. A closed lease must not grow, because nothing would give its
// transactions back. The caller holds p.turn.
func (l *Lease) endSession() {
	_ = l.pool.step(func(c *core) error {
		if s := l.session; s != nil {
			s.answer(s.limit())
			l.session = nil
			s.stop(c)
		}
		return nil
	})
}

// Lease returns the open lease with a number, or nil. After a restart a host
// uses it to find the leases that Restore has opened.
func (p *Pool) Lease(id uint64) *Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases[id]
}

// Leases returns the open leases, oldest first.
func (p *Pool) Leases() []*Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.leases), func(a, b *Lease) int { return cmp.Compare(a.id, b.id) })
}
