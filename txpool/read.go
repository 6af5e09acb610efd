package txpool

import (
	"iter"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Held returns the transactions that the pool holds aside, with the reason of
// each: see StatusHeld.
func (p *Pool) Held() []Displaced {
	p.lock()
	defer p.mu.Unlock()
	held := make([]Displaced, 0, len(p.core.aside.txs))
	for _, o := range p.core.aside.txs {
		held = append(held, Displaced{Tx: o.tx, Err: o.err, Held: true})
	}
	slices.SortFunc(held, func(a, b Displaced) int { return a.Tx.Hash().Cmp(b.Tx.Hash()) })
	return held
}

// Get returns a transaction of the pool, or nil.
func (p *Pool) Get(hash common.Hash) *types.Transaction {
	p.lock()
	defer p.mu.Unlock()
	if e := p.core.all.get(hash); e != nil {
		return e.tx
	}
	return nil
}

// Size returns the number of transactions in the pool.
func (p *Pool) Size() int {
	p.lock()
	defer p.mu.Unlock()
	return p.core.all.len()
}

// NextNonce returns the nonce after the sender's transactions that are in line, and whether the pool knows the sender. For one that it
// does not know, the host's state has the answer.
func (p *Pool) NextNonce(sender common.Address) (uint64, bool) {
	p.lock()
	defer p.mu.Unlock()
	a := p.core.accounts.get(sender)
	if a == nil {
		return 0, false
	}
	return a.next(), true
}

// Snapshot is the pool's transactions that can run and are in no lease, at one moment. It holds no lock, and is safe for concurrent use.
type Snapshot struct{ view *view }

// Snapshot returns what could be drained now, without private transactions, in constant time. While a Reset, or another call that works
// in slices, is under way it is what could be drained before it.
func (p *Pool) Snapshot() *Snapshot {
	now := p.cfg.Now().UnixNano()
	p.lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		return &Snapshot{p.frozen}
	}
	return &Snapshot{p.look(now)}
}

// All yields the transactions in the order in which Drain would give them: best first, and each sender's by nonce.
func (s *Snapshot) All() iter.Seq[*types.Transaction] {
	return func(yield func(*types.Transaction) bool) {
		for e := range s.view.order() {
			if !e.private && !yield(e.tx) {
				return
			}
		}
	}
}

// Pending returns all transactions that can run and are in no lease, without private ones, in the order in which Drain would give them.
func (p *Pool) Pending() []*types.Transaction { return slices.Collect(p.Snapshot().All()) }

// PendingLimit is Pending for the first n; 0 means all.
func (p *Pool) PendingLimit(n int) []*types.Transaction {
	if n <= 0 {
		return p.Pending()
	}
	txs := make([]*types.Transaction, 0, min(n, p.Size()))
	for tx := range p.Snapshot().All() {
		if txs = append(txs, tx); len(txs) == n {
			break
		}
	}
	return txs
}

// Status says where a transaction is.
type Status uint8

const (
	// StatusUnknown: not in the pool. See Pool.Departure.
	StatusUnknown Status = iota
	// StatusPending: it can run.
	StatusPending
	// StatusQueued: behind a nonce gap.
	StatusQueued
	// StatusParked: it, or one before it, does not pay the floor or the base fee.
	StatusParked
	// StatusLeased: in an open lease.
	StatusLeased
	// StatusHeld: it was accepted, came back from a failed block or a restart,
	// and cannot be admitted now: the host cannot read the account, or a check
	// refuses it that did not before. The pool tries it again with each Reset
	// and CleanupExpired, and drops it when its lifetime is over.
	StatusHeld
)

// String returns the status in lower case.
func (s Status) String() string {
	return [...]string{"unknown", "pending", "queued", "parked", "leased", "held"}[min(s, StatusHeld)]
}

// Status returns where a transaction is.
func (p *Pool) Status(hash common.Hash) Status {
	p.lock()
	defer p.mu.Unlock()
	e := p.core.all.get(hash)
	switch {
	case e == nil && p.core.aside.txs[hash] != nil:
		return StatusHeld
	case e == nil:
		return StatusUnknown
	case e.lease != nil:
		return StatusLeased
	}
	return [...]Status{queued: StatusQueued, parked: StatusParked, ready: StatusPending}[e.status]
}

// ContentFrom returns one sender's transactions, by nonce, without private ones: pending are those that can run or are in leases, queued
// those that are held, parked ones with them.
func (p *Pool) ContentFrom(sender common.Address) (pending, queued []*types.Transaction) {
	p.lock()
	defer p.mu.Unlock()
	if a := p.core.accounts.get(sender); a != nil {
		return a.content()
	}
	return nil, nil
}

func (a *account) content() (pending, held []*types.Transaction) {
	for _, e := range a.txs {
		switch {
		case e.private:
		case e.counts() == ready:
			pending = append(pending, e.tx)
		default:
			held = append(held, e.tx)
		}
	}
	return pending, held
}

// Content is ContentFrom for all senders. It works in slices: each sender is shown as it was at one moment.
func (p *Pool) Content() (pending, queued map[common.Address][]*types.Transaction) {
	pending = make(map[common.Address][]*types.Transaction)
	queued = make(map[common.Address][]*types.Transaction)
	p.sweep(func(c *core, from, to int) func() {
		for _, a := range c.list[from:to] {
			runs, held := a.content()
			if len(runs) > 0 {
				pending[a.address] = runs
			}
			if len(held) > 0 {
				queued[a.address] = held
			}
		}
		return nil
	})
	return pending, queued
}

// Stats is a summary of the pool.
type Stats struct {
	// Pending counts the transactions that can run, those in leases with them; Parked and Queued those that are held.
	Pending, Parked, Queued int
	// PendingBytes, ParkedBytes and QueuedBytes are what they take in memory, about.
	PendingBytes, ParkedBytes, QueuedBytes uint64
	// Exempt counts the transactions that came back and that no cap evicts, and
	// ExemptBytes is what they take in memory, about. They are part of the above.
	Exempt      int
	ExemptBytes uint64
	// Leased counts the transactions in leases, Leases open leases, Senders accounts that the pool keeps something for.
	Leased, Leases, Senders int
	// Floor is the least price that runs, BaseFee what it must pay besides, both in wei per gas.
	Floor, BaseFee uint64
	// Surge is by how much newcomers pay more than the floor, in per mille: 1000 is not at all.
	Surge uint64
	// Watermark is the least price, in wei per gas, that a newcomer of 21,000 gas with the next nonce must pay to be admitted now: the
	// floor with surge, or more than the worst of a full pool, also if the base fee rises by an eighth; 2^64-1 while a pool is full of leases.
	Watermark uint64
}

// Size returns the number of all transactions.
func (s Stats) Size() int { return s.Pending + s.Parked + s.Queued }

// Stats returns a summary, in constant time.
func (p *Pool) Stats() Stats {
	p.lock()
	defer p.mu.Unlock()
	c := p.core
	exempt := sum(c.exempt)
	s := Stats{
		Exempt: exempt.count, ExemptBytes: exempt.bytes,
		Pending: c.uses[ready].count, Parked: c.uses[parked].count, Queued: c.uses[queued].count,
		PendingBytes: c.uses[ready].bytes, ParkedBytes: c.uses[parked].bytes, QueuedBytes: c.uses[queued].bytes,
		Leased: c.leased, Leases: len(p.leases), Senders: len(c.list),
		Floor: c.fees.floor, BaseFee: c.fees.base, Surge: c.fees.surge(), Watermark: max(c.fees.least(), c.fees.base),
	}
	if !c.space(nil, &entry{memory: leastTxSize}, ready).fits(usage{}) {
		price := uint64(math.MaxUint64)
		if worst := c.worst(c.ready); worst != nil {
			price = addSaturating(c.fees.next(), tipOf(worst.lead.rank)+1)
		}
		s.Watermark = max(s.Watermark, price)
	}
	return s
}

// leastTxSize is about the encoding of a plain transfer, in bytes.
const leastTxSize = 110
