package txpool

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Budget bounds a drain. A zero field does not bound.
type Budget struct {
	// Count is the number of transactions.
	Count int
	// Gas is the sum of their gas limits.
	Gas uint64
	// Bytes is the sum of their encodings.
	Bytes uint64
	// BaseFee is the base fee of the block to come, in wei; transactions with a lower fee cap are skipped.
	BaseFee *uint256.Int
}

// Skip is a transaction that a drain passed over, with all later ones of its sender.
type Skip struct {
	// Hash is the transaction.
	Hash common.Hash
	// Reason is why: "gas", "bytes" or "base fee".
	Reason string
}

// Lease is a set of transactions on their way into a bundle. It must be committed or released. Its methods are safe for
// concurrent use.
type Lease struct {
	pool    *Pool
	id      uint64
	expires time.Time
	txs     []*entry
	skipped []Skip
}

// drain picks transactions and marks them with the lease's number.
func (c *core) drain(budget Budget, lease uint64) ([]*entry, []Skip) {
	picked, skipped := c.pick(budget)
	touched := make(map[common.Address]bool, len(picked))
	for _, e := range picked {
		e.lease = lease
		touched[e.from] = true
	}
	for _, e := range picked {
		if touched[e.from] {
			touched[e.from] = false
			c.index(c.accounts[e.from])
		}
	}
	return picked, skipped
}

// pick chooses transactions, best first and per sender in nonce order, and changes nothing.
func (c *core) pick(budget Budget) (picked []*entry, skipped []Skip) {
	var gas, bytes uint64
	heads := c.heads.Clone() // shares its nodes: what is taken from it stays in the pool's
	for budget.Count <= 0 || len(picked) < budget.Count {
		e, ok := heads.DeleteMin()
		if !ok {
			break
		}
		if reason := budget.refuses(e, gas, bytes); reason != "" {
			skipped = append(skipped, Skip{e.hash, reason})
			continue
		}
		gas += e.tx.Gas()
		bytes += e.size
		picked = append(picked, e)
		if follower := c.accounts[e.from].after(e); follower != nil {
			heads.ReplaceOrInsert(follower)
		}
	}
	return picked, skipped
}

// after returns the pending transaction that follows and is in no bundle yet.
func (a *account) after(e *entry) *entry {
	i, _ := a.find(e.nonce)
	for _, x := range a.txs[i+1:] {
		if x.pending && x.lease == 0 {
			return x
		}
	}
	return nil
}

// refuses returns why a transaction does not fit any more, or "".
func (b *Budget) refuses(e *entry, gas, bytes uint64) string {
	switch {
	case b.BaseFee != nil && e.feeCap.Lt(b.BaseFee):
		return "base fee"
	case b.Gas > 0 && e.tx.Gas() > b.Gas-gas:
		return "gas"
	case b.Bytes > 0 && e.size > b.Bytes-bytes:
		return "bytes"
	}
	return ""
}

// Transactions returns what the lease holds, in the order in which it should run.
func (l *Lease) Transactions() []*types.Transaction {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	txs := make([]*types.Transaction, len(l.txs))
	for i, e := range l.txs {
		txs[i] = e.tx
	}
	return txs
}

// Skipped returns what the drain passed over.
func (l *Lease) Skipped() []Skip { return slices.Clone(l.skipped) }

// Reject drops a transaction of the lease from the pool for a reason: it failed while the bundle was built. Later ones of the
// same sender can then no longer run in this bundle; see Return. Errors wrap ErrLeaseClosed or ErrNotLeased.
func (l *Lease) Reject(hash common.Hash, reason error) error {
	return l.take(hash, func(c *core, e *entry) {
		a := c.accounts[e.from]
		i, _ := a.find(e.nonce)
		c.drop(a, i, reason)
		c.index(a)
	})
}

// Return gives one transaction of the lease back to the pool: it did not fit. Errors wrap ErrLeaseClosed or ErrNotLeased.
func (l *Lease) Return(hash common.Hash) error {
	return l.take(hash, func(c *core, e *entry) { c.index(c.accounts[e.from]) })
}

// take removes a transaction from the lease and does something with it.
func (l *Lease) take(hash common.Hash, then func(*core, *entry)) error {
	return l.pool.change(func(c *core) error {
		if l.pool.leases[l.id] != l {
			return ErrLeaseClosed
		}
		i := slices.IndexFunc(l.txs, func(e *entry) bool { return e.hash == hash })
		if i < 0 {
			return fmt.Errorf("%w: %s", ErrNotLeased, hash)
		}
		e := l.txs[i]
		l.txs = slices.Delete(l.txs, i, i+1)
		e.lease = 0
		then(c, e)
		return nil
	})
}

// Commit removes the lease's transactions from the pool: they are in a bundle that is safely enqueued. The sender's next
// nonce is after them from now on. A second Commit, or one after Release, wraps ErrLeaseClosed and changes nothing.
func (l *Lease) Commit() error {
	return l.close(func(c *core, a *account, e *entry) {
		i, _ := a.find(e.nonce)
		a.nonce = max(a.nonce, e.nonce+1)
		c.forget(a, i)
		c.emit(Event{Kind: Included, Tx: e.tx})
	})
}

// Release gives all of the lease's transactions back. A second Release, or one after Commit, wraps ErrLeaseClosed and changes
// nothing.
func (l *Lease) Release() error { return l.close(func(*core, *account, *entry) {}) }

// close ends the lease, after doing something with each of its transactions.
func (l *Lease) close(each func(*core, *account, *entry)) error {
	return l.pool.change(func(c *core) error {
		if l.pool.leases[l.id] != l {
			return ErrLeaseClosed
		}
		delete(l.pool.leases, l.id)
		for _, e := range l.txs {
			e.lease = 0
			a := c.accounts[e.from]
			each(c, a, e)
			c.index(a)
		}
		return nil
	})
}
