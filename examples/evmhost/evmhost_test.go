// Package evmhost holds the program of docs/evmrollup.md: an EVM rollup with its own fee rule,
// precompiled contract and RPC method.
package evmhost

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/rpcapi"
)

// verifier is a precompiled contract that verifies a signature with Ed25519: 32 bytes of the key,
// 64 of the signature, and the message. It returns 1 or 0.
type verifier struct{}

func (verifier) Name() string              { return "ED25519" }
func (verifier) RequiredGas([]byte) uint64 { return 2_000 }

func (verifier) Run(input []byte) ([]byte, error) {
	if len(input) < 96 {
		return nil, errors.New("a key and a signature have 96 bytes")
	}
	if ed25519.Verify(input[:32], input[96:], input[32:96]) {
		return common.Hash{31: 1}.Bytes(), nil
	}
	return common.Hash{}.Bytes(), nil
}

// Shop implements the namespace shop: shop_countBlocks.
type Shop struct{ node *node.Node }

// CountBlocks returns the number of blocks that are final.
func (s *Shop) CountBlocks() uint64 { return s.node.Heads().Finalized.Number }

// at is the address of the verifier.
var at = common.HexToAddress("0x0000000000000000000000000000000000ed2551")

// open returns a node of the chain, on a simulated JAM chain, and the handler of its RPC.
func open() (*node.Node, http.Handler, error) {
	cfg := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1)
	cfg.ChainID = big.NewInt(7001)
	cfg.Genesis = types.GenesisAlloc{{1}: {Balance: big.NewInt(params.Ether)}, at: {Code: []byte{0xfe}}}
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

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n, handler, err := open()
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = n.Run(ctx) }()
	server := httptest.NewServer(handler)
	defer server.Close()
	if err := ask(server.URL); err != nil {
		fmt.Println(err)
	}
	// Output:
	// chain 0x1b59, base fee 0x3b9aca00, 0 blocks are final
	// the signature is valid: true
}

// ask calls the methods and the contract of this chain.
func ask(url string) error {
	client, err := rpc.Dial(url)
	if err != nil {
		return err
	}
	defer client.Close()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	input := hexutil.Bytes(slices.Concat(public, ed25519.Sign(private, []byte("hello")), []byte("hello")))
	var id, fee string
	var blocks uint64
	var valid common.Hash
	err = errors.Join(
		client.Call(&id, "eth_chainId"), client.Call(&fee, "eth_baseFee"), client.Call(&blocks, "shop_countBlocks"),
		client.Call(&valid, "eth_call", map[string]any{"to": at, "data": input}, "latest"),
	)
	fmt.Printf("chain %s, base fee %s, %d blocks are final\n", id, fee, blocks)
	fmt.Println("the signature is valid:", valid == common.Hash{31: 1})
	return err
}

// TestPage compares the programs in docs/evmrollup.md with this file.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/evmrollup.md")
	require.NoError(t, err)
	file, err := os.ReadFile("evmhost_test.go")
	require.NoError(t, err)
	parts := strings.Split(string(page), "```go\n")
	require.Greater(t, len(parts), 2)
	for _, part := range parts[1:] {
		program, _, found := strings.Cut(part, "```")
		require.True(t, found)
		require.Contains(t, strings.ReplaceAll(string(file), "\n\t", "\n"), strings.ReplaceAll(strings.TrimSpace(program), "\n\t", "\n"))
	}
}
