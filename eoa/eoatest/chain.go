package eoatest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
)

// Faults sets how often the calls and blocks of a [Chain] go wrong. Each field is a
// probability from 0 to 1, except ReorgDepth, which is a number of blocks.
type Faults struct {
	// DropRequest is the probability that the node never receives a call.
	DropRequest float64
	// DropResponse is the probability that the node carries out a call, but the
	// answer is lost.
	DropResponse float64
	// Busy is the probability that the node asks the caller to wait.
	Busy float64
	// Garbage is the probability that a send is answered with a text that is not
	// recognized. The node may have accepted the transaction.
	Garbage float64
	// Refuse is the probability that a gateway answers a send with the refusal of another
	// node, for lack of funds. The node that received the transaction may have accepted it.
	Refuse float64
	// Hedge is the probability that a gateway gives a send to two nodes and returns
	// the answer of the second node, which refuses the transaction for some reason.
	// The first node may have accepted it.
	Hedge float64
	// Return is the probability that a reorg puts back into the pool every
	// transaction that was ever in it and can still be mined. Each of them
	// replaces any other transaction with the same nonce.
	Return float64
	// Lag is the probability that an answer is outdated, by up to four blocks.
	Lag float64
	// LosePool is the probability, per block, that the node forgets its pool.
	LosePool float64
	// Reorg is the probability, per block, that the last blocks are replaced by
	// empty blocks. The transactions in them return to the pool.
	Reorg float64
	// ReorgDepth is the maximum number of blocks that a reorg removes. A reorg
	// never removes final blocks.
	ReorgDepth int
}

// Chain is a simulated chain with one node, for tests of programs that use package eoa. It
// implements [eoa.Chain]. All methods are safe for concurrent use.
type Chain struct {
	mu       sync.Mutex
	id       *big.Int
	rng      *rand.Rand
	faults   Faults
	finality uint64
	perBlock int
	blocks   []block
	where    map[common.Hash]int // block of each included transaction
	pool     map[common.Address]map[uint64]*types.Transaction
	balances map[common.Address]*uint256.Int
	baseFee  uint64
	blobFee  uint64
	taken    []*types.Transaction // every transaction that was ever in the pool
	refuse   func(*types.Transaction) string
	uses     map[common.Address]uint64 // nonces that the next block uses without a transaction
	broken   int                       // number of reorgs, so that new blocks get new hashes
	// delegated contains the accounts of SetDelegated. The value tells whether Look
	// reports the account's code.
	delegated map[common.Address]bool
}

type block struct {
	hash   common.Hash
	txs    []*types.Transaction
	counts map[common.Address]uint64 // transaction count of each account after this block
}

// New returns a chain with one empty block. A block becomes final when finality
// blocks are on top of it. The same seed gives the same faults for the same
// sequence of calls.
func New(chainID uint64, seed uint64, finality uint64) *Chain {
	c := &Chain{id: new(big.Int).SetUint64(chainID), rng: rand.New(rand.NewPCG(seed, 7)), finality: finality, perBlock: 1 << 20, baseFee: 100, blobFee: 3,
		uses: map[common.Address]uint64{}, delegated: map[common.Address]bool{}, where: map[common.Hash]int{}, pool: map[common.Address]map[uint64]*types.Transaction{}, balances: map[common.Address]*uint256.Int{}}
	c.append(nil, nil)
	return c
}

// locked calls f under the lock.
func (c *Chain) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// SetFaults sets the faults of all later calls. The zero value turns them off.
func (c *Chain) SetFaults(f Faults) { c.locked(func() { c.faults = f }) }

// SetBalance sets the balance of an account, which spending does not change.
// Accounts without a balance can spend without limit.
func (c *Chain) SetBalance(a common.Address, wei *uint256.Int) {
	c.locked(func() { c.balances[a] = wei })
}

// SetDelegated gives code to an account (EIP-7702) or removes it. As in
// go-ethereum, the pool then accepts only one transaction of the account at a time,
// but keeps those it already has. If shown is false, Look does not report the code,
// as if the authorization were still in a pool.
func (c *Chain) SetDelegated(a common.Address, delegated, shown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.delegated, a); delegated {
		c.delegated[a] = shown
	}
}

// SetBaseFee sets the minimum fee cap of included transactions, in wei per gas.
func (c *Chain) SetBaseFee(wei uint64) { c.locked(func() { c.baseFee = wei }) }

// SetBlobFee sets the minimum blob fee cap of included transactions, in wei; 0
// means that the node does not report the price.
func (c *Chain) SetBlobFee(wei uint64) { c.locked(func() { c.blobFee = wei }) }

// SetPerBlock sets the maximum number of transactions in a block.
func (c *Chain) SetPerBlock(n int) { c.locked(func() { c.perBlock = n }) }

// SetRefuse sets a function that decides about each sent transaction. The function
// returns the message with which the node refuses the transaction, or an empty text
// to accept it. It is called even for a transaction that the node already has. nil
// removes the function.
func (c *Chain) SetRefuse(f func(*types.Transaction) string) { c.locked(func() { c.refuse = f }) }

// LosePool makes the node forget its pool.
func (c *Chain) LosePool() { c.locked(func() { clear(c.pool) }) }

// Transactions returns all transactions on the chain, in order.
func (c *Chain) Transactions() (out []*types.Transaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.blocks {
		out = append(out, b.txs...)
	}
	return out
}

// Block returns the transactions of a block, in order; nil if there is no such
// block.
func (c *Chain) Block(number uint64) []*types.Transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number >= uint64(len(c.blocks)) {
		return nil
	}
	return slices.Clone(c.blocks[number].txs)
}

// Pooled returns the number of transactions in the pool.
func (c *Chain) Pooled() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, txs := range c.pool {
		n += len(txs)
	}
	return n
}

// append adds a block. counts are the accounts' new transaction counts, if any
// change.
func (c *Chain) append(txs []*types.Transaction, counts map[common.Address]uint64) {
	hash := crypto.Keccak256Hash(fmt.Appendf(nil, "%d %d", len(c.blocks), c.broken))
	if counts == nil && len(c.blocks) > 0 {
		counts = c.blocks[len(c.blocks)-1].counts
	}
	for _, tx := range txs {
		c.where[tx.Hash()] = len(c.blocks)
	}
	c.blocks = append(c.blocks, block{hash, txs, counts})
}

// Mine adds a block with transactions from the pool. Before that it may simulate a reorg
// or a node that loses its pool, as often as the Faults of the chain say.
func (c *Chain) Mine() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rng.Float64() < c.faults.Reorg && c.faults.ReorgDepth > 0 {
		c.reorg(1 + c.rng.IntN(c.faults.ReorgDepth))
	}
	if c.rng.Float64() < c.faults.LosePool {
		clear(c.pool)
	}
	c.include()
}

// Reorg replaces the last depth blocks by depth+1 empty blocks. Final blocks are
// not replaced. The removed transactions return to the pool.
func (c *Chain) Reorg(depth int) { c.locked(func() { c.reorg(depth) }) }

func (c *Chain) reorg(depth int) {
	depth = min(depth, int(c.finality), len(c.blocks)-1)
	if depth <= 0 {
		return
	}
	c.broken++
	gone := c.blocks[len(c.blocks)-depth:]
	c.blocks = slices.Clone(c.blocks[:len(c.blocks)-depth])
	for _, b := range gone {
		for _, tx := range b.txs {
			delete(c.where, tx.Hash())
			c.wait(tx)
		}
	}
	for range depth + 1 {
		c.append(nil, nil)
	}
	if c.rng.Float64() >= c.faults.Return {
		return
	}
	for _, i := range c.rng.Perm(len(c.taken)) {
		if tx := c.taken[i]; tx.Nonce() >= c.count(c.sender(tx), len(c.blocks)) {
			c.wait(tx)
		}
	}
}

func (c *Chain) sender(tx *types.Transaction) common.Address {
	from, err := types.Sender(types.LatestSignerForChainID(c.id), tx)
	if err != nil {
		return common.Address{}
	}
	return from
}

func (c *Chain) wait(tx *types.Transaction) {
	from := c.sender(tx)
	if c.pool[from] == nil {
		c.pool[from] = map[uint64]*types.Transaction{}
	}
	c.pool[from][tx.Nonce()] = tx
}

// include adds a block with those pooled transactions that can be executed now.
func (c *Chain) include() {
	var senders []common.Address
	for a := range c.pool {
		senders = append(senders, a)
	}
	slices.SortFunc(senders, func(x, y common.Address) int { return x.Cmp(y) })
	var txs []*types.Transaction
	counts := maps.Clone(c.blocks[len(c.blocks)-1].counts)
	if counts == nil {
		counts = map[common.Address]uint64{}
	}
	for a, n := range c.uses {
		counts[a] += n
	}
	clear(c.uses)
	for _, a := range senders {
		for len(txs) < c.perBlock {
			tx := c.pool[a][counts[a]]
			if tx == nil || tx.GasFeeCap().Cmp(new(big.Int).SetUint64(c.baseFee)) < 0 || !c.paysBlobs(tx) {
				break
			}
			c.use(counts, tx)
			txs = append(txs, tx)
		}
	}
	c.append(txs, counts)
	for a, pooled := range c.pool {
		maps.DeleteFunc(pooled, func(n uint64, _ *types.Transaction) bool { return n < counts[a] })
	}
}

// count returns the account's transaction count after the first n blocks.
func (c *Chain) count(a common.Address, n int) uint64 { return c.blocks[n-1].counts[a] }

// trouble contains the faults that were drawn at random for one call: an error
// before or after the node carries it out, and by how many blocks the answer is
// outdated.
type trouble struct {
	before, after error
	lag           int
}

func (c *Chain) trouble() (t trouble) {
	f := c.faults
	draw := func(p float64) bool { return c.rng.Float64() < p }
	switch {
	case draw(f.DropRequest):
		t.before = fmt.Errorf("connection refused")
	case draw(f.Busy):
		t.before = fmt.Errorf("429 Too Many Requests")
	case draw(f.DropResponse):
		t.after = fmt.Errorf("502 Bad Gateway")
	}
	if draw(f.Lag) {
		t.lag = 1 + c.rng.IntN(4)
	}
	return t
}

// Look implements eoa.Chain.
func (c *Chain) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.trouble()
	if err := cmp.Or(ctx.Err(), t.before, t.after); err != nil {
		return eoa.Look{}, err
	}
	n := max(1, len(c.blocks)-t.lag)
	final := max(1, n-int(c.finality))
	l := eoa.Look{Number: uint64(n - 1), Finalized: uint64(final - 1), Latest: c.count(a, n), Final: c.count(a, final), Balance: c.balances[a]}
	l.Preconfirmed, l.Pending, l.Delegated = l.Latest, l.Latest, c.delegated[a]
	for c.pool[a][l.Pending] != nil {
		l.Pending++
	}
	l.BaseFee.SetUint64(c.baseFee)
	l.BlobFee.SetUint64(c.blobFee)
	l.Tip.SetUint64(2)
	return l, nil
}

// Ask implements eoa.Chain.
func (c *Chain) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.trouble()
	if err := cmp.Or(ctx.Err(), t.before, t.after); err != nil {
		return eoa.Answers{}, err
	}
	n := max(1, len(c.blocks)-t.lag)
	out := eoa.Answers{Number: uint64(n - 1), Receipts: map[common.Hash]eoa.Receipt{}, Missing: map[common.Hash]bool{}, Blocks: map[uint64]common.Hash{},
		Users: map[uint64]common.Hash{}}
	for _, h := range q.Txs {
		if i, found := c.where[h]; found && i < n {
			out.Receipts[h] = eoa.Receipt{Number: uint64(i), Block: c.blocks[i].hash, Success: true, GasUsed: 21_000}
		} else {
			out.Missing[h] = true
		}
	}
	for _, height := range q.Heights {
		if height < uint64(n) {
			out.Blocks[height] = c.blocks[height].hash
		}
	}
	for _, used := range q.Nonces {
		if used.UpTo < uint64(n) && c.count(q.Account, int(used.UpTo)+1) > used.Nonce {
			out.Users[used.Nonce] = c.user(q.Account, used.Nonce)
		}
	}
	return out, nil
}

// Estimate implements eoa.Chain.
func (c *Chain) Estimate(ctx context.Context, _ common.Address, requests []*eoa.Request) []eoa.Estimated {
	c.mu.Lock()
	defer c.mu.Unlock()
	const perByte = 40
	out := make([]eoa.Estimated, len(requests))
	for i, r := range requests {
		t := c.trouble()
		out[i] = eoa.Estimated{Gas: 21_000 + perByte*uint64(len(r.Data)), Err: cmp.Or(ctx.Err(), t.before, t.after)}
	}
	return out
}

// Send implements eoa.Chain.
func (c *Chain) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]eoa.Sent, len(raws))
	for i, raw := range raws {
		t := c.trouble()
		if err := cmp.Or(ctx.Err(), t.before); err != nil {
			out[i] = eoa.Sent{Text: err.Error()}
			if t.before != nil && c.rng.IntN(2) == 0 {
				out[i].Reason, out[i].RetryAfter = eoa.ReasonBusy, 50*time.Millisecond
			}
			continue
		}
		garbage := c.rng.Float64() < c.faults.Garbage
		if garbage && c.rng.IntN(2) == 0 {
			out[i] = eoa.Sent{Text: "<html>"}
			continue
		}
		text := c.take(raw)
		if c.rng.Float64() < c.faults.Hedge {
			text = refusals[c.rng.IntN(len(refusals))]
		}
		switch reason := eoa.Classify(text); {
		case t.after != nil || garbage:
			out[i] = eoa.Sent{Text: "502"}
		case text == "":
			out[i] = eoa.Sent{Result: eoa.Accepted}
		default:
			out[i] = eoa.Sent{Result: reason.Result(), Reason: reason, Text: text}
		}
	}
	return out
}

// Inject puts a transaction directly into the pool, as another program with the
// account's key could.
func (c *Chain) Inject(tx *types.Transaction) { c.locked(func() { c.wait(tx) }) }

// UseNonces makes the next block use n nonces of an account without a transaction,
// as happens when the account's code creates contracts.
func (c *Chain) UseNonces(a common.Address, n uint64) { c.locked(func() { c.uses[a] += n }) }

// Count returns the account's transaction count after the block at a height.
func (c *Chain) Count(a common.Address, height uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count(a, min(int(height)+1, len(c.blocks)))
}

// use raises the transaction counts for an included transaction.
func (c *Chain) use(counts map[common.Address]uint64, tx *types.Transaction) {
	counts[c.sender(tx)]++
	for _, auth := range tx.SetCodeAuthorizations() {
		authority, err := auth.Authority()
		if err == nil && (auth.ChainID.IsZero() || auth.ChainID.ToBig().Cmp(c.id) == 0) && auth.Nonce == counts[authority] {
			counts[authority]++
		}
	}
}

// user returns the hash of the account's transaction with a nonce, or zero.
func (c *Chain) user(a common.Address, nonce uint64) common.Hash {
	for _, b := range c.blocks {
		for _, tx := range b.txs {
			if tx.Nonce() == nonce && c.sender(tx) == a {
				return tx.Hash()
			}
		}
	}
	return common.Hash{}
}
