// Package embed holds the program of the README: a pool and a queue in 25 lines.
package embed

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

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
	key := must(crypto.ToECDSA(crypto.Keccak256([]byte("a user"))))
	tx := types.MustSignNewTx(key, types.LatestSignerForChainID(big.NewInt(4359)), &types.LegacyTx{GasPrice: big.NewInt(2e9), Gas: 21_000, To: &common.Address{1}})
	genesis := jamq.Block{Hash: jamq.HeaderHash{1}}
	block := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: genesis.Hash, Slot: 1}

	chainID := big.NewInt(4359)
	pool := must(txpool.New(txpool.DefaultConfig(chainID), state{}))
	queue := must(bundlequeue.New[types.Transactions](bundlequeue.DefaultConfig(jamq.Tiny()), genesis))

	fmt.Println("add:", pool.Add(tx))

	var txs types.Transactions
	session := pool.Build(context.Background(), txpool.Budget{Gas: 30_000_000})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		txs = append(txs, tx) // execute it on your state
		session.Used(21_000, tx.Size())
	}
	must(queue.Step(time.Now(), bundlequeue.Enqueue[types.Transactions]{Number: 1, Bundle: txs}))
	fmt.Println("commit:", session.Commit(), "left in the pool:", pool.Size())

	imported := bundlequeue.Imported{Block: block, Best: block.Hash} // from your JAM node
	for _, effect := range must(queue.Step(time.Now(), imported)) {
		if build, ok := effect.(bundlequeue.Build[types.Transactions]); ok {
			fmt.Printf("build block %d, version %d, core %d\n", build.Number, build.Version, build.Core)
		}
	}
	// Output:
	// add: <nil>
	// commit: <nil> left in the pool: 0
	// build block 1, version 1, core 0
}

// TestReadme compares the program in the README with this file.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	file, err := os.ReadFile("embed_test.go")
	require.NoError(t, err)
	_, program, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	program, _, found = strings.Cut(program, "// add:")
	require.True(t, found)
	require.Contains(t, strings.ReplaceAll(string(file), "\n\t", "\n"), strings.TrimSpace(program))
}
