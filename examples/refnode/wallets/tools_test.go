package wallets

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

var tools = flag.Bool("tools", false, `try the tools that "npm ci" in the folder tools brings`)

// toolRunner returns the URL of a node in developer mode, and a function that runs a tool of npm,
// or a script, on it and returns its output.
func toolRunner(t *testing.T) (url string, run func(name string, args ...string) string) {
	if !*tools {
		t.Skip("-tools is not set: the tools are not tried")
	}
	url, _ = serve(t, true)
	return url, func(name string, args ...string) string {
		t.Helper()
		program := filepath.Join("node_modules", ".bin", name)
		if strings.HasSuffix(name, ".js") {
			program, args = "node", append([]string{name}, args...)
		}
		cmd := exec.CommandContext(wait.Context(t), program, args...)
		cmd.Dir = "tools"
		cmd.Env = append(os.Environ(), "RPC="+url, "ETH_RPC_URL="+url, "HARDHAT_DISABLE_TELEMETRY_PROMPT=true", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %v: %s", name, args, out)
		return strings.TrimSpace(string(out))
	}
}

// testWithHardhat runs a file of tests with Hardhat, and requires that all of them pass.
func testWithHardhat(t *testing.T, file string, tests int) {
	t.Helper()
	_, run := toolRunner(t)
	out := run("hardhat", "test", "--network", "localhost", "test/"+file)
	require.Contains(t, out, fmt.Sprintf("%d passing", tests))
	require.NotContains(t, out, "failing")
	require.NotContains(t, out, "pending")
}

// A test of a contract as Hardhat's users write it passes on the node, with fixtures, matchers
// and helpers.
func TestHardhat(t *testing.T) { testWithHardhat(t, "Coin.js", 8) }

// Tests that let a year go by start from a fixture, each at the time of the fixture.
func TestHardhatTime(t *testing.T) { testWithHardhat(t, "Vault.js", 10) }

// The published bytecode of Uniswap V2 makes pools and swaps, and computes the same amounts as
// its formula.
func TestUniswap(t *testing.T) { testWithHardhat(t, "Uniswap.js", 7) }

// Contracts of OpenZeppelin do what they promise: permits, votes, roles, and proxies.
func TestOpenZeppelin(t *testing.T) { testWithHardhat(t, "OpenZeppelin.js", 8) }

// TestWeb3 runs a script with web3.js: accounts, transfers, a contract, its events and reverts.
func TestWeb3(t *testing.T) {
	_, run := toolRunner(t)
	require.Contains(t, run("web3.js"), "ok: a batch", "the last step")
}

// Foundry's forge deploys with a script, from an account for which the node signs, and cast reads
// and sends.
func TestFoundry(t *testing.T) {
	url, run := toolRunner(t)
	from := common.HexToAddress("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
	out := run("forge", "script", "script/Deploy.s.sol:Deploy", "--rpc-url", url, "--broadcast", "--unlocked", "--sender", from.Hex())
	require.Contains(t, out, "ONCHAIN EXECUTION COMPLETE & SUCCESSFUL")
	coin, friend := crypto.CreateAddress(from, 0).Hex(), common.BigToAddress(common.Big3).Hex()
	call := func(of string) string { return run("cast", "call", coin, "balanceOf(address)(uint256)", of) }
	require.Equal(t, "995", strings.Fields(call(from.Hex()))[0])
	run("cast", "send", coin, "pay(address,uint256)", friend, "2", "--unlocked", "--from", from.Hex())
	require.Equal(t, "2", strings.Fields(call(friend))[0])

	var logs []struct{ Topics []common.Hash }
	require.NoError(t, json.Unmarshal([]byte(run("cast", "logs", "--from-block", "0", "--address", coin, "--json")), &logs))
	require.Len(t, logs, 2)
	require.Equal(t, crypto.Keccak256Hash([]byte("Paid(address,address,uint256)")), logs[0].Topics[0])
	require.Equal(t, "4359", run("cast", "chain-id"))
	run("cast", "block", "latest", "--full")
	require.Equal(t, "4", run("cast", "nonce", from.Hex()))
}
