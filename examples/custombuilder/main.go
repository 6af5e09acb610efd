// Custombuilder is a builder with its own block order, its own bundle type, and
// its own way of sending. Updates of a price oracle come first in a block, and
// each package goes to two guarantors at once. It uses the mempool, the queue
// and the runner of jamq and replaces three small parts:
//
//	ordering.go    the order of a block (txpool.Ordering)
//	batch.go       the bundle type, and how it becomes a package (submit.Builder)
//	broadcast.go   the way to guarantors (submit.Submitter)
//
// main.go connects them on a simulated JAM chain.
//
//	go run ./examples/custombuilder
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/txpool"
)

var (
	chainID = big.NewInt(4359)
	oracle  = common.HexToAddress("0xac1e000000000000000000000000000000000001")
)

const (
	users    = 12
	perBlock = 4

	blockGas    = 30_000_000
	transferGas = 21_000
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	say := log.New(out, "", 0)
	chain, err := fastChain()
	if err != nil {
		return err
	}
	genesis, spec := chain.Best(), chain.Config().Spec
	driver := jamtest.NewDriver(chain)

	cfg := txpool.DefaultConfig(chainID)
	cfg.Ordering = oracleFirst{oracle}
	pool, err := txpool.New(cfg, rich{})
	if err != nil {
		return err
	}
	settings := submit.DefaultConfig(spec)
	settings.Observe = func(o submit.Observation) {
		switch e := o.Effect.(type) {
		case bundlequeue.Changed:
			if e.To >= bundlequeue.Submitted {
				say.Printf("block %d: %s", e.Number, e.To)
			}
		case bundlequeue.Failed[batch]: // its transactions return to the pool
			for _, d := range pool.Reset(txpool.Head{Reverted: []txpool.Block{{Transactions: e.Bundle.txs}}}) {
				say.Printf("transaction %s is not pending again: %v", d.Tx.Hash(), d.Err)
			}
		}
	}
	runner, err := submit.NewRunner(settings, genesis, packer{driver}, broadcaster{driver})
	if err != nil {
		return err
	}
	if err := runner.Start(ctx); err != nil {
		return err
	}
	defer runner.Stop()

	following, stop := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- follow(following, driver, runner) }()
	defer func() { stop(); <-followed }()

	if err := traffic(pool); err != nil {
		return err
	}
	for number := uint64(1); pool.Stats().Pending > 0; number++ {
		session := pool.Build(ctx, txpool.Budget{Count: perBlock, Gas: blockGas})
		b := build(session)
		say.Printf("block %d: %s", number, b)
		if err := runner.Enqueue(ctx, bundlequeue.Enqueue[batch]{Number: number, Bundle: b}); err != nil {
			return errors.Join(err, session.Cancel())
		}
		if err := session.Commit(); err != nil {
			return err
		}
	}
	return runner.Drain(ctx)
}

// build takes the transactions of one block. A real builder executes each one
// and reports the gas that it used.
func build(session *txpool.Session) (b batch) {
	for tx := session.Next(); tx != nil; tx = session.Next() {
		b.txs = append(b.txs, tx)
		session.Used(transferGas, tx.Size())
	}
	return b
}

// follow passes the updates of the chain to the runner.
func follow(ctx context.Context, driver *jamtest.Driver, runner *submit.Runner[batch]) error {
	return driver.Run(ctx, func(u jamtest.Update) {
		for _, block := range u.Imported {
			if runner.Import(ctx, block, u.Best) != nil {
				return // the runner has stopped
			}
		}
		_ = runner.Finalize(ctx, u.Finalized)
	})
}

// fastChain returns a JAM chain with slots of 100 ms that loses a fifth of the
// submissions.
func fastChain() (*jamtest.Chain, error) {
	spec := jamq.Tiny()
	spec.SlotDuration = 100 * time.Millisecond
	cfg := jamtest.DefaultConfig(spec, 1)
	cfg.LossProbability = 0.2
	cfg.StartSlot = jamq.NewSlotClock(spec).SlotAt(time.Now())
	return jamtest.New(cfg)
}

// traffic adds one transaction of each user. Every third one is an oracle's and
// pays the least.
func traffic(pool *txpool.Pool) error {
	for i := range users {
		key, err := userKey(i)
		if err != nil {
			return err
		}
		to, tip := common.Address{1}, int64(2+i)
		if i%3 == 0 {
			to, tip = oracle, 1
		}
		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{GasPrice: big.NewInt(tip * 1e9), Gas: 21_000, To: &to})
		if err != nil {
			return err
		}
		if err := pool.Add(tx); err != nil {
			return err
		}
	}
	return nil
}

func userKey(i int) (*ecdsa.PrivateKey, error) {
	return crypto.ToECDSA(crypto.Keccak256(fmt.Appendf(nil, "user %d", i)))
}

// rich is a state in which every account has one ether. A real state is a view
// at the newest executed block; see package statedb.
type rich struct{}

// Account implements txpool.State.
func (rich) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}
