package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/pebble/pebbleeoa"
)

// weather is a chain whose blocks the test makes. Some reorgs remove one to six
// blocks, and sometimes the pool forgets its transactions.
type weather struct {
	*chain
	mu   sync.Mutex // held while the chain changes
	rng  *rand.Rand
	next chan struct{} // closed by the next block

	reorgs, losses int
}

// block makes a block, or something worse.
func (w *weather) block(t *testing.T, fair bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.rng.Float64()
	if head := w.head(t); !fair && x < 0.12 && head > 8 {
		w.reorg(t, head, 1+w.rng.Uint64N(6))
	} else if !fair && x < 0.2 {
		w.backend.Rollback()
		w.losses++
	}
	w.backend.Commit()
	close(w.next)
	w.next = make(chan struct{})
}

// wait returns after n more blocks, or when ctx ends.
func (w *weather) wait(ctx context.Context, n int) {
	for range n {
		w.mu.Lock()
		next := w.next
		w.mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

func (w *weather) head(t *testing.T) uint64 {
	n, err := w.backend.Client().BlockNumber(context.Background())
	require.NoError(t, err)
	return n
}

// reorg replaces the last depth blocks by others, and adds one more. Their
// transactions return to the pool, or are lost with it.
func (w *weather) reorg(t *testing.T, head, depth uint64) {
	parent, err := w.backend.Client().HeaderByNumber(context.Background(), new(big.Int).SetUint64(head-depth))
	require.NoError(t, err)
	w.backend.Rollback() // a chain is only forked with an empty pool
	require.NoError(t, w.backend.Fork(parent.Hash()))
	lost := w.rng.IntN(2) == 0
	for range depth + 1 {
		if lost {
			w.backend.Rollback()
		}
		w.backend.Commit()
	}
	w.reorgs++
}

// gateway is a proxy between the executor and nodes of which some lag. With a
// given seed, it loses calls and answers, answers late or never, and answers
// nonsense.
type gateway struct {
	w *weather

	mu    sync.Mutex
	rng   *rand.Rand
	bad   float64
	split bool // the calls of one batch go to several nodes
	hits  map[string]int
	hangs int // calls that hang
}

func (g *gateway) set(bad float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bad = bad
}

// draw returns what goes wrong, "" for nothing, and how far the nodes behind it lag.
func (g *gateway) draw() (fault string, lag func() uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rng.Float64() < g.bad {
		fault = []string{"request", "response", "hang", "429", "502", "html", "error", "half"}[g.rng.IntN(8)]
	}
	seed, some, split := g.rng.Uint64(), g.bad, g.split
	g.hits[fault]++
	own := rand.New(rand.NewPCG(seed, 0))
	far := func() uint64 {
		if own.Float64() < some {
			return 1 + own.Uint64N(4)
		}
		return 0
	}
	if one := far(); !split {
		return fault, func() uint64 { return one }
	}
	return fault, far
}

func (g *gateway) hang(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hangs += more
}

// pace waits until the executors have made some more calls, so that they get further
// with each block, on any machine. Idle executors make none, and a call that hangs waits
// for blocks itself.
func (g *gateway) pace(t *testing.T, calls int, idle func() bool) {
	t.Helper()
	count := func() (n int, hangs bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, hits := range g.hits {
			n += hits
		}
		return n, g.hangs > 0
	}
	begun, _ := count()
	wait.Until(t, func() bool {
		n, hangs := count()
		return hangs || n >= begun+calls || idle()
	}, "calls of the executors")
}

// message is one call or answer of JSON-RPC.
type message struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method,omitempty"`
	Params  []json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   json.RawMessage   `json:"error,omitempty"`
}

func (g *gateway) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fault, lag := g.draw()
	var answer []byte
	switch fault {
	case "request":
		panic(http.ErrAbortHandler)
	case "429":
		http.Error(out, "too many requests", http.StatusTooManyRequests)
		return
	default:
		answer = g.ask(body, lag)
	}
	switch fault {
	case "hang":
		g.hang(1)
		g.w.wait(r.Context(), 10)
		g.hang(-1)
		panic(http.ErrAbortHandler)
	case "response":
		panic(http.ErrAbortHandler)
	case "502":
		http.Error(out, `{"error":"insufficient funds"}`, http.StatusBadGateway)
	case "html":
		_, _ = out.Write([]byte("<html>nonce too low</html>"))
	case "error":
		_, _ = out.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"intrinsic gas too low"}}`))
	case "half":
		_, _ = out.Write(answer[:len(answer)/2])
	default:
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(answer)
	}
}

// ask sends a batch to nodes that lag. Each call is answered as of the node's
// latest block, and higher blocks are unknown to it.
func (g *gateway) ask(body []byte, lag func() uint64) []byte {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	var calls []message
	if json.Unmarshal(body, &calls) != nil {
		return g.post(body)
	}
	head, _ := g.w.backend.Client().BlockNumber(context.Background())
	latest := make([]uint64, len(calls))
	for i := range calls {
		latest[i] = head - min(head, lag())
		for k, p := range calls[i].Params {
			if latest[i] < head && (string(p) == `"latest"` || string(p) == `"pending"`) {
				calls[i].Params[k] = fmt.Appendf(nil, `"0x%x"`, latest[i])
			}
		}
	}
	again, _ := json.Marshal(calls)
	var answers []message
	if json.Unmarshal(g.post(again), &answers) != nil || len(answers) != len(calls) {
		return nil
	}
	for i := range answers {
		if latest[i] < head {
			answers[i].Result = known(&calls[i], answers[i].Result, latest[i])
		}
	}
	answer, _ := json.Marshal(answers)
	return answer
}

// known is an answer as a node has it whose latest block is that.
func known(call *message, result json.RawMessage, latest uint64) json.RawMessage {
	var height struct {
		Number      string `json:"number"`
		BlockNumber string `json:"blockNumber"`
	}
	at := ""
	switch call.Method {
	case "eth_blockNumber":
		return fmt.Appendf(nil, `"0x%x"`, latest)
	case "eth_getTransactionReceipt", "eth_getBlockByNumber":
		if json.Unmarshal(result, &height) == nil {
			at = height.Number + height.BlockNumber
		}
	case "eth_getBlockReceipts":
		_ = json.Unmarshal(call.Params[0], &at)
	}
	if n, err := strconv.ParseUint(at, 0, 64); err == nil && n > latest {
		return json.RawMessage("null")
	}
	return result
}

func (g *gateway) post(body []byte) []byte {
	got, err := http.Post(g.w.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil
	}
	defer func() { _ = got.Body.Close() }()
	answer, _ := io.ReadAll(got.Body)
	return answer
}

// A real chain has reorgs of one to six blocks and a pool that forgets, behind
// a gateway that loses, spoils and delays calls. Several lives of the program
// run on it. Every transfer lands exactly once, no nonce is skipped, and the
// outbox has every event, in order.
func TestChaos(t *testing.T) {
	t.Parallel()
	first := repeat.First()
	for i, n := range []int{repeat.Times(16, 1000), repeat.Times(10, 200)} {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { chaos(t, seed, n) })
	}
}

// newWeather starts a chain and a gateway to it.
func newWeather(t *testing.T, seed uint64, rich ...*ecdsa.PrivateKey) (*weather, *gateway, string) {
	inner, err := newChain(time.Hour, rich...)
	require.NoError(t, err)
	w := &weather{chain: inner, rng: rand.New(rand.NewPCG(seed, 1)), next: make(chan struct{})}
	g := &gateway{w: w, rng: rand.New(rand.NewPCG(seed, 2)), bad: 0.25, split: seed%2 == 1, hits: map[string]int{}}
	web := httptest.NewUnstartedServer(g)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(func() {
		web.Close()
		inner.close()
	})
	return w, g, web.URL
}

func chaos(t *testing.T, seed uint64, n int) {
	w, g, url := newWeather(t, seed, developer())
	dir, account := t.TempDir(), eoa.Account{ChainID: 1337, Address: crypto.PubkeyToAddress(developer().PublicKey)}
	const lives = 5
	for life := range lives {
		last := life == lives-1
		store, err := pebbleeoa.Open(dir, pebbleeoa.Options{})
		require.NoError(t, err)
		client, err := rpc.Dial(url)
		require.NoError(t, err)
		nodes, err := ethchain.New(client, ethchain.Options{FinalityDepth: 7, MaxBatch: 40})
		require.NoError(t, err)
		e, err := eoa.New(hasty(), account, store, nodes, eoa.NewKeySigner(1337, developer()))
		require.NoError(t, err)
		for i := n * life / lives; i < n*(life+1)/lives; i++ {
			_, err := e.Submit(context.Background(), eoa.Request{Key: fmt.Sprint(i), To: receiver(i), Value: uint256.NewInt(1)})
			require.NoError(t, err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Go(func() { _ = e.Run(ctx) })
		g.set(0.25)
		for i := 0; i < 60 || last && !over(t, store, account, n); i++ {
			if last && i == 60 {
				g.set(0)
			}
			w.block(t, last && i >= 60)
			g.pace(t, 2, func() bool { return over(t, store, account, n*(life+1)/lives) })
		}
		stop()
		all.Wait()
		if last {
			w.check(t, store, account, n)
		}
		client.Close()
		require.NoError(t, store.Close())
	}
	t.Logf("%d reorgs, %d pools lost, %v", w.reorgs, w.losses, g.hits)
}

// hasty is for blocks every few milliseconds. The limits of a call and of a lease
// are out of reach of the slowest machine. The gateway ends the calls that hang.
func hasty() eoa.Config {
	cfg := eoa.DefaultConfig()
	cfg.Poll, cfg.Retry, cfg.Rebroadcast, cfg.Batch = 20*time.Millisecond, 10*time.Millisecond, 500*time.Millisecond, 30
	cfg.Fees.StallTimeout, cfg.Timeout, cfg.LeaseFor = time.Second, 10*time.Minute, 20*time.Minute
	return cfg
}

// Fifty accounts with twenty transfers each run in the same conditions on two
// fleets, one of which ends halfway.
func TestChaosFleet(t *testing.T) {
	t.Parallel()
	const accounts, each = 50, 20
	keys := map[eoa.Account]*ecdsa.PrivateKey{}
	var rich []*ecdsa.PrivateKey
	var order []eoa.Account
	for range accounts {
		key := testKey(t, len(rich))
		order = append(order, eoa.Account{ChainID: 1337, Address: crypto.PubkeyToAddress(key.PublicKey)})
		keys[order[len(order)-1]] = key
		rich = append(rich, key)
	}
	w, g, url := newWeather(t, 7, rich...)
	client, err := rpc.Dial(url)
	require.NoError(t, err)
	defer client.Close()
	nodes, err := ethchain.New(client, ethchain.Options{FinalityDepth: 7})
	require.NoError(t, err)
	store, cfg := memstore.New(), eoa.DefaultFleetConfig()
	cfg.Executor, cfg.Interval, cfg.Workers = hasty(), 50*time.Millisecond, 8
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	one, end := context.WithCancel(ctx)
	for _, life := range []context.Context{one, ctx} {
		f, err := eoa.NewFleet(cfg, store, func(a eoa.Account) (eoa.Chain, eoa.Signer, error) { return nodes, eoa.NewKeySigner(1337, keys[a]), nil })
		require.NoError(t, err)
		all.Go(func() { _ = f.Run(life) })
	}
	n := 0
	for _, a := range order {
		var requests []eoa.Request
		for i := range each {
			requests = append(requests, eoa.Request{Key: fmt.Sprint(i), To: receiver(n), Value: uint256.NewInt(1), Gas: 21_000})
			n++
		}
		_, err := store.Submit(ctx, a, time.Now(), requests...)
		require.NoError(t, err)
	}
	done := func() bool {
		for _, a := range order {
			if !over(t, store, a, each) {
				return false
			}
		}
		return true
	}
	for i := 0; i < 150 || !done(); i++ {
		switch w.block(t, i >= 150); i {
		case 60:
			end()
		case 150:
			g.set(0)
		}
		g.pace(t, 20, done)
	}
	end()
	t.Logf("%d reorgs, %d pools lost, %v", w.reorgs, w.losses, g.hits)
	for i := range n {
		wei, err := w.backend.Client().BalanceAt(ctx, *receiver(i), nil)
		require.NoError(t, err)
		require.EqualValues(t, 1, wei.Uint64(), "transfer %d", i)
	}
}

// testKey returns the key of an account, the same in each run.
func testKey(t *testing.T, i int) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Appendf(nil, "account %d", i)))
	require.NoError(t, err)
	return key
}

func receiver(i int) *common.Address {
	to := common.BytesToAddress(crypto.Keccak256(fmt.Appendf(nil, "chaos %d", i)))
	return &to
}

func over(t *testing.T, store eoa.Store, a eoa.Account, n int) bool {
	records, err := store.List(context.Background(), a, 0, 10_000)
	require.NoError(t, err)
	final := 0
	for i := range records {
		if records[i].State == eoa.Final && !records[i].Noop {
			final++
		}
	}
	return final == n
}

// check asks the chain itself, and the outbox.
func (w *weather) check(t *testing.T, store eoa.Store, a eoa.Account, n int) {
	ctx := context.Background()
	client := w.backend.Client()
	for i := range n {
		wei, err := client.BalanceAt(ctx, *receiver(i), nil)
		require.NoError(t, err)
		require.EqualValues(t, 1, wei.Uint64(), "transfer %d", i)
	}
	pending, err := client.PendingNonceAt(ctx, a.Address)
	require.NoError(t, err)
	latest, err := client.NonceAt(ctx, a.Address, nil)
	require.NoError(t, err)
	require.Equal(t, latest, pending, "something is left in the pool")
	told := map[string][]eoa.EventKind{}
	_, err = eoa.Deliver(ctx, store, a, 1<<20, func(_ context.Context, e eoa.Event) error {
		told[e.Key] = append(told[e.Key], e.Kind)
		return nil
	})
	require.NoError(t, err)
	for i := range n {
		kinds := told[fmt.Sprint(i)]
		require.NotEmpty(t, kinds)
		require.Equal(t, eoa.EventFinal, kinds[len(kinds)-1], "%v", kinds)
		submitted, mined := 0, 0
		for _, k := range kinds {
			switch k {
			case eoa.EventSubmitted:
				submitted++
			case eoa.EventMined:
				require.Equal(t, 1, submitted, "%v", kinds)
				mined++
			case eoa.EventReorged:
				mined--
			case eoa.EventFailed, eoa.EventSuperseded, eoa.EventCancelled:
				t.Fatalf("transfer %d: %v", i, kinds)
			}
			require.True(t, mined == 0 || mined == 1, "%v", kinds)
		}
		require.Equal(t, 1, submitted, "%v", kinds)
		require.Equal(t, 1, mined, "%v", kinds)
	}
}
