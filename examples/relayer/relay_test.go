package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/internal/wait"
)

func newTestChain(t *testing.T, more ...*ecdsa.PrivateKey) *chain {
	c, err := newChain(20*time.Millisecond, append(more, developer())...)
	require.NoError(t, err)
	t.Cleanup(c.close)
	return c
}

func (c *chain) dial(t *testing.T) *ethclient.Client {
	client, err := ethclient.Dial(c.url)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// landed counts the account's transactions on the chain itself.
func landed(t *testing.T, c *chain) int {
	client := c.dial(t)
	ctx := context.Background()
	head, err := client.BlockNumber(ctx)
	require.NoError(t, err)
	n := 0
	for i := uint64(0); i <= head; i++ {
		b, err := client.BlockByNumber(ctx, new(big.Int).SetUint64(i))
		require.NoError(t, err)
		n += len(b.Transactions())
	}
	return n
}

// A thousand transfers land on a real pool and a real chain, each once.
func TestThousand(t *testing.T) {
	c := newTestChain(t)
	var out bytes.Buffer
	r := &relay{n: 1000, finality: 2, key: developer(), out: &out}
	require.NoError(t, r.run(context.Background(), c.dial(t).Client()))
	require.Contains(t, out.String(), "final        1000")
	require.Equal(t, 1000, landed(t, c))
	t.Log(out.String())
}

// An operator follows a transfer until a node has it, then blocks are made.
func TestMetrics(t *testing.T) {
	c, err := newChain(time.Hour, developer())
	require.NoError(t, err)
	defer c.close()
	lines, out := io.Pipe()
	r := &relay{n: 1, finality: 2, key: developer(), out: out, metrics: "127.0.0.1:0"}
	ended := make(chan error, 1)
	client := c.dial(t).Client()
	go func() { ended <- r.run(wait.Context(t), client) }()
	printed := bufio.NewReader(lines)
	first, err := printed.ReadString('\n')
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, printed) }() // ends with the pipe
	defer out.Close()
	url, is := strings.CutPrefix(strings.TrimSpace(first), "metrics at ")
	require.True(t, is, first)
	wait.Until(t, func() bool {
		response, err := http.Get(url)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return strings.Contains(string(text), `jamq_eoa_transactions_total{event="accepted"} 1`)
	}, "an accepted transfer")
	wait.Until(t, func() bool { c.backend.Commit(); return len(ended) > 0 }, "the end of the program")
	require.NoError(t, <-ended)
	_, err = http.Get(url)
	require.Error(t, err, "the server is closed")
}

// The program ends in the middle and is started again, over HTTP: nothing is sent twice.
func TestRestart(t *testing.T) {
	c := newTestChain(t)
	dir := t.TempDir()
	const n = 300
	for life := 0; ; life++ {
		client, err := rpc.Dial(c.url)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		r := &relay{n: n, dir: dir, finality: 2, key: developer(), out: new(bytes.Buffer)}
		ended := make(chan error, 1)
		go func() { ended <- r.run(ctx, client) }()
		if life < 4 {
			wait.Until(t, func() bool { return landed(t, c) >= n*(life+1)/6 }, "work of life %d", life)
			stop()
		}
		err = <-ended
		stop()
		client.Close()
		if life >= 4 {
			require.NoError(t, err)
			break
		}
	}
	checkOnce(t, c, n)
}

// checkOnce checks that the chain has n transactions, and no others of the
// account.
func checkOnce(t *testing.T, c *chain, n int) {
	t.Helper()
	require.Equal(t, n, landed(t, c))
	client := c.dial(t)
	count, err := client.NonceAt(context.Background(), crypto.PubkeyToAddress(developer().PublicKey), nil)
	require.NoError(t, err)
	require.EqualValues(t, n, count)
}

// TestMain lets the test binary be the program that TestKill kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("RELAYER_TEST_URL"); url != "" {
		client, err := rpc.Dial(url)
		if err == nil {
			n, _ := strconv.Atoi(os.Getenv("RELAYER_TEST_N"))
			r := &relay{n: n, dir: os.Getenv("RELAYER_TEST_DIR"), finality: 2, key: developer(), out: io.Discard}
			err = r.run(context.Background(), client)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The program is killed again and again under load, and finishes in its last life.
func TestKill(t *testing.T) {
	t.Parallel()
	c, err := newChain(time.Hour, developer())
	require.NoError(t, err)
	defer c.close()
	self, err := os.Executable()
	require.NoError(t, err)
	const each = 150
	kills := repeat.Times(3, 20)
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 1))
	for life := 0; life <= kills; life++ {
		cmd := exec.Command(self)
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), "RELAYER_TEST_URL="+c.url, "RELAYER_TEST_DIR="+dir, fmt.Sprint("RELAYER_TEST_N=", each*(life+1)))
		require.NoError(t, cmd.Start())
		if life < kills {
			// Only this goroutine makes blocks, so that work is left, however fast the program is.
			some := each*life + 1 + rng.IntN(each/2)
			wait.Until(t, func() bool { c.backend.Commit(); return landed(t, c) >= some }, "%d transfers", some)
			_ = cmd.Process.Kill()
			require.Error(t, cmd.Wait(), "it ended before it was killed")
			continue
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		wait.Until(t, func() bool { c.backend.Commit(); return len(ended) > 0 }, "the end of the program")
		require.NoError(t, <-ended)
	}
	checkOnce(t, c, each*(kills+1))
}

// spoiler is a proxy in front of the node. With a given seed, it loses
// requests, loses answers after the node has acted, and answers nonsense.
type spoiler struct {
	url string

	mu  sync.Mutex
	rng *rand.Rand
	bad float64
}

func (p *spoiler) draw() (bad bool, how int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.Float64() < p.bad, p.rng.IntN(6)
}

func (p *spoiler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bad, how := p.draw()
	var answer []byte
	if !bad || how >= 2 {
		got, err := http.Post(p.url, "application/json", r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answer, _ = io.ReadAll(got.Body)
		_ = got.Body.Close()
	}
	switch {
	case !bad:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	case how == 0:
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	case how <= 2:
		http.Error(w, "nonce too low", http.StatusBadGateway)
	case how == 3:
		_, _ = w.Write([]byte("<html>insufficient funds</html>"))
	case how == 4:
		_, _ = w.Write(answer[:len(answer)/2])
	default:
		panic(http.ErrAbortHandler)
	}
}

// A proxy between the program and a real node spoils a quarter of all calls.
// Every transfer lands once.
func TestSpoiledCalls(t *testing.T) {
	n := repeat.Times(100, 300)
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(1, 3)); seed++ {
		c := newTestChain(t)
		p := &spoiler{url: c.url, rng: rand.New(rand.NewPCG(seed, 0)), bad: 0.25}
		web := httptest.NewServer(p)
		var client *rpc.Client
		var err error
		r := &relay{n: n, finality: 2, key: developer(), out: io.Discard}
		for try := 0; ; try++ { // the chain id has no retries
			client, err = rpc.Dial(web.URL)
			require.NoError(t, err)
			if err = r.run(context.Background(), client); err == nil {
				break
			}
			client.Close()
			require.Less(t, try, 50, "%v", err)
		}
		client.Close()
		web.Close()
		checkOnce(t, c, n)
	}
}

// Two fleets on one store send twenty transfers from each of fifty accounts.
func TestFleet(t *testing.T) {
	const accounts, each = 50, 20
	keys := map[eoa.Account]*ecdsa.PrivateKey{}
	var rich []*ecdsa.PrivateKey
	for range accounts {
		key := testKey(t, len(rich))
		keys[eoa.Account{ChainID: 1337, Address: crypto.PubkeyToAddress(key.PublicKey)}] = key
		rich = append(rich, key)
	}
	c := newTestChain(t, rich...)
	store, client := memstore.New(), c.dial(t).Client()
	open := func(a eoa.Account) (eoa.Chain, eoa.Signer, error) {
		chain, err := ethchain.New(client, ethchain.Options{FinalityDepth: 2})
		return chain, eoa.NewKeySigner(1337, keys[a]), err
	}
	ctx, stop := context.WithCancel(wait.Context(t))
	defer stop()
	cfg := eoa.DefaultFleetConfig()
	cfg.Executor.Poll, cfg.Executor.Retry, cfg.Interval, cfg.Workers = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, 4
	var fleets []*eoa.Fleet
	var all sync.WaitGroup
	for range 2 {
		f, err := eoa.NewFleet(cfg, store, open)
		require.NoError(t, err)
		fleets = append(fleets, f)
		all.Go(func() { _ = f.Run(ctx) })
	}
	for i, key := range rich {
		a := eoa.Account{ChainID: 1337, Address: crypto.PubkeyToAddress(key.PublicKey)}
		var requests []eoa.Request
		for k := range each {
			requests = append(requests, eoa.Request{Key: fmt.Sprint(k), To: &a.Address, Gas: 21_000})
		}
		_, err := fleets[i%2].Submit(ctx, a, requests...)
		require.NoError(t, err)
	}
	// Both are idle before they have seen the requests, too.
	wait.Until(t, func() bool { return fleets[0].Busy()+fleets[1].Busy() == 0 && landed(t, c) == accounts*each }, "all transfers")
	stop()
	all.Wait()
	require.Equal(t, accounts*each, landed(t, c))
	for a := range keys {
		records, err := store.List(context.Background(), a, 0, 100)
		require.NoError(t, err)
		for i := range records {
			require.Equal(t, eoa.Final, records[i].State)
		}
	}
}
