package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
)

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

// TestPage compares the programs in docs/evmrollup.md with main.go: the last one is the whole
// file.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/evmrollup.md")
	require.NoError(t, err)
	file, err := os.ReadFile("main.go")
	require.NoError(t, err)
	parts := strings.Split(string(page), "```go\n")[1:]
	require.Greater(t, len(parts), 1)
	flat := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n\t", "\n") }
	var last string
	for _, part := range parts {
		program, _, found := strings.Cut(part, "```")
		require.True(t, found)
		require.Contains(t, flat(string(file)), flat(program))
		last = program
	}
	require.Equal(t, string(file), last)
}
