package evmrollup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
	"github.com/jamq/jamq/txpool"
)

// poolBlock converts a block for the pool.
func poolBlock(b *Block) txpool.Block {
	return txpool.Block{BaseFee: b.BaseFee(), Transactions: b.Transactions(), GasUsed: b.GasUsed(), GasLimit: b.GasLimit()}
}

// newHeader returns a header with the fields that all blocks share. The chain has no
// uncles, withdrawals, blobs or requests.
func (c *Chain) newHeader() *types.Header {
	var none uint64
	return &types.Header{
		UncleHash:  types.EmptyUncleHash,
		Coinbase:   c.cfg.Rules.sequencer(),
		Difficulty: new(big.Int),
		GasLimit:   c.cfg.Rules.gasLimit(),
		// The time makes the hash differ in each execution.
		Extra:            binary.BigEndian.AppendUint64([]byte("jamq"), uint64(time.Now().UnixNano())),
		WithdrawalsHash:  &types.EmptyWithdrawalsHash,
		BlobGasUsed:      &none,
		ExcessBlobGas:    &none,
		ParentBeaconRoot: new(common.Hash),
		RequestsHash:     &types.EmptyRequestsHash,
	}
}

// nextHeader returns the header of the next block, without the results of its
// execution.
func (c *Chain) nextHeader(parent *Block) *types.Header {
	h := c.newHeader()
	h.ParentHash = parent.Hash()
	h.Number = new(big.Int).Add(parent.Number(), common.Big1)
	// Blocks can be made faster than one per second, so the time may be that of the
	// parent.
	h.Time = c.production.after(parent.Time(), h.Number.Uint64())
	h.BaseFee = c.BaseFeeAfter(parent.Header())
	c.production.change(h)
	h.MixDigest = crypto.Keccak256Hash([]byte("jamq random"), parent.Hash().Bytes())
	return h
}

// newBlock starts the execution of a block on the state of its parent.
func (c *Chain) newBlock(view *statedb.View, header *types.Header, parent *Block) (*evm.Block, error) {
	run, err := evm.NewBlock(view, c.config, header, c.blockHashes(parent))
	if err != nil {
		return nil, err
	}
	if _, own := c.signer.(impersonatingSigner); own {
		run.SetSigner(c.signer)
	}
	if own := c.cfg.Rules.Precompiles; len(own) > 0 {
		run.SetPrecompiles(own)
	}
	return run, nil
}

// execute runs the transactions of a pool session and seals the block.
func (c *Chain) execute(parent *Block, header *types.Header, session *txpool.Session, o order) (*Block, error) {
	edits := c.edits.next()
	next := session.Next
	e := back(edits)
	switch {
	case e != nil:
		header.Time = e.Back.block.Time()
	case o.bare:
		header.Time, header.BaseFee = parent.Time(), c.BaseFeeAfter(parent.Header())
	}
	if o.bare || e != nil { // those that wait are not of the earlier state
		next = func() *types.Transaction { return nil }
	}
	view, err := c.viewWith(parent, edits)
	if err != nil {
		return nil, err
	}
	view.DisableReadLog() // replay makes the witness
	run, err := c.newBlock(view, header, parent)
	if err != nil {
		return nil, err
	}
	var txs types.Transactions
	for tx := next(); tx != nil; tx = next() {
		receipt, err := run.Apply(tx)
		switch {
		case err == nil:
			txs = append(txs, tx)
			session.Used(receipt.GasUsed, tx.Size())
		case errors.Is(err, evm.ErrState):
			return nil, err
		case errors.Is(err, core.ErrGasLimitReached), errors.Is(err, core.ErrNonceTooHigh), errors.Is(err, core.ErrFeeCapTooLow):
			// The transaction remains in the pool for the next block.
			session.Later()
		default:
			// The transaction cannot run and is dropped with the reason.
			session.Fail(err)
		}
	}
	// Without transactions there is no block, unless the order allows an empty one.
	if len(txs) == 0 && !o.empty {
		return nil, nil
	}
	switch err := run.Finish(); {
	case err != nil && len(txs) == 0:
		return nil, err
	case err != nil:
		// One of the transactions has made a balance too large for the state, and it is unknown
		// which one. The last one is rejected, so that the next attempt has other transactions.
		return nil, errors.Join(err, c.pool.Reject(txs[len(txs)-1].Hash(), err))
	}
	if header.Root, err = view.Commit(); err != nil {
		return nil, err
	}
	b := seal(header, txs, run)
	c.edits.made(b.Hash(), edits)
	return b, nil
}

// seal makes a block from its transactions and results.
func seal(header *types.Header, txs types.Transactions, run *evm.Block) *Block {
	header.GasUsed = run.GasUsed()
	receipts := run.Receipts()
	b := &Block{
		Block:    types.NewBlock(header, &types.Body{Transactions: txs, Withdrawals: []*types.Withdrawal{}}, receipts, trie.NewStackTrie(nil)),
		Receipts: receipts,
	}
	// The block's hash is known only now.
	for _, r := range receipts {
		r.BlockHash = b.Hash()
		for _, l := range r.Logs {
			l.BlockHash = b.Hash()
		}
	}
	return b
}

// replay executes a sealed block again, on the state after its parent.
func (c *Chain) replay(parent *Block, block *types.Block, logReads bool) (view *statedb.View, sealed func(root common.Hash) (*Block, error), err error) {
	if view, err = c.viewWith(parent, c.edits.in(block.Hash())); err != nil {
		return nil, nil, err
	}
	if !logReads {
		// The caller needs no witness.
		view.DisableReadLog()
	}
	header := block.Header()
	run, err := c.newBlock(view, header, parent)
	if err != nil {
		return nil, nil, err
	}
	for _, tx := range block.Transactions() {
		if _, err := run.Apply(tx); err != nil {
			return nil, nil, err
		}
	}
	if err := run.Finish(); err != nil {
		return nil, nil, err
	}
	return view, func(root common.Hash) (*Block, error) {
		header.Root = root
		b := seal(header, block.Transactions(), run)
		if b.Hash() != block.Hash() {
			// The execution has another result than the sealed block.
			return nil, fmt.Errorf("evmrollup: block %d executes to %s, want %s", block.NumberU64(), b.Hash(), block.Hash())
		}
		return b, nil
	}, nil
}

// again appends a block to the chain after a restart.
func (c *Chain) again(block *types.Block) error {
	if b := c.ledger.Stored(block.NumberU64(), block.Hash()); b != nil && c.states.Has(b.Root()) {
		// After a restart, the database may still have the block and the state after it. Then
		// the block need not be executed again.
		return c.ledger.Append(b)
	}
	view, sealed, err := c.replay(c.ledger.Head(), block, false)
	if err != nil {
		return err
	}
	root, err := view.Root()
	if err != nil {
		return err
	}
	b, err := sealed(root)
	if err != nil {
		return err
	}
	if !c.states.Has(root) || root == c.ledger.Head().Root() { // each block has a commit to discard
		if _, err := view.Commit(); err != nil {
			return err
		}
	}
	return c.extend(b)
}

// extend adds a block to the ledger after its state was committed. If that fails,
// extend discards the state.
func (c *Chain) extend(b *Block) error {
	if err := c.ledger.Append(b); err != nil {
		return errors.Join(err, c.states.Discard(b.Root()))
	}
	return nil
}

// blockHashes returns the function that gives the instruction BLOCKHASH the hashes of
// earlier blocks, for a block that follows parent.
func (c *Chain) blockHashes(parent *Block) evm.BlockHashes {
	return func(number uint64) common.Hash {
		if b := c.ledger.ByNumber(number); b != nil && number <= parent.NumberU64() {
			return b.Hash()
		}
		return common.Hash{}
	}
}
