package ethchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
)

const testChain = 4359

// node serves a simulated chain as a node's "eth" namespace.
type node struct {
	chain    *eoatest.Chain
	signer   eoa.Signer
	receipts int
	noBlobs  bool
	counts   atomic.Int64 // calls for counts
	states   uint64       // height of the oldest state
	bodies   uint64       // height of the oldest block with transactions
	hashes   any          // of the last estimate's blobs
}

func (n *node) look(a common.Address) eoa.Look {
	l, err := n.chain.Look(context.Background(), a)
	if err != nil {
		panic(err)
	}
	return l
}

func (n *node) ask(q eoa.Questions) eoa.Answers {
	a, err := n.chain.Ask(context.Background(), q)
	if err != nil {
		panic(err)
	}
	return a
}

func (n *node) height(tag rpc.BlockNumber) uint64 {
	l := n.look(common.Address{})
	switch tag {
	case rpc.LatestBlockNumber, rpc.PendingBlockNumber:
		return l.Number
	case rpc.FinalizedBlockNumber:
		return l.Finalized
	}
	return uint64(tag)
}

func (n *node) ChainId() hexutil.Uint64 { return testChain }

func (n *node) BlockNumber() hexutil.Uint64 { return hexutil.Uint64(n.height(rpc.LatestBlockNumber)) }

func (n *node) GetBlockByNumber(tag rpc.BlockNumber, full bool) map[string]any {
	height := n.height(tag)
	hash, known := n.ask(eoa.Questions{Heights: []uint64{height}}).Blocks[height]
	if !known {
		return nil
	}
	fee := n.look(common.Address{}).BaseFee
	if full {
		return n.body(height)
	}
	return map[string]any{"number": hexutil.Uint64(height), "hash": hash, "gasLimit": hexutil.Uint64(30_000_000), "baseFeePerGas": (*hexutil.Big)(fee.ToBig())}
}

// body returns a block with its transactions.
func (n *node) body(height uint64) map[string]any {
	if height < n.bodies {
		return nil
	}
	txs := []map[string]any{}
	for _, tx := range n.chain.Block(height) {
		from, err := types.Sender(types.LatestSignerForChainID(big.NewInt(testChain)), tx)
		if err != nil {
			panic(err)
		}
		txs = append(txs, map[string]any{"hash": tx.Hash(), "from": from, "nonce": hexutil.Uint64(tx.Nonce())})
	}
	return map[string]any{"number": hexutil.Uint64(height), "transactions": txs}
}

func (n *node) GetTransactionCount(a common.Address, tag rpc.BlockNumber) (hexutil.Uint64, error) {
	n.counts.Add(1)
	l := n.look(a)
	switch tag {
	case rpc.PendingBlockNumber:
		return hexutil.Uint64(l.Pending), nil
	case rpc.LatestBlockNumber:
		return hexutil.Uint64(l.Latest), nil
	}
	if n.height(tag) < n.states {
		return 0, coded{-32000, "missing trie node"}
	}
	return hexutil.Uint64(n.chain.Count(a, n.height(tag))), nil
}

func (n *node) GetBalance(common.Address, rpc.BlockNumber) *hexutil.Big {
	return (*hexutil.Big)(uint256.MustFromDecimal("1000000000000000000000").ToBig())
}

func (n *node) MaxPriorityFeePerGas() *hexutil.Big { return (*hexutil.Big)(big.NewInt(2)) }

// coded is an error with a code, as nodes answer.
type coded struct {
	code int
	text string
}

func (c coded) Error() string  { return c.text }
func (c coded) ErrorCode() int { return c.code }

func (n *node) EstimateGas(args map[string]any) (hexutil.Uint64, error) {
	if hashes, sent := args["blobVersionedHashes"]; sent { // by one test, which makes one call
		n.hashes = hashes
	}
	if args["input"] == "0xdead" {
		return 0, coded{3, "execution reverted: no"}
	}
	return 60_000, nil
}

func (n *node) SendRawTransaction(raw hexutil.Bytes) (common.Hash, error) {
	if s := n.chain.Send(context.Background(), [][]byte{raw})[0]; s.Result != eoa.Accepted {
		return common.Hash{}, coded{-32000, s.Text}
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return common.Hash{}, err
	}
	return tx.Hash(), nil
}

func (n *node) receipt(h common.Hash) map[string]any {
	r, found := n.ask(eoa.Questions{Txs: []common.Hash{h}}).Receipts[h]
	if !found {
		return nil
	}
	return map[string]any{"transactionHash": h, "blockHash": r.Block, "blockNumber": hexutil.Uint64(r.Number), "status": hexutil.Uint64(1),
		"gasUsed": hexutil.Uint64(r.GasUsed)}
}

func (n *node) GetTransactionReceipt(h common.Hash) map[string]any {
	n.receipts++
	return n.receipt(h)
}

func (n *node) GetBlockReceipts(tag rpc.BlockNumber) (out []map[string]any) {
	for _, tx := range n.chain.Block(n.height(tag)) {
		out = append(out, n.receipt(tx.Hash()))
	}
	return out
}

// proxy stands in front of a node and spoils what goes through, from a seed.
type proxy struct {
	node http.Handler

	mu  sync.Mutex
	rng *rand.Rand
	bad float64
}

func (p *proxy) draw() (float64, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.Float64(), p.rng.IntN(5)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, how := p.draw()
	if x >= p.bad {
		p.node.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if how >= 2 { // the node gets the call; the answer is spoiled
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.node.ServeHTTP(httptest.NewRecorder(), r)
	}
	switch how {
	case 0:
		http.Error(w, "slow down", http.StatusTooManyRequests)
	case 1, 2:
		http.Error(w, "nonce too low", http.StatusBadGateway) // words in an HTTP error say nothing
	case 3:
		_, _ = w.Write([]byte("<html>insufficient funds</html>"))
	default:
		panic(http.ErrAbortHandler)
	}
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type setup struct {
	node    *node
	proxy   *proxy
	client  *rpc.Client
	account eoa.Account
	clock   *clock
}

func newSetup(t testing.TB, seed uint64) *setup {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(t.Name())))
	require.NoError(t, err)
	s := &setup{account: eoa.Account{ChainID: testChain, Address: crypto.PubkeyToAddress(key.PublicKey)}, clock: &clock{time.Unix(1_800_000_000, 0)}}
	s.node = &node{chain: eoatest.New(testChain, seed, 3), signer: eoa.NewKeySigner(testChain, key)}
	server := rpc.NewServer()
	require.NoError(t, server.RegisterName("eth", s.node))
	s.proxy = &proxy{node: server, rng: rand.New(rand.NewPCG(seed, 0))}
	web := httptest.NewUnstartedServer(s.proxy)
	web.Config.ErrorLog = nil
	web.Start()
	s.client, err = rpc.DialHTTP(web.URL)
	require.NoError(t, err)
	t.Cleanup(func() { s.client.Close(); web.Close(); server.Stop() })
	return s
}

// land sends requests through HTTP and checks that each landed once.
func (s *setup) land(t testing.TB, options Options, signer eoa.Signer, n int) {
	s.landThrough(t, s.client, options, signer, n)
}

// landThrough is land with another client.
func (s *setup) landThrough(t testing.TB, client Client, options Options, signer eoa.Signer, n int) {
	chain, err := New(client, options)
	require.NoError(t, err)
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.MaxInFlight, cfg.MaxUnsure, cfg.Batch = s.clock.Now, 40, 40, 20
	e, err := eoa.New(cfg, s.account, memstore.New(), chain, signer)
	require.NoError(t, err)
	ctx := context.Background()
	for i := range n {
		_, err := e.Submit(ctx, eoa.Request{Key: fmt.Sprint(i), To: &common.Address{1}, Data: []byte(fmt.Sprint(i))})
		require.NoError(t, err)
	}
	final := 0
	for range 400 {
		_, err := e.Step(ctx)
		if errors.Is(err, eoa.ErrSigner) || err == nil || s.proxy.bad > 0 {
			s.node.chain.Mine()
			s.clock.now = s.clock.now.Add(4 * time.Second)
		} else {
			require.NoError(t, err)
		}
		final = 0
		records, err := e.List(ctx, 0, 10_000)
		require.NoError(t, err)
		for i := range records {
			if records[i].State == eoa.Final {
				final++
			}
		}
		if final >= n {
			break
		}
	}
	landed := map[string]int{}
	for _, tx := range s.node.chain.Transactions() {
		landed[string(tx.Data())]++
	}
	for i := range n {
		require.Equal(t, 1, landed[fmt.Sprint(i)], "request %d", i)
	}
	require.GreaterOrEqual(t, final, n)
}

func TestThroughHTTP(t *testing.T) {
	for name, o := range map[string]Options{"finalized tag": {}, "depth": {FinalityDepth: 5, MaxBatch: 7}} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, 1)
			s.land(t, o, s.node.signer, 60)
			require.Less(t, s.node.receipts, 60, "receipts come by the block")
		})
	}
}

// A proxy loses requests, loses answers after the node has taken the
// transaction, and answers nonsense.
func TestBadProxy(t *testing.T) {
	for seed := range uint64(5) {
		s := newSetup(t, seed)
		s.proxy.bad = 0.35
		s.land(t, Options{}, s.node.signer, 30)
	}
}

func TestEstimate(t *testing.T) {
	s := newSetup(t, 1)
	chain, err := New(s.client, Options{})
	require.NoError(t, err)
	blobless := &eoa.Request{Kind: eoa.Blob, Blobs: [][]byte{{1}}}
	requests := []*eoa.Request{{Data: []byte{0xde, 0xad}}, {To: &common.Address{7}}, blobless, {To: &common.Address{7}, Data: []byte{1}}}
	for _, most := range []int{0, 1, 2} { // calls in a batch
		chain, err = New(s.client, Options{MaxBatch: most})
		require.NoError(t, err)
		out := chain.Estimate(context.Background(), s.account.Address, requests)
		require.Len(t, out, len(requests))
		require.ErrorIs(t, out[0].Err, eoa.ErrReverted)
		require.NoError(t, out[1].Err)
		require.Positive(t, out[1].Gas)
		require.ErrorIs(t, out[2].Err, eoa.ErrInvalidRequest)
		require.NoError(t, out[3].Err)
		require.Positive(t, out[3].Gas)
	}
	s.proxy.bad = 1
	out := chain.Estimate(context.Background(), s.account.Address, []*eoa.Request{{}})
	require.Error(t, out[0].Err)
	require.NotErrorIs(t, out[0].Err, eoa.ErrReverted)
}

// Of the answers to a send, only an error object with a known text is a rejection.
func TestSent(t *testing.T) {
	raw := []byte{1}
	for _, c := range []struct {
		err    error
		hash   common.Hash
		result eoa.SendResult
		reason eoa.Reason
	}{
		{nil, crypto.Keccak256Hash(raw), eoa.Accepted, eoa.ReasonNone},
		{nil, common.Hash{1}, eoa.Unknown, eoa.ReasonNone},
		{errors.New("nonce too low"), common.Hash{}, eoa.Unknown, eoa.ReasonNone},
		{coded{-32000, "nonce too low"}, common.Hash{}, eoa.Unknown, eoa.ReasonNonceTooLow},
		{coded{-32000, "insufficient funds for transfer"}, common.Hash{}, eoa.Rejected, eoa.ReasonFunds},
		{coded{-32000, "already known"}, common.Hash{}, eoa.Accepted, eoa.ReasonKnown},
		{coded{-32603, "internal error"}, common.Hash{}, eoa.Unknown, eoa.ReasonNone},
		{coded{-32005, "whatever"}, common.Hash{}, eoa.Unknown, eoa.ReasonBusy},
		{coded{429, "whatever"}, common.Hash{}, eoa.Unknown, eoa.ReasonBusy},
	} {
		got := sent(c.err, c.hash, raw)
		require.Equal(t, c.result, got.Result, "%v", c.err)
		require.Equal(t, c.reason, got.Reason, "%v", c.err)
	}
	require.Equal(t, eoa.ReasonBusy, unanswered(&eoa.BusyError{Err: rpc.HTTPError{StatusCode: 429}}).Reason)
	require.Equal(t, eoa.Unknown, unanswered(errors.New("insufficient funds")).Result)
}

// parrot answers the calls of a batch with the given texts in turn, as a
// JSON-RPC client does: an unreadable text is that call's error.
type parrot struct {
	texts [][]byte
	next  int
}

func (p *parrot) BatchCallContext(_ context.Context, calls []rpc.BatchElem) error {
	for i := range calls {
		text := p.texts[p.next%len(p.texts)]
		p.next++
		calls[i].Error = json.Unmarshal(text, calls[i].Result)
	}
	return nil
}

// For any answers of a node there is no panic, and accepted answers keep their
// promises.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"number":"0x10","hash":"0x01"}|"0x3"|"0x5"|"0xde0b6b3a7640000"`))
	f.Add([]byte(`null|[]|{}|[null]|"0x"|"0xffffffffffffffff"|{"number":null}`))
	f.Add([]byte(`"0x10"|{"transactionHash":"0x0100000000000000000000000000000000000000000000000000000000000000","blockNumber":"0x1","blockHash":null,"status":"0x1"}|[{}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, o := range []Options{{}, {FinalityDepth: 3, Preconfirmed: true, MaxBatch: 2}} {
			c, err := New(&parrot{texts: bytes.Split(raw, []byte("|"))}, o)
			require.NoError(t, err)
			ctx := context.Background()
			if l, err := c.Look(ctx, common.Address{1}); err == nil {
				require.NotNil(t, l.Balance)
				require.LessOrEqual(t, l.Finalized, l.Number)
				require.LessOrEqual(t, l.Final, l.Latest)
				require.LessOrEqual(t, l.Latest, l.Preconfirmed)
			}
			q := eoa.Questions{Heights: []uint64{1, 16}}
			for i := range byte(12) {
				q.Txs = append(q.Txs, common.Hash{i})
			}
			if a, err := c.Ask(ctx, q); err == nil {
				for _, h := range q.Txs {
					_, found := a.Receipts[h]
					require.False(t, found && a.Missing[h], "there and not there")
				}
				require.LessOrEqual(t, len(a.Receipts)+len(a.Missing), len(q.Txs))
			}
			for _, gas := range c.Estimate(ctx, common.Address{1}, []*eoa.Request{{}, {}}) {
				require.Equal(t, gas.Err == nil, gas.Gas > 0)
			}
			for _, s := range c.Send(ctx, [][]byte{{1}, {2}, {3}}) {
				require.NotEqual(t, eoa.Rejected, s.Result, "no answer with an error object")
			}
		}
	})
}
