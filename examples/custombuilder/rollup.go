package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/mempool"
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

// accounts implements txpool.State for users who begin with one ether and pay nothing.
// A real state is a view at the newest executed block; see package statedb.
type accounts struct {
	mu     sync.Mutex // the pool reads accounts while blocks are applied
	nonces map[common.Address]uint64
}

// Account implements txpool.State.
func (a *accounts) Account(address common.Address) (txpool.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return txpool.Account{Nonce: a.nonces[address], Balance: *uint256.NewInt(1e18)}, nil
}

// move adds to the nonces of the senders of a batch.
func (a *accounts) move(b batch, by int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, tx := range b {
		from, err := types.Sender(types.LatestSignerForChainID(chainID), tx)
		if err != nil {
			return err
		}
		a.nonces[from] += uint64(by)
	}
	return nil
}

// rollup makes, executes and undoes batches for the builder. The transactions wait in
// a mempool that has its own order and is in the builder's log. It implements
// builder.Rollup.
type rollup struct {
	*mempool.Pool
	state *accounts
	root  common.Hash // a hash of all executed transactions
	say   *log.Logger
}

func newRollup(say *log.Logger) (*rollup, error) {
	cfg := txpool.DefaultConfig(chainID)
	cfg.Score = oracleFirst(oracle)
	state := &accounts{nonces: make(map[common.Address]uint64)}
	pool, err := mempool.New(cfg, state, nil)
	return &rollup{Pool: pool, state: state, say: say}, err
}

// execute returns the root after a batch. A real rollup executes its transactions.
func (r *rollup) execute(b batch) common.Hash {
	root := r.root
	for _, tx := range b {
		root = crypto.Keccak256Hash(root[:], tx.Hash().Bytes())
	}
	return root
}

// Propose implements builder.Rollup.
func (r *rollup) Propose(ctx context.Context, _ uint64) (b batch, root common.Hash, err error) {
	session := r.Build(ctx, txpool.Budget{Count: perBlock, Gas: blockGas})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		b = append(b, tx)
		session.Used(transferGas, tx.Size())
	}
	if len(b) == 0 {
		return nil, root, builder.ErrIdle
	}
	return b, r.execute(b), nil
}

// Apply implements builder.Rollup.
func (r *rollup) Apply(_ context.Context, b builder.Block[batch]) error {
	if err := r.state.move(b.Body, 1); err != nil {
		return err
	}
	r.say.Printf("block %d: %s", b.Number, b.Body)
	r.root = r.execute(b.Body)
	r.Applied(txpool.Block{Transactions: b.Body})
	return nil
}

// Undo implements builder.Rollup. The transactions return to the pool.
func (r *rollup) Undo(_ context.Context, b builder.Block[batch]) error {
	return r.Undone(b.Number, txpool.Block{Transactions: b.Body}, func() error {
		r.root = b.PreRoot
		return r.state.move(b.Body, -1)
	})
}

// Root implements builder.Rollup.
func (r *rollup) Root() common.Hash { return r.root }

// Payload implements builder.Rollup.
func (r *rollup) Payload(_ context.Context, b builder.Block[batch]) ([]byte, error) {
	return rlp.EncodeToBytes(b.Body)
}
