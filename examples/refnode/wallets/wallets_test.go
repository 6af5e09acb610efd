// Package wallets checks the reference node with the libraries that wallets and web pages are made
// of: ethers and viem from npm deploy and use a token that npm's solc compiled. "npm ci" in this
// folder brings them. With -tools, the tools of the folder of this name are tried, too.
package wallets

import (
	"context"
	"encoding/hex"
	"math/big"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/internal/wait"
)

// lookForNode returns the program that runs the scripts. Without it, or without the packages, the
// test is skipped with a message; with JAMQ_REQUIRE_NODE set it fails.
func lookForNode(t *testing.T) string {
	t.Helper()
	missing := ""
	program, err := exec.LookPath("node")
	if err != nil {
		missing = "no node in the path"
	} else if _, err := os.Stat("node_modules"); err != nil {
		missing = `no node_modules: "npm ci" in examples/refnode/wallets brings them`
	}
	switch {
	case missing == "":
		return program
	case os.Getenv("JAMQ_REQUIRE_NODE") != "":
		t.Fatalf("%s, and JAMQ_REQUIRE_NODE is set", missing)
	}
	t.Skipf("%s: ethers and viem are not tried", missing)
	return ""
}

// serve runs a node on an embedded chain that is fast, and returns its URL and the keys of accounts
// with money. If it is in developer mode, there is no traffic, because the scripts count blocks.
func serve(t *testing.T, dev bool) (url, keys string) {
	t.Helper()
	embedded := node.DefaultConfig(jamq.Tiny(), 100*time.Millisecond, 1)
	embedded.Dev = dev
	n, err := node.New(embedded)
	require.NoError(t, err)
	cfg := rpcapi.DefaultConfig()
	if cfg.Dev = dev; dev {
		cfg.RequestTime = 20 * time.Minute // the slowest machine mines in that time
	}
	handler, stop, err := rpcapi.Handler(n, cfg)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	others := make(chan struct{})
	go func() {
		defer close(others)
		if !dev {
			traffic(ctx, n)
		}
	}()
	t.Cleanup(func() {
		stop()
		server.Close()
		cancel()
		<-others
		require.NoError(t, <-ended)
	})
	var all []string
	for _, a := range n.Accounts() {
		all = append(all, "0x"+hex.EncodeToString(a.Key.D.FillBytes(make([]byte, 32))))
	}
	return server.URL, strings.Join(all, ",")
}

// traffic sends a few transactions from the last account until ctx ends. Without transactions a
// rollup creates no blocks, and ethers checks for a receipt only when it sees a new block.
func traffic(ctx context.Context, n *node.Node) {
	from, signer := n.Accounts()[len(n.Accounts())-1], types.LatestSigner(n.ChainConfig())
	for nonce := uint64(0); ; nonce++ {
		tx := types.MustSignNewTx(from.Key, signer, &types.DynamicFeeTx{
			ChainID: n.ChainConfig().ChainID, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei),
			Gas: 21_000, To: &from.Address,
		})
		if err := n.SendTransaction(tx); err != nil {
			return // the scripts would say what is wrong
		}
		if wait.Pace(ctx, 300*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
}

func TestWallets(t *testing.T) {
	program := lookForNode(t)
	for _, file := range []string{"ethers.js", "viem.js", "dev.js", "setting.js", "compile.js", "Token.sol", "package-lock.json"} {
		_, err := os.Stat(file) // so that go test does not take an old result for a new script's
		require.NoError(t, err)
	}
	url, keys := serve(t, false)
	for _, script := range []string{"ethers.js", "viem.js", "dev.js"} {
		t.Run(script, func(t *testing.T) {
			if script == "dev.js" {
				url, keys = serve(t, true)
			}
			cmd := exec.CommandContext(wait.Context(t), program, script)
			cmd.Env = append(os.Environ(), "JAMQ_HTTP="+url, "JAMQ_WS=ws"+strings.TrimPrefix(url, "http"), "JAMQ_KEYS="+keys)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
		})
	}
}
