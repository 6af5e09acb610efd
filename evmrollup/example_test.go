package evmrollup_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/store"
)

// A host runs the rollup on its own builder and network, with the log, the final blocks and the
// states in a directory.
func Example_builder() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// block 1 is final: the receiver has 7 wei
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "rollup")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	disk, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer disk.Close()
	key, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	id, to := big.NewInt(7001), common.Address{9}
	chain, err := evmrollup.New(evmrollup.Config{
		ChainID: id, Genesis: types.GenesisAlloc{crypto.PubkeyToAddress(key.PublicKey): {Balance: big.NewInt(params.Ether)}},
		MaxTxsPerBlock: 100, RetainStates: 64, MaxPool: 1000, MaxPerSender: 64, Ledger: disk.Ledger, States: disk.States,
	})
	if err != nil {
		return err
	}
	rollup, err := chain.Rollup()
	if err != nil {
		return err
	}
	const service = 7
	network, err := simnet.Tiny(50*time.Millisecond, service, nil)
	if err != nil {
		return err
	}
	cfg := builder.DefaultConfig(network.Spec())
	cfg.NewChain = true // the simulated chain begins with the process
	b, err := builder.Open(ctx, cfg, disk.Log, rollup, network)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ran := make(chan error, 2)
	go func() { ran <- network.Run(ctx, nil) }()
	go func() { ran <- b.Run(ctx) }()
	defer func() { stop(); <-ran; <-ran }()

	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(10 * params.GWei), Gas: 21_000, To: &to, Value: big.NewInt(7),
	})
	if err != nil {
		return err
	}
	if err := chain.SendTransaction(tx); err != nil {
		return err
	}
	chain.SlotBegan() // at each JAM block: a block that is not full is made
	if err := b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }); err != nil {
		return err
	}
	view, err := chain.StateAt(chain.BlockByNumber(1))
	if err != nil {
		return err
	}
	fmt.Printf("block 1 is final: the receiver has %v wei\n", view.Account(to).Balance)
	return nil
}
