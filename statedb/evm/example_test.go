package evm_test

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
)

// A block runs on a view of the state before it, and once more on nothing but what it read.
func Example() {
	config := evm.ChainConfig(big.NewInt(4359))
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("alice")))
	must(err)
	store := statedb.NewStore()
	view, err := store.View(statedb.EmptyRoot)
	must(err)
	must(evm.Genesis(view, types.GenesisAlloc{crypto.PubkeyToAddress(key.PublicKey): {Balance: big.NewInt(1e18)}}))
	genesis, err := view.Commit()
	must(err)

	header := &types.Header{Number: big.NewInt(1), GasLimit: 30_000_000, BaseFee: big.NewInt(1e9), Time: 1}
	payment := types.MustSignNewTx(key, types.LatestSigner(config), &types.LegacyTx{GasPrice: big.NewInt(2e9), Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(5)})
	run := func(view *statedb.View) common.Hash {
		block, err := evm.NewBlock(view, config, header, func(uint64) common.Hash { return common.Hash{} })
		must(err)
		receipt, err := block.Apply(payment)
		must(err)
		must(block.Finish())
		fmt.Println("status", receipt.Status, "gas", receipt.GasUsed, "bob has", view.Account(common.Address{1}).Balance)
		root, err := view.Root()
		must(err)
		return root
	}
	view, err = store.View(genesis)
	must(err)
	root := run(view)
	witness, err := view.Witness()
	must(err)
	stateless, err := statedb.NewStateless(witness, genesis)
	must(err)
	fmt.Println("the same root:", run(stateless) == root)
	// Output:
	// status 1 gas 21000 bob has 5
	// status 1 gas 21000 bob has 5
	// the same root: true
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
