package main

import (
	"context"
	"flag"
	"math/big"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/devkeys"
)

// stream is an account that sends one transaction after another.
type stream struct {
	account devkeys.Account
	to      common.Address
	sent    uint64
	last    common.Hash
}

// send sends one transaction until the node has it, and reports whether the node
// has it when ctx ends. It keeps at most 24 transactions outside of blocks.
func (s *stream) send(ctx context.Context, c *ethclient.Client) bool {
	tx := types.MustSignNewTx(s.account.Key, types.LatestSignerForChainID(chainID), transfer(s.sent, s.to))
	for ctx.Err() == nil {
		at, err := c.NonceAt(ctx, s.account.Address, big.NewInt(int64(rpc.LatestBlockNumber)))
		if err == nil && s.sent <= at+24 {
			err := c.SendTransaction(ctx, tx)
			if err == nil || strings.Contains(err.Error(), "already known") || strings.Contains(err.Error(), "nonce too low") {
				s.sent, s.last = s.sent+1, tx.Hash()
				return true
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

var kills = flag.Int("kills", 5, "how often TestBuilderIsKilled kills the node")

// builder is this command as a process. It keeps its port and its data directory
// when it is started again.
type builder struct {
	t       *testing.T
	binary  string
	args    []string
	url     string
	process *exec.Cmd
	out     lockedBuffer
	// launched is the length of out when the process was launched last.
	launched int
}

func buildNode(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "refnode")
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func startBuilder(t *testing.T, binary string, args ...string) *builder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	b := &builder{t: t, binary: binary, url: "http://" + addr, args: append([]string{"-http", addr, "-datadir", t.TempDir()}, args...)}
	b.start()
	t.Cleanup(func() {
		b.kill()
		if t.Failed() {
			t.Log(tail(b.out.String()))
		}
	})
	return b
}

// tail returns the last 64 KiB of a text.
func tail(text string) string {
	const most = 64 << 10
	return text[max(0, len(text)-most):]
}

// startTime bounds how long a process may take until it listens. After many
// blocks a node executes all of them first.
const startTime = 2 * time.Minute

// start starts the process and waits until it listens.
func (b *builder) start() {
	b.t.Helper()
	b.launch()
	b.awaitListening()
}

// launch starts the process.
func (b *builder) launch() {
	b.t.Helper()
	b.launched = b.out.Len()
	b.process = exec.Command(b.binary, b.args...)
	b.process.Stdout, b.process.Stderr = &b.out, &b.out
	require.NoError(b.t, b.process.Start())
}

// awaitListening waits until the process that was launched last listens.
func (b *builder) awaitListening() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return strings.Contains(b.out.after(b.launched), "Listening on")
	}, startTime, 5*time.Millisecond, "%s", &b.out)
}

// kill ends the process as a crash does.
func (b *builder) kill() {
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
}

// sendAll sends transfers one after another and returns the last.
func sendAll(ctx context.Context, t *testing.T, url string, n uint64, pace time.Duration) common.Hash {
	c, err := ethclient.DialContext(ctx, url)
	require.NoError(t, err)
	defer c.Close()
	s := &stream{account: accounts(t)[4], to: common.Address{0xf6}}
	for s.sent < n && s.send(ctx, c) {
		time.Sleep(pace)
	}
	return s.last
}

// result is the state at the end of a run.
type result struct {
	balance uint64
	blocks  uint64
	root    common.Hash
}

// finish waits until a transaction is final and returns the node's state then. The oracle is the
// service's state on the finalized chain.
func (b *builder) finish(last common.Hash) result {
	b.t.Helper()
	c := dial(b.t, b.url)
	waitFor(b.t, c, last, rpc.FinalizedBlockNumber)
	tx, _, err := c.TransactionByHash(b.t.Context(), last)
	require.NoError(b.t, err)
	balance, err := c.BalanceAt(b.t.Context(), *tx.To(), nil)
	require.NoError(b.t, err)
	var status struct {
		Finalized     string      `json:"finalized"`
		CanonicalRoot common.Hash `json:"canonicalRoot"`
		Service       struct {
			Total            uint64
			Duplicates, Gaps []uint64
		} `json:"service"`
	}
	require.NoError(b.t, c.Client().CallContext(b.t.Context(), &status, "jam_queueStatus"))
	require.Empty(b.t, status.Service.Duplicates, "executed twice")
	require.Empty(b.t, status.Service.Gaps)
	final, err := c.HeaderByNumber(b.t.Context(), nil)
	require.NoError(b.t, err)
	return result{balance.Uint64(), final.Number.Uint64(), status.CanonicalRoot}
}

// TestBuilderIsKilled kills the node at random moments under load. Nothing is lost, nothing is
// executed twice, and the finalized root is that of a node that was left alone. Each block holds
// one transaction, so that the same input makes the same blocks.
func TestBuilderIsKilled(t *testing.T) {
	binary := buildNode(t)
	transactions := 20 * uint64(*kills+1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(60+8**kills)*time.Second)
	defer cancel()

	calm := startJAMNode(t, "-slot", "60ms")
	alone := startBuilder(t, binary, "-jam", calm.url, "-bundle", "1")
	want := alone.finish(sendAll(ctx, t, alone.url, transactions, 0))

	jam := startJAMNode(t, "-slot", "60ms", "-loss", "0.1", "-skip", "0.1", "-fork", "0.1", "-seed", "9")
	b := startBuilder(t, binary, "-jam", jam.url, "-bundle", "1")
	var sending sync.WaitGroup
	var last common.Hash
	sending.Go(func() { last = sendAll(ctx, t, b.url, transactions, 25*time.Millisecond) })
	random := rand.New(rand.NewPCG(1, uint64(*kills)))
	for range *kills {
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		b.kill()
		b.start()
	}
	sending.Wait()
	got := b.finish(last)
	require.EqualValues(t, 7*transactions, got.balance)
	require.Equal(t, want, got)
}
