package main

import (
	"context"
	"flag"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/examples/refnode/internal/front"
	"github.com/jamq/jamq/internal/wait"
)

// stream is an account that sends one transaction after another.
type stream struct {
	t       *testing.T
	account devkeys.Account
	to      common.Address
	sent    atomic.Uint64
	hashes  []common.Hash // of all that a node has taken
	last    common.Hash
}

// patience is the time that a user waits for an answer before asking again, perhaps another node.
const patience = time.Second

// send sends one transaction, to one node after another, until a node has it, and reports whether
// one has it when ctx ends. It keeps at most 24 transactions outside of blocks.
func (s *stream) send(ctx context.Context, nodes ...*ethclient.Client) bool {
	tries := 0
	tx := types.MustSignNewTx(s.account.Key, types.LatestSignerForChainID(chainID), transfer(s.sent.Load(), s.to))
	done := false
	wait.Until(s.t, func() bool {
		call, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c := nodes[(int(s.sent.Load())+tries)%len(nodes)]
		tries++
		at, err := c.NonceAt(call, s.account.Address, big.NewInt(int64(rpc.LatestBlockNumber)))
		if err == nil && s.sent.Load() <= at+24 {
			err := c.SendTransaction(call, tx)
			if err == nil || strings.Contains(err.Error(), "already known") || strings.Contains(err.Error(), "nonce too low") {
				s.last, done = tx.Hash(), true
				s.hashes = append(s.hashes, s.last)
				s.sent.Add(1)
			}
		}
		return done || ctx.Err() != nil
	}, "the node takes transaction %d", s.sent.Load())
	return done
}

var (
	kills     = flag.Int("kills", 1, "number of faults in TestBuilderIsKilled, and of more faults in TestReplicas")
	killsSeed = flag.Uint64("kills.seed", 1, "seed of the times and kinds of these faults")
)

// builder is this command as a process. It keeps its address and its data directory
// when it is started again.
type builder struct {
	t       testing.TB
	args    []string
	url     string
	front   *front.Front
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	exit    error         // its outcome, when it has ended
	out     lockedBuffer
	// launched is the length of out when the process was launched last.
	launched int
}

func startBuilder(t testing.TB, args ...string) *builder {
	t.Helper()
	return startBehind(t, front.New(t), args...)
}

// startBehind is startBuilder with an address of the caller's.
func startBehind(t testing.TB, f *front.Front, args ...string) *builder {
	t.Helper()
	b := &builder{t: t, front: f, url: "http://" + f.Addr(), args: append([]string{"-http", "127.0.0.1:0", "-datadir", t.TempDir()}, args...)}
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
	b.process = program(b.t, "refnode", b.args...)
	b.process.Stdout, b.process.Stderr = &b.out, &b.out
	require.NoError(b.t, b.process.Start())
	b.ended = make(chan struct{})
	go func() {
		b.exit = b.process.Wait()
		close(b.ended)
	}()
}

// wait waits until the process has ended, and returns its outcome.
func (b *builder) wait() error {
	<-b.ended
	b.front.LeadTo("")
	return b.exit
}

// revive starts the process again if it has ended, as the supervisor of a machine does.
func (b *builder) revive() {
	b.t.Helper()
	select {
	case <-b.ended:
		_ = b.wait()
		b.start()
	default:
	}
}

// awaitListening waits until the process that was launched last listens.
func (b *builder) awaitListening() {
	b.t.Helper()
	wait.Until(b.t, func() bool {
		_, after, _ := strings.Cut(b.out.after(b.launched), "Listening on http://")
		addr, _, complete := strings.Cut(after, " ")
		if complete {
			b.front.LeadTo(addr)
		}
		return complete
	}, "the node listens: %s", &b.out)
}

// kill ends the process as a crash does.
func (b *builder) kill() {
	b.front.LeadTo("")
	_ = b.process.Process.Kill()
	_ = b.wait()
}

// end ends the process as an operator does, and waits until it has ended.
func (b *builder) end() {
	b.t.Helper()
	b.signal(os.Interrupt)
	_ = b.wait()
}

func (b *builder) signal(s os.Signal) { _ = b.process.Process.Signal(s) }

// sendAll sends n transfers one after another.
func (s *stream) sendAll(ctx context.Context, n uint64, nodes ...*ethclient.Client) {
	for s.sent.Load() < n && s.send(ctx, nodes...) {
	}
}

// finalBlock returns the number of a node's final block, or 0 if it does not answer.
func finalBlock(ctx context.Context, c *ethclient.Client) uint64 {
	var status rpcapi.QueueStatus
	_ = c.Client().CallContext(ctx, &status, "jam_queueStatus")
	return uint64(status.Finalized)
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

// TestBuilderIsKilled kills the node at random points under load. Nothing is lost, nothing is
// executed twice, and the finalized root is that of a node that was left alone. Each block holds
// one transaction, so that the same input makes the same blocks.
func TestBuilderIsKilled(t *testing.T) {
	t.Parallel()
	const perLife = 12
	transactions := perLife * uint64(*kills+1)
	ctx := wait.Context(t)
	sender := func(url string) (*stream, *ethclient.Client) {
		return &stream{t: t, account: accounts(t)[4], to: common.Address{0xf6}}, dial(t, url)
	}

	calm := startJAMNode(t, "-slot", "60ms")
	alone := startBuilder(t, "-jam", calm.url, "-bundle", "1")
	steady, c := sender(alone.url)
	var sending sync.WaitGroup
	sending.Go(func() { steady.sendAll(ctx, transactions, c) })

	jam := startJAMNode(t, "-slot", "60ms", "-loss", "0.1", "-skip", "0.1", "-fork", "0.1", "-seed", "9")
	b := startBuilder(t, "-jam", jam.url, "-bundle", "1")
	s, d := sender(b.url)
	sending.Go(func() { s.sendAll(ctx, transactions, d) })
	random := rand.New(rand.NewPCG(*killsSeed, uint64(*kills)))
	for kill := range uint64(*kills) {
		some := perLife*kill + random.Uint64N(perLife)
		wait.Until(t, func() bool { return s.sent.Load() > some }, "the node has %d transactions", some)
		if kill == 0 { // the restart finds blocks that are final, and others
			wait.Until(t, func() bool { return finalBlock(ctx, d) > 0 }, "a block is final")
		}
		b.kill()
		b.start()
	}
	sending.Wait()
	want, got := alone.finish(steady.last), b.finish(s.last)
	require.EqualValues(t, 7*transactions, got.balance)
	require.Equal(t, want, got)
}
