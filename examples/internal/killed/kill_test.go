//go:build unix

package killed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/pebble/pebblejournal"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

const rollup jamq.ServiceID = 9

// asBuilder and atNode are the variables that make the test binary a builder: the
// directory of its log, and the URL of its JAM node.
const asBuilder, atNode = "KILLED_TEST_DIR", "KILLED_TEST_NODE"

// TestMain lets the test binary be the builder that TestKill kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(asBuilder); dir != "" {
		fmt.Fprintln(os.Stderr, runBuilder(dir, os.Getenv(atNode), os.Stdin, os.Stdout))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runBuilder is a whole program: it reads an operation per line, and repeats it when it
// is safe.
func runBuilder(dir, url string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	log, err := pebblejournal.Open(dir, pebblejournal.Options{})
	if err != nil {
		return err
	}
	network, err := jip2net.Open(ctx, jip2net.Config{
		Node: jip2.DefaultConfig(url), Version: codec.V072,
		Package: codec.OneItem(rollup, common.Hash{}, common.Hash{}, 1_000_000_000, 1_000_000), Sign: words.Signer.Sign,
		Service: jip2.Service{
			ID: rollup, Key: service.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
	})
	if err != nil {
		return err
	}
	cfg := builder.DefaultConfig(network.Spec())
	cfg.CheckpointEvery = 100
	cfg.Queue.MaxVersionRetries = 0 // blocks fail
	b, err := builder.Open(ctx, cfg, log, builder.Rollup[words.Body](new(words.Saving)), network)
	if err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if err := b.Submit(ctx, lines.Bytes()); err != nil {
				fmt.Fprintln(os.Stderr, "submit:", err)
				continue
			}
			fmt.Fprintln(out, lines.Text())
		}
	}()
	return b.Run(ctx)
}

// users count the operations that were accepted and those that the final chain executed.
type users struct {
	mu       sync.Mutex
	accepted map[string]bool
	executed map[string]int
	blocks   int
}

func (u *users) accept(line string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accepted[line] = true
}

// judge follows the final chain, as the rollup's service does.
func (u *users) judge(update jamtest.Update) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range update.Final {
		if a.Service == rollup {
			u.blocks++
			for _, op := range words.Executed(a.Payload) {
				u.executed[string(op)]++
			}
		}
	}
}

// count returns how many operations were accepted, how many of these are not executed,
// and those that were executed twice.
func (u *users) count() (accepted, missing int, twice []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for op := range u.accepted {
		if u.executed[op] == 0 {
			missing++
		}
	}
	for op, n := range u.executed {
		if n > 1 {
			twice = append(twice, op)
		}
	}
	return len(u.accepted), missing, twice
}

// startChain starts a JAM node with a hostile chain, and returns its URL.
func startChain(t *testing.T, u *users) (url string) {
	t.Helper()
	spec := jamq.Tiny()
	spec.SlotDuration = 60 * time.Millisecond
	chain := jamtest.DefaultConfig(spec, repeat.First())
	chain.StartSlot = jamq.NewSlotClock(spec).SlotAt(time.Now())
	chain.LossProbability, chain.SkipProbability = 0.2, 0.1
	chain.FinalityLag, chain.MaxForkDepth, chain.ForkProbability = 3, 2, 0.1
	chain.Genesis = words.Genesis(rollup)
	cfg := jip2server.DefaultConfig(chain)
	cfg.Observe = u.judge
	server, err := jip2server.New(cfg)
	require.NoError(t, err)
	web := httptest.NewServer(server)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.Cut()
		web.Close()
	})
	return "ws" + strings.TrimPrefix(web.URL, "http")
}

// TestKill: a real builder on Pebble, at a real connection, is killed again and again while blocks
// fail. Everything that it has accepted is executed once.
func TestKill(t *testing.T) {
	u := &users{accepted: make(map[string]bool), executed: make(map[string]int)}
	url, dir := startChain(t, u), t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	kills := repeat.Times(4, 40)
	random := rand.New(rand.NewPCG(repeat.First(), 1))
	for life := range kills + 1 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), asBuilder+"="+dir, atNode+"="+url)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var reading sync.WaitGroup
		reading.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				u.accept(lines.Text())
			}
		})
		before, _, _ := u.count()
		some := 1 + random.IntN(40)
		for i := range some + 10 { // more than the test awaits, so that some are on their way
			_, err := fmt.Fprintf(in, "%d-%d\n", life, i)
			require.NoError(t, err)
		}
		wait.Until(t, func() bool { n, _, _ := u.count(); return n >= before+some }, "%d operations are accepted", some)
		if life == kills {
			wait.Until(t, func() bool { _, missing, _ := u.count(); return missing == 0 }, "everything is executed")
		} else if life%2 == 1 {
			blocks := u.final()
			wait.Until(t, func() bool { return u.final() > blocks }, "a block is final")
		}
		require.NoError(t, cmd.Process.Kill())
		reading.Wait()
		require.Error(t, cmd.Wait(), "it ended before it was killed")
	}
	accepted, missing, twice := u.count()
	require.Zero(t, missing)
	require.Empty(t, twice)
	t.Logf("%d kills, %d operations accepted, %d blocks", kills, accepted, u.final())
}

// final returns the number of the final blocks.
func (u *users) final() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.blocks
}
