package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/internal/wait"
)

// lockedBuffer is an output that a test reads while the command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Len returns the length of the output so far.
func (l *lockedBuffer) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}

// after returns the output after its first n bytes.
func (l *lockedBuffer) after(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b.Bytes()[n:])
}

// running is a node started by its command line.
type running struct {
	url  string
	out  *lockedBuffer
	stop context.CancelFunc
	exit chan int
}

// startNode starts a node on an embedded chain that is fast.
func startNode(t *testing.T, args ...string) *running {
	t.Helper()
	return launch(t, append([]string{"-slot", "60ms"}, args...)...)
}

func launch(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{out: &lockedBuffer{}, stop: stop, exit: make(chan int, 1)}
	go func() {
		r.exit <- run(ctx, append([]string{"-http", "127.0.0.1:0"}, args...), r.out, r.out)
	}()
	t.Cleanup(func() { r.end(t) })
	wait.Until(t, r.findURL, "the node listens: %s", r.out)
	return r
}

// findURL reads the node's address from its output, and reports whether it is there.
func (r *running) findURL() bool {
	_, after, _ := strings.Cut(r.out.String(), "Listening on ")
	url, _, complete := strings.Cut(after, " ")
	r.url = url
	return complete
}

// end stops the node as SIGTERM does and returns its exit status.
func (r *running) end(t *testing.T) int {
	t.Helper()
	r.stop()
	code := wait.Receive(t, r.exit, "the node stops")
	r.exit <- code
	return code
}

func dial(t testing.TB, url string) *ethclient.Client {
	t.Helper()
	c, err := ethclient.DialContext(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func accounts(t testing.TB) []devkeys.Account {
	t.Helper()
	all, err := devkeys.Derive(devkeys.Mnemonic, 10)
	require.NoError(t, err)
	return all
}

// waitFor polls until a transaction's block is at the tag or before it.
func waitFor(t testing.TB, c *ethclient.Client, tx common.Hash, tag rpc.BlockNumber) *types.Receipt {
	t.Helper()
	var receipt *types.Receipt
	wait.Until(t, func() bool {
		head, err := c.HeaderByNumber(t.Context(), big.NewInt(tag.Int64()))
		if err != nil {
			return false
		}
		receipt, err = c.TransactionReceipt(t.Context(), tx)
		return err == nil && receipt.BlockNumber.Cmp(head.Number) <= 0
	}, "transaction %s is in a block that is %v", tx, tag)
	return receipt
}

var chainID = big.NewInt(4359)

func send(t *testing.T, c *ethclient.Client, a devkeys.Account, data types.TxData) *types.Transaction {
	t.Helper()
	tx := types.MustSignNewTx(a.Key, types.LatestSignerForChainID(chainID), data)
	require.NoError(t, c.SendTransaction(t.Context(), tx))
	return tx
}

func transfer(nonce uint64, to common.Address) types.TxData {
	return &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: 21_000, To: &to, Value: big.NewInt(7)}
}

// An interrupted demonstration reports the interruption, not a time-out.
func TestDemoIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	var out lockedBuffer
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"-http", "127.0.0.1:0", "-slot", "100ms", "-demo", "2", "-loss", "1"}, &out, &out)
	}()
	wait.Until(t, func() bool { return strings.Contains(out.String(), "0/2 final") }, "the demonstration runs: %s", &out)
	stop(errors.New("interrupted by the user"))
	require.Equal(t, exitFailed, <-exit)
	require.Contains(t, out.String(), "0 of 2 transactions are final: interrupted by the user")
}

// Each demonstration mostly waits for slots, so that all of them run at once.
func TestDemo(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	for _, args := range [][]string{
		{"-demo", "31", "-slot", "60ms"},
		{"-demo", "31", "-slot", "60ms", "-loss", "0.3", "-skip", "0.2", "-seed", "7"},
		{"-demo", "12", "-slot", "60ms", "-spec", "full"},
	} {
		running.Go(func() {
			var out lockedBuffer
			assert.Zero(t, run(t.Context(), args, &out, &out), "%v: %s", args, &out)
			assert.NotContains(t, out.String(), "\r", "no terminal: lines")
			assert.Regexp(t, `bundles \(JAM slots, counted from slot [1-9]\d+\)\n.*\n( +\d+){5} +\d{1,3} `, out.String())
			assert.Regexp(t, fmt.Sprintf(`\nfinality proofs: %[1]s/%[1]s transactions proved.*\n`+
				`%[1]s/%[1]s transactions finalized in \d+ bundles; 0 lost; 0 executed twice; canonical root 0x[0-9a-f]{64}\n$`, args[1]), out.String())
		})
	}
	running.Wait()
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"-spec", "huge"}, {"-demo", "-1"}, {"-slot", "0s"}, {"-bundle", "0"}, {"-load", "1", "-load.for", "1ms"}, {"-load.mixed"}, {"-skip", "1"}, {"-loss", "2"}, {"extra"}, {"-nonsense"}, {"-chainid", "0"}, {"-http.api", "eth,admin"}, {"-rpc.gascap", "0"}, {"-rpc.ratelimit", "-1"}, {"-authrpc.jwtsecret", t.TempDir()}} {
		var out lockedBuffer
		require.Equal(t, exitUsage, run(t.Context(), append(args, "-http", "127.0.0.1:0"), &out, &out), "%v", args)
		require.NotEmpty(t, out.String())
	}
}

// Without -metrics, clients and operators have one address. With it, operators have another one,
// and neither address answers the requests for the other.
func TestMetricsAddress(t *testing.T) {
	const chainID = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
	status := func(method, url string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(chainID))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	paths := []string{"/metrics", "/healthz", "/debug/pprof/cmdline"}
	both := startNode(t, "-pprof")
	require.NotContains(t, both.out.String(), "Operators see")
	require.Equal(t, http.StatusOK, status(http.MethodPost, both.url))
	two := startNode(t, "-pprof", "-metrics", "127.0.0.1:0")
	var operators string
	wait.Until(t, func() (complete bool) {
		_, line, _ := strings.Cut(two.out.String(), "Operators see ")
		operators, _, complete = strings.Cut(line, " ")
		return complete
	}, "the node prints the address for operators: %s", two.out)
	for _, path := range paths {
		require.Equal(t, http.StatusOK, status(http.MethodGet, both.url+path), path)
		require.Equal(t, http.StatusOK, status(http.MethodGet, operators+path), path)
		require.Equal(t, http.StatusNotFound, status(http.MethodGet, two.url+path), path)
	}
	require.Equal(t, http.StatusOK, status(http.MethodPost, two.url))
	require.Equal(t, http.StatusNotFound, status(http.MethodPost, operators))
	require.Zero(t, two.end(t))
}

// A node that gets only one of its addresses stops.
func TestMetricsAddressIsTaken(t *testing.T) {
	taken := startNode(t)
	var out lockedBuffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-http", "127.0.0.1:0", "-metrics", strings.TrimPrefix(taken.url, "http://")}, &out, &out))
	require.Contains(t, out.String(), "address already in use")
}

// The keys and the tags of a real client's day: deploy, call, logs, history, receipts, and hashes
// that the client computes itself.
func TestClientLife(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	c := dial(t, node.url)
	ctx := t.Context()
	me := accounts(t)[0]
	// The constructor stores 5; the code adds one to slot 0, logs the new value under topic 7 and
	// returns it.
	code := []byte{0x5f, 0x54, 0x60, 1, 1, 0x80, 0x5f, 0x55, 0x5f, 0x52, 0x60, 7, 0x60, 32, 0x5f, 0xa1, 0x60, 32, 0x5f, 0xf3}
	init := append([]byte{0x60, 5, 0x5f, 0x55, 0x60, byte(len(code)), 0x80, 0x60, 14, 0x5f, 0x39, 0x5f, 0xf3, 0}, code...)
	gas, err := c.EstimateGas(ctx, ethereum.CallMsg{From: me.Address, Data: init})
	require.NoError(t, err)
	deployed := send(t, c, me, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: gas, Data: init})
	receipt := waitFor(t, c, deployed.Hash(), rpc.LatestBlockNumber)
	at := crypto.CreateAddress(me.Address, 0)
	require.Equal(t, at, receipt.ContractAddress)
	before := receipt.BlockNumber

	called := send(t, c, me, &types.AccessListTx{ChainID: chainID, Nonce: 1, GasPrice: big.NewInt(10 * params.GWei), Gas: 100_000, To: &at})
	receipt = waitFor(t, c, called.Hash(), rpc.FinalizedBlockNumber)
	require.Equal(t, types.ReceiptStatusSuccessful, receipt.Status)
	logs, err := c.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: common.Big0, Addresses: []common.Address{at}, Topics: [][]common.Hash{{{31: 7}}}})
	require.NoError(t, err)
	require.Len(t, logs, 1)
	require.Equal(t, common.Hash{31: 6}.Bytes(), logs[0].Data)
	require.Equal(t, receipt.BlockHash, logs[0].BlockHash)

	// History, by number and by hash.
	for number, want := range map[*big.Int]byte{before: 5, receipt.BlockNumber: 6, nil: 6} {
		value, err := c.StorageAt(ctx, at, common.Hash{}, number)
		require.NoError(t, err)
		require.Equal(t, common.Hash{31: want}.Bytes(), value)
	}
	value, err := c.StorageAtHash(ctx, at, common.Hash{}, receipt.BlockHash)
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 6}.Bytes(), value)
	result, err := c.CallContract(ctx, ethereum.CallMsg{To: &at}, before)
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 6}.Bytes(), result)
	wealth, err := c.BalanceAt(ctx, me.Address, common.Big0)
	require.NoError(t, err)
	require.Equal(t, new(big.Int).Mul(big.NewInt(10_000), big.NewInt(params.Ether)), wealth)

	// The client computes the same hashes from the fields that it gets.
	for number := int64(0); number <= receipt.BlockNumber.Int64(); number++ {
		block, err := c.BlockByNumber(ctx, big.NewInt(number))
		require.NoError(t, err)
		var raw struct {
			Hash common.Hash
		}
		require.NoError(t, c.Client().CallContext(ctx, &raw, "eth_getBlockByNumber", hexutil.Uint64(number), false))
		require.Equal(t, raw.Hash, block.Hash())
		again, err := c.BlockByHash(ctx, raw.Hash)
		require.NoError(t, err)
		require.Equal(t, block.Hash(), again.Hash())
	}
	tx, pending, err := c.TransactionByHash(ctx, called.Hash())
	require.NoError(t, err)
	require.False(t, pending)
	require.Equal(t, called.Hash(), tx.Hash())
	history, err := c.FeeHistory(ctx, 4, nil, []float64{10, 50})
	require.NoError(t, err)
	require.NotEmpty(t, history.BaseFee)
	price, err := c.SuggestGasPrice(ctx)
	require.NoError(t, err)
	require.Positive(t, price.Sign())
	require.Zero(t, node.end(t))
}

// The same calls over WebSocket on the same port, and a page for a browser.
func TestWebSocketAndPage(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	c := dial(t, strings.Replace(node.url, "http", "ws", 1))
	id, err := c.ChainID(t.Context())
	require.NoError(t, err)
	require.Equal(t, chainID, id)
	response, err := http.Get(node.url)
	require.NoError(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(page), "jamq reference node")
}

// call posts one JSON-RPC call and returns its error code and text, if any.
func call(t *testing.T, url, body string) (code int, text string) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var answer struct {
		Error struct {
			Code    int
			Message string
		}
	}
	_ = json.Unmarshal(raw, &answer) // an answer that is not an object has no error to look at
	return answer.Error.Code, answer.Error.Message
}

// Bad input gets the error that users of geth know, and the node goes on.
func TestBadInput(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	c := dial(t, node.url)
	me := accounts(t)[1]
	signer := types.LatestSignerForChainID(chainID)
	first := send(t, c, me, transfer(0, common.Address{1}))
	waitFor(t, c, first.Hash(), rpc.LatestBlockNumber)
	raw := func(data types.TxData) string {
		b, err := types.MustSignNewTx(me.Key, signer, data).MarshalBinary()
		require.NoError(t, err)
		return hexutil.Encode(b)
	}
	rich := transfer(1, common.Address{1}).(*types.DynamicFeeTx)
	rich.Value = new(big.Int).Mul(big.NewInt(20_000), big.NewInt(params.Ether))
	hungry := transfer(1, common.Address{1}).(*types.DynamicFeeTx)
	hungry.Gas = 30_000_001
	long := transfer(1, common.Address{1}).(*types.DynamicFeeTx)
	long.Data, long.Gas = make([]byte, 200_000), 10_000_000
	foreign := types.MustSignNewTx(me.Key, types.LatestSignerForChainID(common.Big1), &types.DynamicFeeTx{ChainID: common.Big1, Nonce: 1, GasTipCap: common.Big1, GasFeeCap: big.NewInt(params.GWei), Gas: 21_000, To: &common.Address{1}})
	foreignRaw, err := foreign.MarshalBinary()
	require.NoError(t, err)
	request := func(method string, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	sendRaw := func(hex string) string { return request("eth_sendRawTransaction", fmt.Sprintf("[%q]", hex)) }
	for name, x := range map[string]struct {
		body string
		code int
		text string
	}{
		"malformed RLP":      {sendRaw("0x02c0"), -32000, "rlp"},
		"empty":              {sendRaw("0x"), -32000, "typed transaction too short"},
		"unknown type":       {sendRaw("0x7f00"), -32000, "transaction type not supported"},
		"not hex":            {sendRaw("hello"), -32602, "hex string without 0x prefix"},
		"chain id":           {sendRaw(hexutil.Encode(foreignRaw)), -32000, "invalid chain id for signer: have 1 want 4359"},
		"nonce too low":      {sendRaw(raw(transfer(0, common.Address{2}))), -32000, "nonce too low"},
		"funds":              {sendRaw(raw(rich)), -32000, "insufficient funds for gas * price + value"},
		"gas limit":          {sendRaw(raw(hungry)), -32000, "exceeds block gas limit"},
		"too large":          {sendRaw(raw(long)), -32000, "oversized data"},
		"same again":         {sendRaw(raw(transfer(0, common.Address{1}))), -32000, "already known"},
		"no parameters":      {request("eth_getBalance", "[]"), -32602, "missing value for required argument 0"},
		"negative number":    {request("eth_getBlockByNumber", `["0x-1",false]`), -32602, "invalid"},
		"absurd number":      {request("eth_getBlockByNumber", `["0xffffffffffffffffff",false]`), -32602, "hex number > 64 bits"},
		"unknown tag":        {request("eth_getBlockByNumber", `["newest",false]`), -32602, "invalid"},
		"no such state":      {request("eth_getBalance", `["0x0000000000000000000000000000000000000001","0xffff"]`), -32000, "header not found"},
		"no such hash":       {request("eth_getBalance", `["0x0000000000000000000000000000000000000001",{"blockHash":"0x`+strings.Repeat("11", 32)+`"}]`), -32000, "header for hash not found"},
		"short address":      {request("eth_getBalance", `["0x01","latest"]`), -32602, "invalid argument 0"},
		"range backwards":    {request("eth_getLogs", `[{"fromBlock":"0x5","toBlock":"0x1"}]`), -32602, "invalid block range params"},
		"storage key":        {request("eth_getStorageAt", `["0x0000000000000000000000000000000000000001","0xzz","latest"]`), -32602, "invalid hex in storage key"},
		"revert":             {request("eth_call", `[{"data":"0x5f5ffd"}]`), 3, "execution reverted"},
		"both prices":        {request("eth_call", `[{"gasPrice":"0x1","maxFeePerGas":"0x1"}]`), -32000, "both gasPrice and"},
		"endless call":       {request("eth_call", `[{"data":"0x5b5f56","gas":"0xf4240"}]`), -32000, "out of gas"},
		"unknown method":     {request("eth_mine", `[]`), -32601, "does not exist"},
		"not JSON":           {`{"jsonrpc`, -32700, ""},
		"too many arguments": {request("eth_chainId", `[1]`), -32602, "too many arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := call(t, node.url, x.body)
			require.Equal(t, x.code, code, text)
			require.Contains(t, text, x.text)
		})
	}
	again := send(t, c, me, transfer(1, common.Address{1}))
	waitFor(t, c, again.Hash(), rpc.LatestBlockNumber)
}

// Ten thousand requests of garbage, and the node still answers.
func TestGarbage(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	rpcClient, err := rpc.DialContext(t.Context(), node.url)
	require.NoError(t, err)
	defer rpcClient.Close()
	methods := []string{"eth_sendRawTransaction", "eth_getBlockByNumber", "eth_call", "eth_getLogs", "eth_feeHistory", "eth_estimateGas", "eth_getStorageAt", "jam_getBundle", "eth_getTransactionReceipt", "txpool_content", "eth_newFilter", "eth_getFilterChanges", "eth_newPendingTransactionFilter", "eth_createAccessList", "debug_traceCall", "debug_traceTransaction", "debug_traceBlockByNumber", "eth_getBlockReceipts", "jam_getStateWitness", "jam_getTransactionStatus", "web3_sha3"}
	seed := []byte("garbage")
	for sent := 0; sent < 10_000; {
		batch := make([]rpc.BatchElem, 500)
		for i := range batch {
			seed = crypto.Keccak256(seed)
			args := []any{hexutil.Bytes(seed[:seed[0]%32]), int(seed[1]) - 128, map[string]any{"to": string(seed[2:5]), "data": hexutil.Bytes(seed[5:9]), "fromBlock": hexutil.Uint64(seed[3])}, nil, []any{}, "0x" + strings.Repeat("f", int(seed[4])), 1e300}
			batch[i] = rpc.BatchElem{Method: methods[int(seed[9])%len(methods)], Result: new(json.RawMessage)}
			for n := int(seed[10]) % 4; n > 0; n-- {
				batch[i].Args = append(batch[i].Args, args[int(seed[10+n])%len(args)])
			}
		}
		require.NoError(t, rpcClient.BatchCallContext(t.Context(), batch))
		sent += len(batch)
	}
	c := dial(t, node.url)
	tx := send(t, c, accounts(t)[2], transfer(0, common.Address{1}))
	waitFor(t, c, tx.Hash(), rpc.LatestBlockNumber)
}

// After a restart, final transactions are still final, and accepted ones are not lost.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := startNode(t, "-datadir", dir)
	c := dial(t, node.url)
	me := accounts(t)[3]
	final := send(t, c, me, transfer(0, common.Address{0xf1}))
	receipt := waitFor(t, c, final.Hash(), rpc.FinalizedBlockNumber)
	gapped := send(t, c, me, transfer(2, common.Address{0xf3})) // waits for nonce 1
	require.Zero(t, node.end(t))

	node = startNode(t, "-datadir", dir)
	c = dial(t, node.url)
	again, err := c.TransactionReceipt(t.Context(), final.Hash())
	require.NoError(t, err)
	require.Equal(t, receipt.BlockHash, again.BlockHash)
	filler := send(t, c, me, transfer(1, common.Address{0xf2}))
	waitFor(t, c, filler.Hash(), rpc.FinalizedBlockNumber)
	waitFor(t, c, gapped.Hash(), rpc.FinalizedBlockNumber)
	nonce, err := c.NonceAt(t.Context(), me.Address, nil)
	require.NoError(t, err)
	require.Equal(t, uint64(3), nonce)
	// The restart created a new embedded JAM chain. It proves only its own blocks, and returns an
	// error for earlier ones.
	var document *proof.Document
	require.NoError(t, c.Client().CallContext(t.Context(), &document, "jam_getFinalityProof", filler.Hash()))
	require.Equal(t, filler.Hash(), document.Claim.Transaction)
	require.ErrorContains(t, c.Client().CallContext(t.Context(), &document, "jam_getFinalityProof", final.Hash()), "the embedded JAM chain has none for block 1")
	require.Zero(t, node.end(t))

	var out lockedBuffer
	require.NotZero(t, run(t.Context(), []string{"-http", "127.0.0.1:0", "-datadir", dir, "-chainid", "5"}, &out, &out))
	require.Contains(t, out.String(), "data directory is of another chain")
}

// The real process ends at SIGTERM, with status 0, although a transaction is on its way.
func TestSignal(t *testing.T) {
	t.Parallel()
	var output lockedBuffer
	process := program(t, "refnode", "-http", "127.0.0.1:0", "-slot", "200ms")
	process.Stdout, process.Stderr = &output, &output
	require.NoError(t, process.Start())
	node := &running{out: &output}
	wait.Until(t, node.findURL, "the node listens: %s", &output)
	send(t, dial(t, node.url), accounts(t)[4], transfer(0, common.Address{1}))
	require.NoError(t, process.Process.Signal(syscall.SIGTERM))
	require.NoError(t, process.Wait(), "%s", &output)
}
