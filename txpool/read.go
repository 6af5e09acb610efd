package txpool

import (
	"iter"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
)

// Held returns the transactions that the pool holds aside until they can be
// admitted (see StatusHeld), sorted by hash. Each comes with the error that
// prevents its admission now.
func (p *Pool) Held() []Displaced {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := make([]Displaced, 0, len(p.core.aside.txs))
	for _, o := range p.core.aside.txs {
		held = append(held, Displaced{Tx: o.tx, Err: o.err, Held: true})
	}
	slices.SortFunc(held, func(a, b Displaced) int { return a.Tx.Hash().Cmp(b.Tx.Hash()) })
	return held
}

// Get returns the transaction with a hash, or nil if the pool does not have it.
func (p *Pool) Get(hash common.Hash) *types.Transaction {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.core.all[hash]
	if e != nil {
		return e.tx
	}
	return nil
}

// Size returns the number of transactions in the pool.
func (p *Pool) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.core.all)
}

// NextNonce returns the nonce for the next transaction of a sender: the first nonce
// after its pending and parked transactions. It returns false if the pool has no
// transactions of the sender. The caller then uses the nonce in the host's state.
func (p *Pool) NextNonce(sender common.Address) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.core.accounts[sender]
	if a == nil {
		return 0, false
	}
	return a.next(), true
}

// Snapshot is the set of transactions that could run at one moment, without locked
// and private ones. It can be read without the pool's lock, and is safe for
// concurrent use.
type Snapshot struct {
	index *btree.BTreeG[ranked]
	score func(Candidate) int64
	base  uint64 // base fee, wei per gas
}

// Snapshot returns the transactions that can run now, without locked and private
// ones. It takes constant time, so that readers do not slow down the pool.
func (p *Pool) Snapshot() *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Snapshot{p.core.ready.Clone(), p.cfg.Score, p.core.fees.base}
}

// All yields the transactions in the order in which a session would take them: the best first, and
// those of each sender in the order of their nonces.
func (s *Snapshot) All() iter.Seq[*types.Transaction] {
	return func(yield func(*types.Transaction) bool) {
		for e := range s.yieldInOrder {
			if !e.private && !yield(e.tx) {
				return
			}
		}
	}
}

// Status is the position of a transaction in the pool.
type Status uint8

const (
	// StatusUnknown means that the transaction is not in the pool: see
	// Pool.Departure.
	StatusUnknown Status = iota
	// StatusPending means that the transaction can run.
	StatusPending
	// StatusQueued means that the transaction is behind a nonce gap.
	StatusQueued
	// StatusParked means that the transaction cannot run at the moment, because it, or one before
	// it in the sender's chain, does not pay the floor or the base fee, or exceeds the sender's
	// balance.
	StatusParked
	// StatusLocked means that a session has taken the transaction for the block that it is
	// building.
	StatusLocked
	// StatusHeld means that the pool holds the transaction aside. It was accepted before, came back
	// from a failed block or at a restart, and cannot be admitted now: the host cannot read the
	// account, or a check refuses the transaction. The pool tries again at each Reset and
	// CleanupExpired, and drops the transaction when its lifetime is over.
	StatusHeld
)

// String returns the status in lower case.
func (s Status) String() string {
	return [...]string{"unknown", "pending", "queued", "parked", "locked", "held"}[min(s, StatusHeld)]
}

// Status returns the status of a transaction.
func (p *Pool) Status(hash common.Hash) Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.core.all[hash]
	switch {
	case e == nil && p.core.aside.txs[hash] != nil:
		return StatusHeld
	case e == nil:
		return StatusUnknown
	case e.locked:
		return StatusLocked
	}
	return [...]Status{queued: StatusQueued, parked: StatusParked, ready: StatusPending}[e.status]
}

// ContentFrom returns the transactions of a sender in nonce order, without private
// ones. pending contains those that can run or are locked, and queued contains all
// others, as in geth's txpool_contentFrom.
func (p *Pool) ContentFrom(sender common.Address) (pending, queued []*types.Transaction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.core.accounts[sender]
	if a != nil {
		return a.content()
	}
	return nil, nil
}

func (a *account) content() (pending, queued []*types.Transaction) {
	for _, e := range a.txs {
		switch {
		case e.private:
		case e.counts() == ready:
			pending = append(pending, e.tx)
		default:
			queued = append(queued, e.tx)
		}
	}
	return pending, queued
}

// Content returns the transactions of all senders, without private ones. For each
// sender, pending and queued have the same meaning as in ContentFrom.
func (p *Pool) Content() (pending, queued map[common.Address][]*types.Transaction) {
	pending = make(map[common.Address][]*types.Transaction)
	queued = make(map[common.Address][]*types.Transaction)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.core.list {
		runs, others := a.content()
		if len(runs) > 0 {
			pending[a.address] = runs
		}
		if len(others) > 0 {
			queued[a.address] = others
		}
	}
	return pending, queued
}

// Stats is a summary of a pool.
type Stats struct {
	// Pending is the number of transactions that can run, including locked ones. Parked is the
	// number of those that do not pay enough. Queued is the number of those behind nonce gaps.
	Pending, Parked, Queued int
	// PendingBytes, ParkedBytes and QueuedBytes are the approximate memory of
	// these transactions, in bytes.
	PendingBytes, ParkedBytes, QueuedBytes uint64
	// Exempt is the number of transactions that came back, for example from a
	// failed block, so that the caps do not apply to them. They are included in the
	// numbers above.
	Exempt int
	// Locked is the number of transactions that a session has taken. Senders is the number of
	// accounts that have transactions in the pool.
	Locked, Senders int
	// Floor is the lowest price at which a transaction is pending, and BaseFee is
	// the base fee of the next block. Both are in wei per gas.
	Floor, BaseFee uint64
	// Surge is the factor by which the price for newcomers exceeds the floor, in per mille. 1000
	// means that they pay only the floor.
	Surge uint64
	// Watermark is the lowest price, in wei per gas, at which the pool would now
	// admit a transaction of 21,000 gas with the sender's next nonce. It is the
	// floor with surge or the base fee, whichever is higher.
	//
	// If the pool is full, the newcomer must also pay more than the worst
	// transaction, even after the base fee has risen by an eighth. Watermark is
	// 2^64-1 if no transaction can be displaced.
	Watermark uint64
}

// Size returns the number of all transactions, locked ones included.
func (s Stats) Size() int { return s.Pending + s.Parked + s.Queued }

// Stats returns a summary of the pool. It takes the same time for any number of
// transactions, except that it must skip exempt transactions if the pool is full.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.core
	pending := c.uses[ready]
	pending.add(c.uses[building])
	s := Stats{
		Exempt:  c.exempt.count,
		Pending: pending.count, Parked: c.uses[parked].count, Queued: c.uses[queued].count,
		PendingBytes: pending.bytes, ParkedBytes: c.uses[parked].bytes, QueuedBytes: c.uses[queued].bytes,
		Locked: c.uses[building].count, Senders: len(c.list),
		Floor: c.fees.floor, BaseFee: c.fees.base, Surge: c.fees.surge(), Watermark: max(c.fees.least(), c.fees.base),
	}
	if !c.space(nil, &entry{memory: legacyTxMemory}, ready).fits(usage{}) {
		price := uint64(math.MaxUint64)
		worst := c.findWorst(c.ready)
		if worst != nil {
			price = addSaturating(c.fees.next(), tipOf(worst.lead.rank)+1)
		}
		s.Watermark = max(s.Watermark, price)
	}
	return s
}

// Departure returns when and why a transaction has left the pool. It returns false
// if the pool does not remember the transaction. A transaction that is in the pool
// or was included in a block has no departure.
//
// The pool remembers the newest 65,536 departures for a day. If the host restores
// the pool after a restart, the departures survive the restart too.
func (p *Pool) Departure(hash common.Hash) (Departure, bool) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.core.aside.txs[hash] != nil { // one in the pool has no departure: see core.storeEntry
		return Departure{}, false
	}
	d, left := p.core.departures.find(hash, now)
	return d, left > 0
}
