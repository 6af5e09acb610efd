package eoatest_test

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/eoa/eoatest"
)

// A reorganization puts transactions back into the pool, and the next block takes them again.
func Example() {
	const chainID = 1337
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("a user")))
	if err != nil {
		fmt.Println(err)
		return
	}
	tx := types.MustSignNewTx(key, types.LatestSignerForChainID(big.NewInt(chainID)), &types.DynamicFeeTx{
		ChainID: big.NewInt(chainID), GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(1e12), Gas: 21_000, To: &common.Address{1},
	})
	raw, err := tx.MarshalBinary()
	if err != nil {
		fmt.Println(err)
		return
	}
	chain := eoatest.New(chainID, 1, 3)
	fmt.Println("sent:", chain.Send(context.Background(), [][]byte{raw})[0].Result)
	chain.Mine()
	fmt.Println("mined:", len(chain.Transactions()), "waiting:", chain.Pooled())
	chain.Reorg(1)
	fmt.Println("mined:", len(chain.Transactions()), "waiting:", chain.Pooled())
	chain.Mine()
	fmt.Println("mined:", len(chain.Transactions()), "waiting:", chain.Pooled())
	// Output:
	// sent: accepted
	// mined: 1 waiting: 0
	// mined: 0 waiting: 1
	// mined: 1 waiting: 0
}
