package txpool

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/btree"
)

// Head is a change of the host's chain of executed blocks.
type Head struct {
	// Reverted are the blocks that are no longer part of the chain, and
	// Included the new ones. Both are in chain order, oldest first.
	Reverted, Included []Block
	// BaseFee is the base fee of the next block, in wei per gas. Nil means that it does not change.
	// The base fee of a new pool is 0.
	BaseFee *big.Int
	// Touched lists all accounts that the change may have affected, including the senders of
	// transactions. Nil means that any account may have changed. The pool then reads the accounts
	// of all its senders again, which takes longer.
	Touched []common.Address
}

// Block is the part of a block that the pool needs.
type Block struct {
	// BaseFee is the base fee of this block, in wei per gas. Nil means 0.
	BaseFee *big.Int
	// Transactions are the transactions of the block, in order.
	Transactions []*types.Transaction
	// GasUsed and GasLimit are the gas that this block has used and could use. If GasUsed is 0, the
	// pool assumes the least gas that the transactions can have used, before their first
	// instruction. If GasLimit is 0, it is Config.BlockGasLimit.
	//
	// From these two numbers the pool knows how full the block was. The prices that users paid in
	// a block that was at most half full do not raise the floor, because the block had room at any
	// price. Otherwise a single transaction per block could raise the floor for all users.
	GasUsed, GasLimit uint64
}

// Displaced is a transaction that Reset or Restore has removed from the pool or could not admit
// again, with the reason.
type Displaced struct {
	// Tx is the transaction, and Err the reason.
	Tx  *types.Transaction
	Err error
	// Held is true if the pool holds the transaction aside and will try to admit it again: see
	// StatusHeld.
	Held bool
}

// Reset tells the pool that the host's chain has changed. State must show the new chain before the
// call. Reset removes included transactions, reads accounts again, and updates the floor and the
// base fee.
//
// Transactions of reverted blocks come back into the pool, even above the caps, and
// displace no others (invariant I12). If the balance does not cover such a
// transaction, it is parked until the balance does. Reset refuses it only if its
// nonce is used, or if the sender has submitted another transaction with the same
// nonce. If it cannot be admitted now, because the host cannot read the account or
// Config.Precheck refuses it, it is held aside: see StatusHeld.
//
// Reset returns each transaction that it refused, held aside or dropped, with the
// reason. The dropped ones are also reported by events. The result may include
// transactions that other calls dropped at the same time.
//
// A host that keeps a log must append the changes before it forgets the reverted
// blocks. After a restart, it passes the reverted blocks that it still has to Reset
// again, which does no harm.
func (p *Pool) Reset(head Head) []Displaced {
	p.expireDue(p.clock())
	defer p.takeTurn()()
	head.Included = cleanBlocks(head.Included, nil)
	gone := cleanBlocks(head.Reverted, head.Included)
	reverted := p.examineReverted(gone)
	p.beginHead(&head)
	if head.Touched == nil {
		head.Touched = p.senders()
	}
	for some := range slices.Chunk(head.Touched, batchSize) {
		p.refreshAccounts(some)
	}
	p.moveFees(&head)
	p.admitAll(reverted)
	p.setAside(reverted)
	p.retryHeld()
	return p.endHead()
}

// endHead is the last step of Reset, and returns its result.
func (p *Pool) endHead() []Displaced {
	p.changeCore(func(c *core) {
		// All transactions of the reverted blocks are back. During the call, transactions
		// behind nonce gaps were kept, because these could have closed the gaps; now the caps
		// apply to them again.
		c.patient, c.keeping = false, false
	})
	return p.takeDisplaced()
}

// takeDisplaced returns what Reset or Restore has dropped or could not admit.
func (p *Pool) takeDisplaced() []Displaced {
	p.mu.Lock()
	defer p.mu.Unlock()
	displaced := p.core.displaced
	p.core.displaced = nil
	return slices.DeleteFunc(displaced, func(d Displaced) bool {
		// The transaction was kept to be tried again, and the outcome is known now: it was
		// admitted, or a second entry of the list has the final reason.
		return d.Held && p.core.aside.txs[d.Tx.Hash()] == nil
	})
}

// cleanBlocks returns blocks without nil transactions and without those in others.
func cleanBlocks(blocks, others []Block) []Block {
	moved := make(map[common.Hash]bool)
	for _, b := range others {
		for _, tx := range b.Transactions {
			moved[tx.Hash()] = true
		}
	}
	blocks = slices.Clone(blocks)
	for i := range blocks {
		// A transaction that moved from a reverted block to a new block does not come
		// back into the pool.
		blocks[i].Transactions = slices.DeleteFunc(slices.Clone(blocks[i].Transactions), func(tx *types.Transaction) bool {
			return tx == nil || len(moved) > 0 && moved[tx.Hash()]
		})
	}
	return blocks
}

// examineReverted examines the transactions of reverted blocks for another admission.
func (p *Pool) examineReverted(blocks []Block) []candidate {
	var reverted []*past
	now := p.clock()
	p.mu.Lock()
	for _, b := range blocks {
		for _, tx := range b.Transactions {
			_, private := p.core.privately.find(tx.Hash(), now)
			reverted = append(reverted, &past{tx: tx, at: now, private: private > 0, ran: true})
		}
	}
	p.mu.Unlock()
	return p.examineBack(reverted)
}

// beginHead removes the transactions of the new blocks, and ends the session.
func (p *Pool) beginHead(head *Head) {
	p.changeCore(func(c *core) {
		// From now on, all accounts that were read before are out of date.
		c.generation++
		c.patient = true // returning transactions fill the gaps
		c.keeping, c.displaced = len(head.Reverted) > 0, []Displaced{}
		if head.Touched == nil {
			c.cache.Purge()
		}
		for _, address := range head.Touched {
			c.cache.Remove(address)
		}
		c.fees.removeBlocks(len(head.Reverted))
		for _, b := range head.Included {
			for _, tx := range b.Transactions {
				c.includeTransaction(tx)
			}
		}
		c.endSession(c.session) // its block would be on another state
	})
}

// includeTransaction removes a transaction that is in a new block.
func (c *core) includeTransaction(tx *types.Transaction) {
	hash := tx.Hash()
	departed, held := c.departures.Remove(hash), c.aside.txs[hash] != nil
	e := c.all[hash]
	if c.cfg.KeepChanges && (e != nil || departed || held) {
		c.recordChange(encode(recordLeft, hash))
	}
	c.aside.letGo(hash)
	if e == nil {
		return
	}
	a := e.account
	c.removeAt(a, a.indexOf(e))
	used := a.Nonce
	// The chain has executed this nonce, so the nonces up to it are used. Other transactions
	// of the sender with such a nonce leave the pool too.
	a.Nonce = max(a.Nonce, e.nonce+1)
	if e.private {
		c.privately.remember(hash, struct{}{}, c.now)
	}
	c.emitEvent(Event{Kind: Included}, e)
	p := plan{account: a, together: true}
	for _, e := range a.txs {
		if e.nonce >= a.Nonce {
			break
		}
		if e.nonce >= used {
			a.cost.Sub(&a.cost, &e.cost)
		}
		if !e.locked {
			p.leaves = append(p.leaves, leaving{e.entry, Dropped, ErrNonceTooLow})
		}
	}
	c.applyPlan(p)
	if a.Delegated { // its limit counts from the account's next nonce
		c.touchAccount(a, 0, len(a.txs))
	}
}

// senders returns the accounts of all senders.
func (p *Pool) senders() []common.Address {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]common.Address, len(p.core.list))
	for i, a := range p.core.list {
		all[i] = a.address
	}
	return all
}

// refreshAccounts reads accounts again and applies the changes to their transactions.
func (p *Pool) refreshAccounts(addresses []common.Address) {
	readings := make([]reading, 0, len(addresses))
	p.mu.Lock()
	for _, address := range addresses {
		a := p.core.accounts[address]
		if a != nil {
			readings = append(readings, reading{in: a})
		}
	}
	p.mu.Unlock()
	p.readAll(readings)
	p.changeCore(func(c *core) {
		for _, r := range readings {
			c.applyReading(&r)
		}
	})
}

// moveFees moves the floor by the prices in the new blocks, and applies the base fee.
func (p *Pool) moveFees(head *Head) {
	medians := make([]uint64, len(head.Included))
	if p.cfg.FloorWindow > 0 {
		for i, b := range head.Included {
			medians[i] = b.median(&p.cfg)
		}
	}
	p.changeCore(func(c *core) {
		before := c.fees.prices
		for _, median := range medians {
			c.fees.addBlock(median)
		}
		if head.BaseFee != nil {
			c.fees.base = wei(head.BaseFee)
		}
		now := c.fees.prices
		if now != before && c.cfg.KeepChanges {
			c.recordChange(now.record())
		}
		if now.base != before.base {
			c.repricing = true
			for i := len(c.list) - 1; i >= 0; i-- { // a removed sender is replaced by the last one
				c.repriceSender(c.list[i])
			}
			for c.liftParked() { // these wait too, so that the best get the room first
				continue
			}
		}
		// Transactions that pay too little at the new prices are parked.
		c.parkUnderpriced()
		c.repricing = false
	})
}

// enough is the maximum number of transactions from which the median price of a block
// is computed. If a block has more, they are chosen at even intervals.
const enough = 1000

// median returns the median price per gas that the block's transactions have paid.
func (b *Block) median(cfg *Config) uint64 {
	n := len(b.Transactions)
	if n == 0 || b.used(cfg) <= cmp.Or(b.GasLimit, cfg.BlockGasLimit)/2 {
		// A block that is at most half full had room at any price, so it counts as one
		// with the lowest price.
		return cfg.MinGasPrice
	}
	base := wei(b.BaseFee)
	prices := make([]uint64, min(n, enough))
	for i := range prices {
		tx := b.Transactions[i*n/len(prices)]
		prices[i] = pricePaid(wei(tx.GasFeeCap()), wei(tx.GasTipCap()), base)
	}
	slices.Sort(prices)
	return prices[len(prices)/2]
}

// used returns GasUsed or, if it is 0, the least gas that is possible.
func (b *Block) used(cfg *Config) uint64 {
	used := b.GasUsed
	for i := 0; b.GasUsed == 0 && i < len(b.Transactions); i++ {
		intrinsic, floor := cfg.intrinsicGas(b.Transactions[i])
		used = addSaturating(used, max(intrinsic, floor))
	}
	return used
}

// repriceSender computes the ranks of a sender's transactions at a new base fee.
func (c *core) repriceSender(a *account) {
	moved := false
	for _, e := range a.txs {
		rank := c.fees.rank(e.entry)
		moved = moved || rank != e.rank
		e.rank = rank
	}
	// If all ranks are as before, which is usual, the order need not be computed again.
	if moved {
		c.arrangeAll(a)
	}
}

// parkUnderpriced parks the transactions that no longer pay the floor.
func (c *core) parkUnderpriced() {
	least := c.fees.leastRank()
	for _, index := range append([]*btree.BTreeG[ranked]{c.ready}, c.roomless[:]...) {
		for worst, some := index.Max(); some && worst.rank < least; worst, some = index.Max() {
			// If the transaction pays the floor again later, restoreCaps makes it
			// pending.
			c.arrangeAll(worst.entry.account)
		}
	}
}
