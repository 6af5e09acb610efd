// Package embed holds the program of the README: a pool and a queue in 25 lines.
package embed

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/txpool"
)

type state struct{}

func (state) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func Example() {
	chainID := big.NewInt(4359)
	pool := must(txpool.New(txpool.DefaultConfig(chainID), state{}))
	queue := must(bundlequeue.New[types.Transactions](bundlequeue.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{1}}))

	key := must(crypto.ToECDSA(crypto.Keccak256([]byte("a user"))))
	tx := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{GasPrice: big.NewInt(2e9), Gas: 21_000, To: &common.Address{1}})
	fmt.Println("add:", pool.Add(tx))

	lease := pool.Drain(txpool.Budget{Gas: 30_000_000}) // execute these on your state
	bundle := bundlequeue.Enqueue[types.Transactions]{Number: queue.Next(), Bundle: lease.Transactions()}
	must(queue.Step(time.Now(), bundle))
	fmt.Println("commit:", lease.Commit(), "left in the pool:", pool.Size())

	block := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: jamq.HeaderHash{1}, Slot: 1}
	for _, effect := range must(queue.Step(time.Now(), bundlequeue.Imported{Block: block, Best: block.Hash})) {
		if build, ok := effect.(bundlequeue.Build[types.Transactions]); ok {
			fmt.Printf("build a package for block %d, version %d, on core %d\n", build.Number, build.Version, build.Core)
		}
	}
	// Output:
	// add: <nil>
	// commit: <nil> left in the pool: 0
	// build a package for block 1, version 1, on core 0
}
