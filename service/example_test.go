package service_test

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// The service of a development chain: its account, its code, and its first storage.
func ExampleGenesis_Entries() {
	entries, err := service.Genesis{
		Service:    7,
		Version:    codec.V072,
		Authorizer: common.HexToHash("0xa0"),
		Block:      proof.Commitment{PostRoot: common.HexToHash("0x01")},
	}.Entries()
	fmt.Println(len(entries), err)
	// Output: 5 <nil>
}

// A simulated chain calls the rules of the service in Go.
func ExampleAccumulate() {
	authorizer := common.HexToHash("0xa0")
	genesis := service.Genesis{Authorizer: authorizer, Block: proof.Commitment{PostRoot: common.HexToHash("0x01")}}
	block := proof.Commitment{Number: 1, PreRoot: genesis.Block.PostRoot, PostRoot: common.HexToHash("0x02")}
	pkg := jamq.PackageHash{9}
	output, err := service.Refine(service.EncodeHeader(block), pkg)
	if err != nil {
		panic(err)
	}
	operand := service.Operand{Package: pkg, Authorizer: authorizer, Output: output}
	storage := genesis.Storage()
	changes, yield, err := service.Accumulate(storage.Get, 100, []service.Operand{operand})
	storage.Write(changes)
	fmt.Println(storage[string(service.CountKey())], yield != nil, err)
	// Output: [1 0 0 0 0 0 0 0] true <nil>
}
