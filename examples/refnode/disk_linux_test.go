package main

import (
	"errors"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/smalldisk"
	"github.com/jamq/jamq/internal/wait"
)

// noSpace is the reason as the operating system gives it.
var noSpace = syscall.ENOSPC.Error()

// untilRefused sends transactions with much data until the node refuses one
// because its disk is full. It returns those that were accepted.
func untilRefused(t *testing.T, c *ethclient.Client) (accepted []common.Hash) {
	t.Helper()
	from, to := accounts(t)[6], common.Address{0xd1}
	wait.Until(t, func() bool {
		require.Less(t, len(accepted), 5000, "the disk is not full after 40 MB")
		tx := types.MustSignNewTx(from.Key, types.LatestSignerForChainID(chainID), &types.LegacyTx{
			Nonce: uint64(len(accepted)), To: &to, GasPrice: big.NewInt(20 * params.GWei), Gas: 200_000, Data: make([]byte, 8<<10),
		})
		err := c.SendTransaction(t.Context(), tx)
		if err == nil {
			accepted = append(accepted, tx.Hash())
		}
		// Another error is that of a full pool.
		return err != nil && strings.Contains(err.Error(), noSpace)
	}, "the disk is full")
	return accepted
}

// ask returns the status and the text of a page.
func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// The disk becomes full under load. The process keeps running and answering, and
// refuses transactions with the reason. Once there is space, a restart has all
// accepted transactions.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "32m")
	jam := startJAMNode(t, "-slot", "60ms")
	b := startBuilder(t, "-jam", jam.url, "-datadir", filepath.Join(dir, "data"))
	c := dial(t, b.url)
	ballast := smalldisk.Fill(t, dir, 2<<20)
	accepted := untilRefused(t, c)
	require.NotEmpty(t, accepted)
	t.Logf("%d transactions were accepted", len(accepted))

	refuses := func() {
		t.Helper()
		for _, page := range []string{"/healthz", "/readyz"} {
			status, text := ask(t, b.url+page)
			require.Equal(t, http.StatusServiceUnavailable, status, "%s: %s", page, text)
			require.Contains(t, text, noSpace, page)
		}
		// The room of the first account in the pool may be used up.
		for from, nonce := range map[int]uint64{6: uint64(len(accepted)), 7: 0} {
			tx := types.MustSignNewTx(accounts(t)[from].Key, types.LatestSignerForChainID(chainID), transfer(nonce, common.Address{1}))
			require.ErrorContains(t, c.SendTransaction(t.Context(), tx), noSpace)
		}
		_, err := c.BlockNumber(t.Context())
		require.NoError(t, err, "it can be read")
	}
	refuses()
	wait.Until(t, func() bool { return strings.Contains(b.out.String(), "the node has stopped") }, "the node stops: %s", &b.out)
	refuses()
	require.NoError(t, os.Remove(ballast))
	refuses() // until a restart reads the disk again

	require.NoError(t, b.process.Process.Signal(os.Interrupt))
	var failed interface{ ExitCode() int }
	require.True(t, errors.As(b.wait(), &failed))
	require.Equal(t, exitFailed, failed.ExitCode())
	b.start()
	b.finish(accepted[len(accepted)-1])
	for i, hash := range accepted {
		_, err := dial(t, b.url).TransactionReceipt(t.Context(), hash)
		require.NoError(t, err, "transaction %d of %d was accepted", i, len(accepted))
	}
	status, text := ask(t, b.url+"/healthz")
	require.Equal(t, http.StatusOK, status, text)
}
