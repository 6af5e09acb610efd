//go:build cgo

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

const (
	softhsm = "/usr/lib/softhsm/libsofthsm2.so"
	pin     = "4711"
)

// newToken makes an empty token of SoftHSM. It skips the test if SoftHSM is not
// installed, unless JAMQ_REQUIRE_SOFTHSM is set.
func newToken(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("softhsm2-util"); err != nil {
		if os.Getenv("JAMQ_REQUIRE_SOFTHSM") != "" {
			t.Fatal(err)
		}
		t.Skip("softhsm2-util is not installed")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "softhsm2.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "directories.tokendir = %s\nlog.level = ERROR\n", dir), 0o600))
	t.Setenv("SOFTHSM2_CONF", config)
	out, err := exec.Command("softhsm2-util", "--init-token", "--free", "--label", "jamq", "--so-pin", pin, "--pin", pin).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// An account whose key was made in the token, and cannot leave it, sends ether on a chain
// of go-ethereum. The key outlives the program.
func TestSend(t *testing.T) {
	newToken(t)
	ctx := wait.Context(t)
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := command(ctx, append([]string{"-module", softhsm}, args...), pin, &out)
		return strings.TrimSpace(out.String()), err
	}
	_, err := run()
	require.ErrorIs(t, err, errNoKey)
	address, err := run("-create")
	require.NoError(t, err)
	again, err := run()
	require.NoError(t, err)
	require.Equal(t, address, again)
	_, err = run("-create")
	require.ErrorContains(t, err, "already")

	from, to := common.HexToAddress(address), common.Address{7}
	pipe := filepath.Join(t.TempDir(), "geth.ipc")
	chain := simulated.NewBackend(types.GenesisAlloc{from: {Balance: new(big.Int).Lsh(big.NewInt(1), 80)}}, func(n *node.Config, _ *ethconfig.Config) {
		n.IPCPath = pipe
	})
	defer func() { require.NoError(t, chain.Close()) }()
	done := make(chan error, 1)
	var out string
	go func() {
		var err error
		out, err = run("-rpc", pipe, "-to", to.Hex(), "-wei", "42")
		done <- err
	}()
	wait.Until(t, func() bool {
		if n, err := chain.Client().PendingNonceAt(ctx, from); err == nil && n > 0 {
			chain.Commit()
		}
		select {
		case err := <-done:
			require.NoError(t, err)
			return true
		default:
			return false
		}
	}, "sent")
	require.Regexp(t, "from "+address+": (confirmed|final)", out)
	balance, err := chain.Client().BalanceAt(ctx, to, nil)
	require.NoError(t, err)
	require.EqualValues(t, 42, balance.Uint64())
}

// Several sessions sign at once, each signature for its digest.
func TestSignsAtOnce(t *testing.T) {
	newToken(t)
	token, err := openToken(softhsm, "jamq", pin)
	require.NoError(t, err)
	defer func() { require.NoError(t, token.close()) }()
	require.NoError(t, token.create("eoa"))
	key, err := token.key("eoa")
	require.NoError(t, err)
	signAll(t, key, 4*sessions)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range sessions {
		<-token.free
	}
	_, err = key.Sign(ended, make([]byte, 32))
	require.ErrorIs(t, err, context.Canceled, "no session is free")
}

func TestOpenErrors(t *testing.T) {
	newToken(t)
	for name, c := range map[string][3]string{
		"module": {"/nowhere.so", "jamq", pin},
		"token":  {softhsm, "another", pin},
		"PIN":    {softhsm, "jamq", "0000"},
	} {
		_, err := openToken(c[0], c[1], c[2])
		require.Error(t, err, name)
	}
}
