// Command evmhost is an EVM rollup with its own fee rule, precompiled contract and RPC method, on a
// simulated JAM chain. docs/evmrollup.md explains it.
package main

import (
	"context"
	"crypto/ed25519"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/rpcapi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	n, handler, err := open()
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:8545", handler)) }()
	log.Print("JSON-RPC at http://127.0.0.1:8545")
	log.Print("the node has ended: ", n.Run(ctx))
}

// verifier is a precompiled contract that verifies a signature with Ed25519: 32 bytes of the key,
// 64 of the signature, and the message. It returns 1 or 0.
type verifier struct{}

func (verifier) Name() string              { return "ED25519" }
func (verifier) RequiredGas([]byte) uint64 { return 2_000 }

func (verifier) Run(input []byte) ([]byte, error) {
	if len(input) < 96 || !ed25519.Verify(input[:32], input[96:], input[32:96]) {
		return common.Hash{}.Bytes(), nil
	}
	return common.Hash{31: 1}.Bytes(), nil
}

// Shop implements the namespace shop: shop_countBlocks.
type Shop struct{ node *node.Node }

// CountBlocks returns the number of blocks that are final.
func (s *Shop) CountBlocks() uint64 { return s.node.Heads().Finalized.Number }

// at is the address of the verifier, and rich has the money of block 0. Its key is the first one
// of package devkeys, which everyone knows.
var (
	at   = common.HexToAddress("0x0000000000000000000000000000000000ed2551")
	rich = common.HexToAddress("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
)

// open returns a node of the chain, on a simulated JAM chain, and the handler of its RPC.
func open() (*node.Node, http.Handler, error) {
	cfg := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1)
	cfg.ChainID = big.NewInt(7001)
	cfg.Genesis = types.GenesisAlloc{rich: {Balance: big.NewInt(1e18)}, at: {Code: []byte{0xfe}}}
	cfg.Rules.BaseFee = func(*types.Header) *big.Int { return big.NewInt(params.GWei) } // always
	cfg.Rules.Precompiles = vm.PrecompiledContracts{at: verifier{}}
	n, err := node.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	api := rpcapi.DefaultConfig()
	api.APIs = []rpc.API{{Namespace: "shop", Service: &Shop{n}}}
	handler, _, err := rpcapi.Handler(n, api)
	return n, handler, err
}
