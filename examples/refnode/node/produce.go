package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/txpool"
)

// sequencer receives the tips.
var sequencer = common.HexToAddress("0x4a414d5100000000000000000000000000000001")

// produce makes blocks from the pool: whenever a full block is possible, and
// otherwise at each slot.
func (n *Node) produce(ctx context.Context) {
	for {
		least := n.cfg.MaxTxsPerBundle
		select {
		case <-ctx.Done():
			return
		case <-n.slotBegan:
			least = 1
		case <-n.produceNow:
		}
		if !n.takeBack(ctx) {
			continue
		}
		for n.pool.Stats().Pending >= least {
			made, err := n.produceBlock(ctx)
			if err != nil && ctx.Err() == nil {
				n.log.Warn("no block was produced", "err", err)
			}
			if !made {
				break
			}
		}
	}
}

// wake sends on a channel of capacity one without waiting.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// produceBlock executes the best transactions on the newest state, seals the
// block and enqueues it. It reports whether there is a new block.
func (n *Node) produceBlock(ctx context.Context) (bool, error) {
	if can, err := n.runner.CanEnqueue(ctx); err != nil || !can {
		return false, err // the transactions wait in the pool
	}
	parent := n.ledger.head()
	header := n.nextHeader(parent)
	session := n.pool.Build(ctx, txpool.Budget{Count: n.cfg.MaxTxsPerBundle, Gas: header.GasLimit, BaseFee: header.BaseFee})
	block, err := n.execute(parent, header, session)
	if err != nil || block == nil {
		return false, errors.Join(err, session.Cancel())
	}
	if err := n.enqueue(ctx, parent, block); err != nil {
		return false, errors.Join(err, session.Cancel())
	}
	if err := session.Commit(); err != nil {
		return true, err
	}
	n.logDisplaced(n.pool.Reset(txpool.Head{
		Included: []txpool.Block{poolBlock(block)},
		BaseFee:  n.nextHeader(block).BaseFee,
	}))
	return true, nil
}

// poolBlock converts a block for the pool.
func poolBlock(b *Block) txpool.Block {
	return txpool.Block{BaseFee: b.BaseFee(), Transactions: b.Transactions(), GasUsed: b.GasUsed(), GasLimit: b.GasLimit()}
}

// enqueue adds a block to the ledger and to the queue, or to neither. The block
// is on disk before it is enqueued.
func (n *Node) enqueue(ctx context.Context, parent, block *Block) error {
	if err := n.ledger.append(block, n.JAMSlot()); err != nil {
		return errors.Join(err, n.states.Discard(block.Root()))
	}
	if err := n.store.block(block.Block); err != nil {
		n.ledger.truncate(block.NumberU64())
		return errors.Join(err, n.states.Discard(block.Root()))
	}
	if err := n.states.Pin(block.Root()); err != nil {
		n.ledger.truncate(block.NumberU64())
		return errors.Join(err, n.truncated(block.NumberU64()))
	}
	n.mu.Lock()
	err := n.tracker.ExecutedBatch(headOf(parent), []canonical.Head{headOf(block)})
	n.mu.Unlock()
	if err == nil {
		err = n.runner.Enqueue(ctx, bundleOf(parent, block))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, submit.ErrJournal), errors.Is(err, submit.ErrStopped):
		// The node ends, and it is unknown whether the queue has the block. The next
		// start finds out.
		return err
	}
	n.discard(block.NumberU64())
	return errors.Join(err, n.truncated(block.NumberU64()))
}

// discard removes the blocks from a number on, and their states.
func (n *Node) discard(number uint64) []*Block {
	gone := n.ledger.truncate(number)
	n.replaced.Add(uint64(len(gone)))
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	if _, err := n.tracker.Fail(itemOf(gone[0])); err != nil {
		n.log.Error("the heads could not be moved back", "block", number, "err", err)
	}
	n.logHeads()
	for _, b := range gone {
		if err := errors.Join(n.states.Unpin(b.Root()), n.states.Discard(b.Root())); err != nil {
			n.log.Warn("a state could not be discarded", "block", b.NumberU64(), "err", err)
		}
	}
	return gone
}

// takeBack makes blocks and queue agree. After a restart it enqueues blocks
// that the queue does not have. Later it undoes blocks that the queue has given
// up. It reports whether new blocks can be made.
func (n *Node) takeBack(ctx context.Context) bool {
	n.mu.Lock()
	failed := n.failed
	n.failed = nil
	n.mu.Unlock()
	if n.reconciling {
		done, err := n.enqueueRecovered(ctx)
		if err != nil && ctx.Err() == nil {
			n.log.Error("recovered blocks could not be enqueued", "err", err)
		}
		n.reconciling = !done
		return done
	}
	err := n.takeBackFailed(failed)
	if err == nil {
		return true
	}
	n.mu.Lock()
	// The next attempt needs them: their transactions are in no other place.
	n.failed = append(failed, n.failed...)
	n.mu.Unlock()
	if ctx.Err() == nil {
		n.log.Error("failed blocks could not be taken back; the node tries again", "err", err)
	}
	return false
}

// takeBackFailed undoes the blocks that the queue has given up, because no
// version of them can be accumulated any more. Their transactions return to the
// pool and are executed again.
func (n *Node) takeBackFailed(failed []Bundle) error {
	if err := n.truncated(n.unwritten); err != nil {
		return err // before any other write
	}
	first := n.firstUndone(failed)
	if first == nil {
		return nil
	}
	blocks, transactions := n.returnToPool(first.NumberU64())
	n.log.Warn("blocks failed; their transactions are executed again", "first", first.NumberU64(), "count", blocks, "transactions", transactions)
	// This is last: until then a restart finds the blocks, and afterwards their
	// transactions in the pool.
	return n.truncated(first.NumberU64())
}

// returnToPool discards the blocks from a number on and returns their
// transactions to the pool. It returns the number of blocks and of
// transactions.
func (n *Node) returnToPool(first uint64) (blocks, transactions int) {
	n.moving.Lock()
	defer n.moving.Unlock()
	var reverted []txpool.Block
	for _, b := range n.discard(first) {
		reverted = append(reverted, poolBlock(b))
		transactions += len(b.Transactions())
	}
	n.logDisplaced(n.pool.Reset(txpool.Head{Reverted: reverted, BaseFee: n.nextHeader(n.ledger.head()).BaseFee}))
	return len(reverted), transactions
}

// truncated records on disk that the blocks from a number on are gone; 0 means
// none. If that fails, no block may be produced until it succeeds.
func (n *Node) truncated(number uint64) error {
	if number == 0 {
		return nil
	}
	if n.unwritten == 0 || number < n.unwritten {
		n.unwritten = number
	}
	if err := n.store.truncated(n.unwritten); err != nil {
		return err
	}
	n.unwritten = 0
	return nil
}

// firstUndone returns the first failed block that is still in the ledger, or
// nil.
func (n *Node) firstUndone(failed []Bundle) *Block {
	for _, bundle := range failed {
		if b := n.ledger.byNumber(bundle.Block.NumberU64()); b != nil && b.Hash() == bundle.Block.Hash() {
			return b // the others are removed with it, or were with an earlier one
		}
	}
	return nil
}

// newHeader returns a header with the fields that are the same in every block:
// there are no uncles, withdrawals, blobs or requests.
func newHeader() *types.Header {
	var none uint64
	return &types.Header{
		UncleHash:  types.EmptyUncleHash,
		Coinbase:   sequencer,
		Difficulty: new(big.Int),
		GasLimit:   blockGasLimit,
		// The time makes the hash differ in each execution, as a queue's
		// commitment must.
		Extra:            binary.BigEndian.AppendUint64([]byte("jamq"), uint64(time.Now().UnixNano())),
		WithdrawalsHash:  &types.EmptyWithdrawalsHash,
		BlobGasUsed:      &none,
		ExcessBlobGas:    &none,
		ParentBeaconRoot: new(common.Hash),
		RequestsHash:     &types.EmptyRequestsHash,
	}
}

// nextHeader returns the header of the block after parent, without the results
// of execution. Blocks can be faster than one per second, so a block may have
// its parent's time, but never an earlier one.
func (n *Node) nextHeader(parent *Block) *types.Header {
	h := newHeader()
	h.ParentHash = parent.Hash()
	h.Number = new(big.Int).Add(parent.Number(), common.Big1)
	h.Time = max(parent.Time(), uint64(time.Now().Unix()))
	h.BaseFee = eip1559.CalcBaseFee(n.chain, parent.Header())
	h.MixDigest = crypto.Keccak256Hash([]byte("jamq random"), parent.Hash().Bytes())
	return h
}

// execute runs the transactions of the lease and seals the block. A transaction
// that cannot run leaves the lease: it is dropped with the reason, or it waits
// for the next block. The block is nil if none could run.
func (n *Node) execute(parent *Block, header *types.Header, session *txpool.Session) (*Block, error) {
	view, err := n.states.View(parent.Root())
	if err != nil {
		return nil, err
	}
	view.DisableReadLog() // replay makes the witness
	run, err := evm.NewBlock(view, n.chain, header, n.blockHashes(parent))
	if err != nil {
		return nil, err
	}
	var txs types.Transactions
	for tx := session.Next(); tx != nil; tx = session.Next() {
		receipt, err := run.Apply(tx)
		switch {
		case err == nil:
			txs = append(txs, tx)
			session.Used(receipt.GasUsed, tx.Size())
		case errors.Is(err, evm.ErrState):
			return nil, err
		case errors.Is(err, core.ErrGasLimitReached), errors.Is(err, core.ErrNonceTooHigh), errors.Is(err, core.ErrFeeCapTooLow):
			session.Later()
		default:
			session.Fail(err)
		}
	}
	if len(txs) == 0 {
		return nil, nil
	}
	if err := run.Finish(); err != nil {
		// A balance does not fit, and the transaction that caused it is
		// unknown. The last one is rejected, so that the next attempt is a
		// different one.
		return nil, errors.Join(err, session.Lease().Reject(txs[len(txs)-1].Hash(), err))
	}
	if header.Root, err = view.Commit(); err != nil {
		return nil, err
	}
	return seal(header, txs, run), nil
}

// seal completes a header that has the state root, and sets the block hash in
// the receipts.
func seal(header *types.Header, txs types.Transactions, run *evm.Block) *Block {
	header.GasUsed = run.GasUsed()
	receipts := run.Receipts()
	b := &Block{
		Block:    types.NewBlock(header, &types.Body{Transactions: txs, Withdrawals: []*types.Withdrawal{}}, receipts, trie.NewStackTrie(nil)),
		Receipts: receipts,
	}
	for _, r := range receipts {
		r.BlockHash = b.Hash()
		for _, l := range r.Logs {
			l.BlockHash = b.Hash()
		}
	}
	return b
}

// replay executes a sealed block again on its parent's state, checks that the
// result has the same hash, and returns the witness of the execution. rootOf
// returns the state root: View.Commit also publishes it, and View.Root does
// not, for a root that is published already.
func (n *Node) replay(parent *Block, sealed *types.Block, rootOf func(*statedb.View) (common.Hash, error)) (*Block, *statedb.Witness, error) {
	view, err := n.states.View(parent.Root())
	if err != nil {
		return nil, nil, err
	}
	header := sealed.Header()
	run, err := evm.NewBlock(view, n.chain, header, n.blockHashes(parent))
	if err != nil {
		return nil, nil, err
	}
	for _, tx := range sealed.Transactions() {
		if _, err := run.Apply(tx); err != nil {
			return nil, nil, err
		}
	}
	if err := run.Finish(); err != nil {
		return nil, nil, err
	}
	witness, err := view.Witness()
	if err != nil {
		return nil, nil, err
	}
	if header.Root, err = rootOf(view); err != nil {
		return nil, nil, err
	}
	b := seal(header, sealed.Transactions(), run)
	if b.Hash() != sealed.Hash() {
		return nil, nil, fmt.Errorf("node: block %d executes to %s, want %s", sealed.NumberU64(), b.Hash(), sealed.Hash())
	}
	return b, witness, nil
}

// blockHashes returns the block hashes for the BLOCKHASH instruction in the
// block after parent.
func (n *Node) blockHashes(parent *Block) evm.BlockHashes {
	return func(number uint64) common.Hash {
		if b := n.ledger.byNumber(number); b != nil && number <= parent.NumberU64() {
			return b.Hash()
		}
		return common.Hash{}
	}
}
