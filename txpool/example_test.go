package txpool_test

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/txpool"
)

// everybodyRich is a chain on which nothing happened yet.
type everybodyRich struct{}

func (everybodyRich) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

func ExamplePool() {
	chainID := big.NewInt(4359)
	pool, err := txpool.New(txpool.DefaultConfig(chainID), everybodyRich{})
	if err != nil {
		panic(err)
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("example")))
	if err != nil {
		panic(err)
	}
	for _, nonce := range []uint64{0, 2} {
		tx := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{
			Nonce: nonce, GasPrice: big.NewInt(2e9), Gas: 21_000, To: &common.Address{1},
		})
		fmt.Println("nonce", nonce, pool.Add(tx))
	}
	lease := pool.Drain(txpool.Budget{Gas: 30_000_000})
	fmt.Println("into the bundle:", len(lease.Transactions()), "still waiting:", pool.Stats().Queued)
	fmt.Println(lease.Commit(), pool.Size())
	// Output:
	// nonce 0 <nil>
	// nonce 2 <nil>
	// into the bundle: 1 still waiting: 1
	// <nil> 1
}

func ExamplePool_Subscribe() {
	chainID := big.NewInt(4359)
	pool, err := txpool.New(txpool.DefaultConfig(chainID), everybodyRich{})
	if err != nil {
		panic(err)
	}
	events := pool.Subscribe(txpool.SubscribeOptions{Buffer: 16})
	defer events.Close()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("example")))
	if err != nil {
		panic(err)
	}
	for _, price := range []int64{2e9, 3e9} {
		tx := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{GasPrice: big.NewInt(price), Gas: 21_000, To: &common.Address{1}})
		if err := pool.Add(tx); err != nil {
			panic(err)
		}
	}
	for range 3 {
		event, err := events.Next(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println(event.Kind, event.Tx.GasPrice())
	}
	// Output:
	// pending 2000000000
	// replaced 2000000000
	// pending 3000000000
}
