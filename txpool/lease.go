package txpool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Lease is a set of transactions for a bundle. They stay in the pool and count
// towards its caps until the bundle is enqueued. They cannot be replaced or
// evicted and do not expire. A lease must be committed or released. Its methods
// are safe for concurrent use.
type Lease struct {
	pool    *Pool
	id      uint64
	expires time.Time
	txs     []*entry // members have entry.lease set to it
	skipped []Skip
	sealed  bool
	opened  []common.Hash // initial transactions, for the journal
}

// openLease returns an empty lease.
func (p *Pool) openLease() *Lease {
	l := &Lease{pool: p, expires: p.cfg.Now().Add(p.cfg.LeaseLifetime)}
	p.lock()
	defer p.mu.Unlock()
	p.lastID++
	l.id = p.lastID
	return l
}

// sealLease completes a lease and makes it visible. No transaction is added
// later.
func (p *Pool) sealLease(l *Lease, skipped []Skip) {
	l.skipped, l.sealed = skipped, true
	if p.cfg.Journal != nil {
		l.opened = hashesOf(l.Transactions())
	}
	_ = p.step(func(c *core) error {
		p.leases[l.id] = l
		c.emit(Event{Kind: leaseOpened, lease: l}, nil)
		return nil
	})
	for range l.txs {
		p.cfg.Metrics.count(CountDrained, "")
	}
}

// abandon gives the transactions of an incomplete lease back, if a function of
// the host has panicked.
func (p *Pool) abandon(l *Lease) {
	if l.sealed {
		return
	}
	_ = p.step(func(c *core) error {
		for _, e := range l.txs {
			if l.holds(e) {
				c.giveBack(e)
			}
		}
		return nil
	})
}

func hashesOf(txs []*types.Transaction) []common.Hash {
	hashes := make([]common.Hash, len(txs))
	for i, tx := range txs {
		hashes[i] = tx.Hash()
	}
	return hashes
}

// ID returns the number of the lease. A host can store it with its bundle to
// find the lease after a restart: see Pool.Lease.
func (l *Lease) ID() uint64 { return l.id }

// Expires returns the time after which CleanupExpired releases the lease.
func (l *Lease) Expires() time.Time { return l.expires }

// Transactions returns the transactions in the lease, in the order in which
// they should run.
func (l *Lease) Transactions() []*types.Transaction {
	const some = 8 * slice // cheap per transaction
	txs := make([]*types.Transaction, 0, len(l.txs))
	for rest := l.txs; len(rest) > 0; {
		now := rest[:min(some, len(rest))]
		rest = rest[len(now):]
		l.pool.lock()
		for _, e := range now {
			if l.holds(e) {
				txs = append(txs, e.tx)
			}
		}
		l.pool.mu.Unlock()
	}
	return txs
}

// holds reports whether an entry is still in the lease.
func (l *Lease) holds(e *entry) bool { return e.lease == l && !e.gone }

// Skipped returns the transactions that the drain passed over, in the order in
// which it visited them, at most 4,096.
func (l *Lease) Skipped() []Skip { return slices.Clone(l.skipped) }

// Reject drops a transaction from the lease and the pool because it failed
// while the block was built, and refuses it for Config.QuarantineTime. Later
// transactions of the same sender cannot run in this block; give them back with
// Return. Errors wrap ErrLeaseClosed or ErrNotLeased.
func (l *Lease) Reject(hash common.Hash, reason error) error {
	now := l.pool.cfg.Now().UnixNano()
	return l.pass(hash, func(c *core, e *entry) { c.reject(e, reason, now) })
}

// Return gives one transaction of the lease back to the pool, for example
// because it did not fit. The transaction is then exempt from the caps. Errors
// wrap ErrLeaseClosed or ErrNotLeased.
func (l *Lease) Return(hash common.Hash) error {
	return l.pass(hash, func(c *core, e *entry) {
		c.emit(Event{Kind: leaseReturned, lease: l}, e)
		c.giveBack(e)
	})
}

// pass calls then with one transaction of an open lease.
func (l *Lease) pass(hash common.Hash, then func(*core, *entry)) error {
	return l.pool.change(func(c *core) error {
		if l.pool.leases[l.id] != l {
			return fmt.Errorf("%w: lease %d", ErrLeaseClosed, l.id)
		}
		e := c.all.get(hash)
		if e == nil || e.lease != l {
			return fmt.Errorf("%w: %s, lease %d", ErrNotLeased, hash, l.id)
		}
		then(c, e)
		return nil
	})
}

// Commit removes the lease's transactions from the pool, because they are in an
// enqueued bundle. The sender's next nonce is then the one after them, even
// before the host's state shows it. If the bundle fails later, pass its block
// in Head.Reverted. If the lease is already closed, Commit returns an error
// that wraps ErrLeaseClosed and changes nothing.
func (l *Lease) Commit() error {
	now := l.pool.cfg.Now().UnixNano()
	return l.close(leaseCommitted, func(c *core, e *entry) { c.commit(e, now) })
}

// Release gives all transactions of the lease back. They are then exempt from
// the caps. If blocks are reverted too, call Reset first, because Release drops
// a transaction whose nonce counts as used. If the lease is already closed,
// Release returns an error that wraps ErrLeaseClosed and changes nothing.
func (l *Lease) Release() error {
	return l.close(leaseReleased, func(c *core, e *entry) { c.giveBack(e) })
}

// close closes the lease after it has called each for each of its transactions,
// in slices.
func (l *Lease) close(kind Kind, each func(*core, *entry)) error {
	defer l.pool.begin()()
	return l.closeLocked(kind, each)
}

// closeLocked is close for a caller that holds p.long.
func (l *Lease) closeLocked(kind Kind, each func(*core, *entry)) error {
	p := l.pool
	p.freeze()
	defer p.thaw()
	err := p.step(func(c *core) error {
		if p.leases[l.id] != l {
			return fmt.Errorf("%w: lease %d", ErrLeaseClosed, l.id)
		}
		delete(p.leases, l.id)
		c.emit(Event{Kind: kind, lease: l}, nil) // the journal needs this first
		return nil
	})
	if err != nil {
		return err
	}
	for rest := l.txs; len(rest) > 0; {
		now := rest[:min(slice, len(rest))]
		rest = rest[len(now):]
		p.pause()
		_ = p.step(func(c *core) error {
			for _, e := range now {
				if l.holds(e) {
					each(c, e)
				}
			}
			return nil
		})
	}
	return nil
}

// Lease returns the open lease with a number, or nil. After a restart a host
// uses it to find the leases that Restore has opened.
func (p *Pool) Lease(id uint64) *Lease {
	p.lock()
	defer p.mu.Unlock()
	return p.leases[id]
}

// Leases returns the open leases, oldest first.
func (p *Pool) Leases() []*Lease {
	p.lock()
	defer p.mu.Unlock()
	leases := make([]*Lease, 0, len(p.leases))
	for _, l := range p.leases {
		leases = append(leases, l)
	}
	slices.SortFunc(leases, func(a, b *Lease) int { return cmp.Compare(a.id, b.id) })
	return leases
}
