// Command consumer uses jamq as its users do: a transaction goes from the pool
// into a queue of bundles, and an account sends one on Ethereum.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/txpool"
)

const chainID = 4359

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := errors.Join(bundle(ctx), payment(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("the import works")
}

// bundle takes a transaction from the pool and enqueues it.
func bundle(ctx context.Context) error {
	key, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	pool, err := txpool.New(txpool.DefaultConfig(big.NewInt(chainID)), rich{})
	if err != nil {
		return err
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(chainID)), &types.LegacyTx{GasPrice: big.NewInt(2e9), Gas: 21_000, To: &common.Address{1}})
	if err != nil {
		return err
	}
	if err := pool.Add(tx); err != nil {
		return err
	}
	queue, err := bundlequeue.New(bundlequeue.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{1}})
	if err != nil {
		return err
	}
	session := pool.Build(ctx, txpool.Budget{Gas: 30_000_000})
	defer session.Cancel() // gives back what is in no block
	var txs types.Transactions
	for tx := session.Next(); tx != nil; tx = session.Next() {
		txs = append(txs, tx)
		session.Used(21_000, tx.Size())
	}
	block, err := rlp.EncodeToBytes(txs)
	if err == nil {
		_, err = queue.Step(time.Now(), bundlequeue.Enqueue{Number: 1, Bundle: block})
	}
	if err != nil {
		return err
	}
	pool.Reset(txpool.Head{Included: []txpool.Block{{Transactions: txs}}})
	if queue.Next() != 2 || pool.Size() != 0 {
		return fmt.Errorf("the next block is %d, want 2; the pool has %d transactions, want 0", queue.Next(), pool.Size())
	}
	return nil
}

// rich is a state in which each account has ether.
type rich struct{}

func (rich) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

// payment sends a transaction of an Ethereum account and waits until it is
// final.
func payment(ctx context.Context) error {
	key, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	chain := eoatest.New(chainID, 1, 2)
	cfg := eoa.DefaultConfig()
	cfg.Poll = 5 * time.Millisecond
	executor, err := eoa.New(cfg, account, memstore.New(), chain, eoa.NewKeySigner(chainID, key))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go executor.Run(ctx)
	go func() {
		for ctx.Err() == nil {
			chain.Mine()
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := executor.Submit(ctx, eoa.Request{Key: "one", To: &common.Address{1}, Value: uint256.NewInt(1)}); err != nil {
		return err
	}
	_, err = executor.Wait(ctx, "one", eoa.Final)
	return err
}
