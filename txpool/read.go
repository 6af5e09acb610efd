package txpool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Get returns a transaction of the pool, or nil.
func (p *Pool) Get(hash common.Hash) *types.Transaction {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.core.all[hash]; e != nil {
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

// NextNonce returns the nonce after the sender's pending transactions, and whether the pool knows the sender. For one that it
// does not know the host's state has the answer.
func (p *Pool) NextNonce(sender common.Address) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.core.accounts[sender]
	if a == nil {
		return 0, false
	}
	return a.nextNonce(), true
}

// Pending returns all transactions that can run and are in no bundle, in the order in which Drain would give them.
func (p *Pool) Pending() []*types.Transaction { return p.PendingLimit(0) }

// PendingLimit is Pending for the first n; 0 means all.
func (p *Pool) PendingLimit(n int) []*types.Transaction {
	p.mu.Lock()
	defer p.mu.Unlock()
	picked, _ := p.core.pick(Budget{Count: n})
	txs := make([]*types.Transaction, len(picked))
	for i, e := range picked {
		txs[i] = e.tx
	}
	return txs
}

// Content returns the pending and the queued transactions by sender, each in nonce order. Those in bundles are pending.
func (p *Pool) Content() (pending, queued map[common.Address][]*types.Transaction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pending = make(map[common.Address][]*types.Transaction)
	queued = make(map[common.Address][]*types.Transaction)
	for addr, a := range p.core.accounts {
		for _, e := range a.txs {
			if e.pending {
				pending[addr] = append(pending[addr], e.tx)
			} else {
				queued[addr] = append(queued[addr], e.tx)
			}
		}
	}
	return pending, queued
}

// Stats is a summary of the pool.
type Stats struct {
	// Pending and Queued count transactions, PendingBytes and QueuedBytes their encodings. Those in bundles are pending.
	Pending, Queued           int
	PendingBytes, QueuedBytes uint64
	// Senders counts accounts, Leases open leases.
	Senders, Leases int
}

// Stats returns a summary, in constant time.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.core
	return Stats{
		Pending: c.pending.count, Queued: c.queued.count,
		PendingBytes: c.pending.bytes, QueuedBytes: c.queued.bytes,
		Senders: len(c.accounts), Leases: len(p.leases),
	}
}
