package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/txpool"
)

// batch is the body of this builder's blocks.
type batch []*types.Transaction

func (b batch) String() string {
	var names []string
	for _, tx := range b {
		if *tx.To() == oracle {
			names = append(names, "oracle")
		} else {
			names = append(names, fmt.Sprintf("%d gwei", tx.GasPrice().Int64()/1e9))
		}
	}
	return strings.Join(names, ", ")
}

// rich is a state in which every account has one ether and no transaction, which is
// enough for users who send one. A real state is a view at the newest executed
// block; see package statedb.
type rich struct{}

// Account implements txpool.State.
func (rich) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

// rollup makes, executes and undoes batches for the builder. The transactions wait in
// a mempool that has its own order. It implements builder.Rollup.
type rollup struct {
	pool *txpool.Pool
	root common.Hash // a hash of all executed transactions
	say  *log.Logger
}

func newRollup(say *log.Logger) (*rollup, error) {
	cfg := txpool.DefaultConfig(chainID)
	cfg.Score = oracleFirst(oracle)
	pool, err := txpool.New(cfg, rich{})
	return &rollup{pool: pool, say: say}, err
}

// execute returns the root after a batch. A real rollup executes its transactions.
func (r *rollup) execute(b batch) common.Hash {
	root := r.root
	for _, tx := range b {
		root = crypto.Keccak256Hash(root[:], tx.Hash().Bytes())
	}
	return root
}

// Admit implements builder.Rollup.
func (r *rollup) Admit(_ context.Context, op []byte) error {
	_, err := r.pool.AddRaw(op)
	return err
}

// Propose implements builder.Rollup. It cancels the session, so that the transactions
// stay in the pool until the block is in the log.
func (r *rollup) Propose(ctx context.Context, _ uint64) (b batch, root common.Hash, err error) {
	session := r.pool.Build(ctx, txpool.Budget{Count: perBlock, Gas: blockGas})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		b = append(b, tx)
		session.Used(transferGas, tx.Size())
	}
	if err := session.Cancel(); err != nil {
		return nil, root, err
	}
	if len(b) == 0 {
		return nil, root, builder.ErrIdle
	}
	return b, r.execute(b), nil
}

// Apply implements builder.Rollup.
func (r *rollup) Apply(_ context.Context, b builder.Block[batch]) error {
	r.say.Printf("block %d: %s", b.Number, b.Body)
	r.root = r.execute(b.Body)
	r.pool.Reset(txpool.Head{Included: []txpool.Block{{Transactions: b.Body}}})
	return nil
}

// Undo implements builder.Rollup. The transactions return to the pool.
func (r *rollup) Undo(_ context.Context, b builder.Block[batch]) error {
	r.root = b.PreRoot
	for _, d := range r.pool.Reset(txpool.Head{Reverted: []txpool.Block{{Transactions: b.Body}}}) {
		r.say.Printf("transaction %s is not pending again: %v", d.Tx.Hash(), d.Err)
	}
	return nil
}

// Root implements builder.Rollup.
func (r *rollup) Root() common.Hash { return r.root }

// Payload implements builder.Rollup.
func (r *rollup) Payload(_ context.Context, b builder.Block[batch]) ([]byte, error) {
	return rlp.EncodeToBytes(b.Body)
}
