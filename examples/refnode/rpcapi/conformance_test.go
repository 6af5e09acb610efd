package rpcapi

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// both are the node and a geth that have taken the same transactions.
type both struct {
	api         *api
	ours, geths *rpc.Client
	// A deployment, and one each of types 0, 1, 2 (which fails) and 4.
	txs     []*types.Transaction
	waiting *types.Transaction // behind a gap
	counter common.Address
}

func startBoth(t *testing.T) *both {
	s := serve(t, nil)
	g := startGeth(t, s.node)
	b := &both{api: &api{node: s.node}, ours: s.dial(s.server.URL), geths: g.Client}
	b.counter = s.counter(0)
	deployed := s.node.Resolve(rpc.LatestBlockNumber).Transactions()[0]
	id, signer := s.node.ChainConfig().ChainID, types.LatestSigner(s.node.ChainConfig())
	me := s.node.Accounts()[1]
	price, uint := big.NewInt(10*params.GWei), func(v int64) *uint256.Int { return uint256.NewInt(uint64(v)) }
	authorization, err := types.SignSetCode(s.node.Accounts()[2].Key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(id), Address: b.counter})
	require.NoError(t, err)
	b.txs = []*types.Transaction{deployed}
	for nonce, data := range []types.TxData{
		&types.LegacyTx{GasPrice: price, Gas: 100_000, To: &b.counter},
		&types.AccessListTx{
			ChainID: id, GasPrice: price, Gas: 100_000, To: &b.counter, AccessList: types.AccessList{{Address: b.counter, StorageKeys: []common.Hash{{}}}},
		},
		// This one fails.
		&types.DynamicFeeTx{ChainID: id, GasTipCap: big.NewInt(params.GWei), GasFeeCap: price, Gas: 100_000, To: &b.counter, Data: []byte{1, 2, 3}},
		&types.SetCodeTx{
			ChainID: uint256.MustFromBig(id), GasTipCap: uint(params.GWei), GasFeeCap: uint(10 * params.GWei), Gas: 200_000, To: b.counter,
			AuthList: []types.SetCodeAuthorization{authorization},
		},
	} {
		switch d := data.(type) {
		case *types.LegacyTx:
			d.Nonce = uint64(nonce)
		case *types.AccessListTx:
			d.Nonce = uint64(nonce)
		case *types.DynamicFeeTx:
			d.Nonce = uint64(nonce)
		case *types.SetCodeTx:
			d.Nonce = uint64(nonce)
		}
		tx := types.MustSignNewTx(me.Key, signer, data)
		require.NoError(t, s.node.SendTransaction(tx))
		s.mined(tx)
		b.txs = append(b.txs, tx)
	}
	for _, tx := range b.txs {
		raw, err := tx.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, g.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw)))
		g.beacon.Commit()
	}
	s.nonces[3] = 7
	b.waiting = s.send(3, &b.counter, 1, []byte{1})
	raw, err := b.waiting.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, g.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw)))
	// After Drain all blocks are final, so that all tags are above genesis.
	require.NoError(t, s.node.Drain(t.Context()))
	return b
}

// elsewhere are the methods that geth does not have or answers differently. Each
// has its own test.
var elsewhere = map[string]bool{
	// TestTokens, TestRateLimits
	"admin_nodeInfo": true, "admin_removeTransaction": true, "admin_bannedUntil": true, "admin_pardon": true,
	"admin_resume": true, "admin_giveUp": true, // TestTokens
	"eth_getProof": true, "jam_getStateWitness": true, // TestStateWitness
	// TestSubscriptions
	"eth_newHeads": true, "eth_logs": true, "eth_newPendingTransactions": true,
	// TestTransactionStatus
	"jam_getTransactionStatus": true,
	// the tests of the command
	"jam_queueStatus": true, "jam_getBundle": true, "jam_getFinalityProof": true, "jam_getTrust": true,
}

// methods returns the names of all methods, and of the subscriptions among them.
func methods(a *api) (names []string) {
	for _, s := range a.services(nil) {
		receiver := reflect.TypeOf(s.receiver)
		for i := range receiver.NumMethod() {
			name := receiver.Method(i).Name
			names = append(names, s.namespace+"_"+strings.ToLower(name[:1])+name[1:])
		}
	}
	return names
}

// conformance is a table of the calls that are made to both nodes.
type conformance struct {
	*both
	t                    *testing.T
	me, waiter, stranger common.Address
	call, failing        map[string]any // messages to the counter
	tries                []try
}

// try is a call. Block hashes differ, so arguments may depend on the node.
type try struct {
	method string
	args   func(*rpc.Client) []any
	equal  bool // the values too
}

func (c *conformance) add(method string, equal bool, args func(*rpc.Client) []any) {
	c.tries = append(c.tries, try{method, args, equal})
}

// same requires equal answers, and like requires answers of the same shape.
// Errors are always equal.
func (c *conformance) same(method string, args ...any) {
	c.add(method, true, func(*rpc.Client) []any { return args })
}

func (c *conformance) like(method string, args ...any) {
	c.add(method, false, func(*rpc.Client) []any { return args })
}

func (c *conformance) likeBy(method string, args func(*rpc.Client) []any) { c.add(method, false, args) }

// byHash are arguments that begin with the hash of a block.
func (c *conformance) byHash(number int, more ...any) func(*rpc.Client) []any {
	return func(client *rpc.Client) []any { return append([]any{blockHash(c.t, client, number)}, more...) }
}

func blockHash(t *testing.T, client *rpc.Client, number int) string {
	t.Helper()
	var header struct{ Hash string }
	require.NoError(t, client.CallContext(t.Context(), &header, "eth_getBlockByNumber", hexutil.Uint64(number), false))
	return header.Hash
}

func (c *conformance) blocks() {
	// Finalized is for other tests: this geth finalizes when it likes.
	for _, tag := range []string{"latest", "safe", "earliest", "0x2", "0xffff"} {
		c.like("eth_getBlockByNumber", tag, false)
		c.same("eth_getBlockTransactionCountByNumber", tag)
		c.same("eth_getUncleCountByBlockNumber", tag)
	}
	c.like("eth_getBlockByNumber", "0x2", true)
	c.likeBy("eth_getBlockByHash", c.byHash(3, true))
	c.likeBy("eth_getBlockByHash", c.byHash(3, false))
	c.like("eth_getBlockByHash", common.Hash{1}, false)
	c.likeBy("eth_getBlockTransactionCountByHash", c.byHash(3))
	c.likeBy("eth_getUncleCountByBlockHash", c.byHash(3))
	c.same("eth_getUncleByBlockNumberAndIndex", "0x1", "0x0")
	c.likeBy("eth_getUncleByBlockHashAndIndex", c.byHash(1, "0x0"))
	c.like("eth_getBlockReceipts", "0x4")
	c.likeBy("eth_getBlockReceipts", c.byHash(5))
	c.same("eth_getBlockReceipts", "0xffff")
}

func (c *conformance) transactions() {
	for i, tx := range c.txs {
		c.like("eth_getTransactionByHash", tx.Hash())
		c.like("eth_getTransactionReceipt", tx.Hash())
		c.like("eth_getTransactionByBlockNumberAndIndex", hexutil.Uint64(i+1), "0x0")
		c.likeBy("eth_getTransactionByBlockHashAndIndex", c.byHash(i+1, "0x0"))
		c.same("eth_getRawTransactionByHash", tx.Hash())
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "callTracer", "tracerConfig": map[string]any{"withLog": true}})
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "4byteTracer"})
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"enableMemory": true, "enableReturnData": true})
		c.like("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "flatCallTracer"})
	}
	for _, method := range []string{"eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_getRawTransactionByHash", "debug_traceTransaction"} {
		c.like(method, common.Hash{1})
	}
	c.like("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x7")
	c.like("debug_traceBlockByNumber", "0x4", map[string]any{"tracer": "callTracer"})
	c.likeBy("debug_traceBlockByHash", c.byHash(5, map[string]any{"tracer": "callTracer"}))
}

func (c *conformance) states() {
	for _, at := range []any{"latest", "safe", "0x3", "earliest", "0xffff"} {
		c.same("eth_getTransactionCount", c.me, at)
		c.same("eth_getCode", c.counter, at)
		c.same("eth_getStorageAt", c.counter, "0x0", at)
		c.same("eth_getBalance", c.stranger, at)
		c.same("eth_call", c.call, at)
		c.same("eth_call", c.failing, at)
	}
	c.same("eth_getCode", c.me, "latest")
	c.like("eth_getBalance", c.me, "latest")
	c.likeBy("eth_getBalance", func(client *rpc.Client) []any {
		return []any{c.me, map[string]any{"blockHash": blockHash(c.t, client, 3), "requireCanonical": true}}
	})
	c.same("eth_getBalance", c.stranger, map[string]any{"blockNumber": "0x2"})
	c.same("eth_getBalance", c.stranger, map[string]any{"blockNumber": "0x2", "blockHash": common.Hash{}})
	c.same("eth_getBalance", c.stranger, map[string]any{"blockHash": common.Hash{9}})
	c.same("eth_getStorageAt", c.counter, "0xzz", "latest")
}

func (c *conformance) calls() {
	c.same("eth_estimateGas", c.call)
	c.same("eth_estimateGas", c.failing)
	c.same("eth_estimateGas", map[string]any{"from": c.me, "to": c.stranger, "value": "0x1"})
	c.same("eth_estimateGas", map[string]any{"from": c.stranger, "to": c.me, "value": "0x1"})
	c.same("eth_createAccessList", c.call)
	c.same("eth_createAccessList", c.failing)
	c.same("eth_createAccessList", map[string]any{"from": c.me, "data": "0x5f545f5260205ff3"})
	rich := map[string]any{c.stranger.Hex(): map[string]any{"balance": "0xffffffffffffffff", "code": "0x475f5260205ff3", "nonce": "0x5"}}
	c.same("eth_call", map[string]any{"to": c.stranger}, "latest", rich)
	c.same("eth_estimateGas", map[string]any{"to": c.stranger}, "latest", rich)
	counted := map[string]any{"stateDiff": map[string]any{common.Hash{}.Hex(): common.Hash{31: 0x29}.Hex()}}
	c.same("eth_call", c.call, "latest", map[string]any{c.counter.Hex(): counted})
	c.overrides()
	c.same("debug_traceCall", c.call, "latest", map[string]any{"tracer": "callTracer"})
	c.same("debug_traceCall", c.failing, "latest", map[string]any{"tracer": "callTracer"})
	c.same("debug_traceCall", c.call, "pending", map[string]any{})
	c.same("debug_traceCall", c.call, "latest", map[string]any{"stateOverrides": rich})
}

// overrides are of the state and of the block.
func (c *conformance) overrides() {
	most := "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
	slot, slots := common.Hash{}.Hex(), map[string]any{common.Hash{}.Hex(): common.Hash{31: 0x30}.Hex()}
	balance, identity := "0x475f5260205ff3", common.Address{19: 4} // a precompiled contract
	for _, account := range []map[string]any{
		{"code": balance, "balance": most}, {"code": balance, "balance": "0x100000000000000000000000000000000"}, {"code": "0x"},
		{"state": slots}, {"state": map[string]any{}}, {"stateDiff": slots}, {"stateDiff": map[string]any{}}, {"state": slots, "stateDiff": slots},
		{"nonce": "0xffffffffffffffff"}, {"movePrecompileToAddress": c.stranger}, {"unknown": 1}, {"balance": "0x1" + most[2:]}, {"nonce": -1},
	} {
		c.same("eth_call", c.call, "latest", map[string]any{c.counter.Hex(): account})
		c.same("eth_estimateGas", c.call, "latest", map[string]any{c.counter.Hex(): account})
	}
	c.same("eth_createAccessList", c.call, "latest", map[string]any{c.counter.Hex(): map[string]any{"state": slots}})
	c.same("eth_getStorageAt", c.counter, slot, "latest")
	rich := map[string]any{c.me.Hex(): map[string]any{"balance": most}}
	c.same("eth_call", map[string]any{"from": c.me, "to": c.stranger, "value": most}, "latest", rich)
	c.same("eth_estimateGas", map[string]any{"from": c.me, "to": c.stranger, "value": "0x1"}, "latest", rich)
	copied := map[string]any{"to": c.stranger, "data": "0x0102"}
	moved := map[string]any{identity.Hex(): map[string]any{"movePrecompileToAddress": c.stranger}}
	c.same("eth_call", copied, "latest", moved)
	c.same("eth_call", map[string]any{"to": identity, "data": "0x0102"}, "latest", moved)
	c.same("eth_call", copied, "latest", map[string]any{identity.Hex(): moved[identity.Hex()], c.stranger.Hex(): map[string]any{}})
	// A program that returns one field of the block.
	for field, block := range map[string]map[string]any{
		"41": {"feeRecipient": c.stranger}, "42": {"time": "0x7fffffff"}, "43": {"number": "0x1234567"}, "44": {"prevRandao": common.Hash{7}},
		"45": {"gasLimit": "0x123456"}, "48": {"baseFeePerGas": "0x5"}, "4a": {"blobBaseFee": "0x9"}, "46": {"difficulty": "0x1"},
		"5f": {"withdrawals": []any{}}, "5f5f": {"beaconRoot": common.Hash{1}},
	} {
		program := map[string]any{"data": "0x" + field + "5f5260205ff3"}
		c.same("eth_call", program, "latest", nil, block)
		c.same("eth_estimateGas", program, "latest", nil, block)
		program["gasPrice"], program["from"] = "0x77359400", c.me
		c.same("eth_call", program, "latest", map[string]any{}, block)
	}
	// Arguments that contradict each other.
	for _, fields := range []map[string]any{
		{"gasPrice": "0x1", "maxFeePerGas": "0x1"}, {"chainId": "0x1"}, {"data": "0x01", "input": "0x5f5ff3"}, {"maxPriorityFeePerGas": "0x1"},
		{"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, {"maxFeePerGas": "0x1"}, {"value": "0x1", "from": c.stranger}, {"gas": "0x1"},
	} {
		if fields["from"] == nil {
			fields["from"] = c.me
		}
		c.same("eth_call", fields)
		c.same("eth_estimateGas", fields)
	}
}

func (c *conformance) logs() {
	topic := common.Hash{31: 7}
	c.like("eth_getLogs", map[string]any{"fromBlock": "0x0", "toBlock": "latest", "address": c.counter})
	c.like("eth_getLogs", map[string]any{"fromBlock": "0x2", "toBlock": "0x3", "topics": []any{[]any{topic, common.Hash{1}}}})
	c.likeBy("eth_getLogs", func(client *rpc.Client) []any { return []any{map[string]any{"blockHash": blockHash(c.t, client, 2)}} })
	c.same("eth_getLogs", map[string]any{"blockHash": common.Hash{8}})
	c.same("eth_getLogs", map[string]any{"fromBlock": "0x5", "toBlock": "0x1"})
	c.same("eth_getLogs", map[string]any{"fromBlock": "0x1", "blockHash": common.Hash{8}})
	c.same("eth_getLogs", map[string]any{"topics": make([]any, 5)})
	for _, ends := range [][2]any{{"0x0", "0x70"}, {"0x70", "latest"}, {"0x70", nil}, {"latest", "0x0"}, {"pending", nil}, {nil, "pending"}} {
		c.same("eth_getLogs", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
	for _, ends := range [][2]any{{"latest", "0x3"}, {"latest", "earliest"}, {"0x3", "0x1"}, {"0x3", "earliest"}, {"pending", nil}, {nil, "pending"}, {"safe", "latest"}, {"0x1", "finalized"}} {
		c.same("eth_newFilter", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
	for _, ends := range [][2]any{{"earliest", "latest"}, {"0x1", "0x70"}, {"0x70", "latest"}, {"earliest", "earliest"}, {"earliest", "0x3"}} {
		c.like("eth_newFilter", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
	c.like("eth_newFilter", map[string]any{})
	c.like("eth_newBlockFilter")
	c.like("eth_newPendingTransactionFilter")
	c.same("eth_uninstallFilter", "0x1234")
	c.same("eth_getFilterChanges", "0x1234")
	c.same("eth_getFilterLogs", "0x1234")
}

func (c *conformance) node() {
	c.same("eth_chainId")
	c.same("eth_blockNumber")
	c.same("eth_syncing")
	c.same("eth_accounts")
	c.like("eth_gasPrice")
	c.like("eth_maxPriorityFeePerGas")
	c.same("eth_blobBaseFee")
	c.like("eth_feeHistory", "0x3", "latest", []float64{10, 50})
	c.like("eth_feeHistory", 2, "0x4", []float64{})
	c.same("eth_feeHistory", "0x1", "0xffff", []float64{})
	c.same("eth_feeHistory", "0x1", "latest", []float64{50, 10})
	c.same("eth_sendRawTransaction", "0x02c0")
	c.same("eth_sendRawTransactionSync", "0x02c0", 500)
	c.same("eth_sendRawTransactionSync", "0x02c0", 0)
	c.same("eth_sendRawTransactionSync", "0x02c0")
	raw, err := c.waiting.MarshalBinary()
	require.NoError(c.t, err)
	c.same("eth_sendRawTransactionSync", hexutil.Bytes(raw), 500)
	for _, method := range []string{"hardhat_metadata", "evm_snapshot", "anvil_nodeInfo", "wallet_getCapabilities"} {
		c.same(method) // clients recognize development nodes by it
	}
	c.same("net_listening")
	c.same("net_peerCount")
	c.same("net_version")
	c.like("web3_clientVersion")
	c.same("web3_sha3", "0x68656c6c6f")
	c.same("web3_sha3", hexutil.Bytes(make([]byte, 200)))
}

func (c *conformance) pool() {
	c.same("txpool_status")
	c.like("txpool_content")
	c.same("txpool_inspect")
	c.like("txpool_contentFrom", c.waiter)
	c.same("txpool_contentFrom", c.me)
	c.like("eth_getTransactionByHash", c.waiting.Hash())
	c.same("eth_getTransactionReceipt", c.waiting.Hash())
	c.same("eth_getRawTransactionByHash", c.waiting.Hash())
	c.same("debug_traceTransaction", c.waiting.Hash())
	c.same("eth_getTransactionCount", c.waiter, "pending")
}

// compare asks both.
func (x *try) compare(t *testing.T, b *both) {
	var ours, geths any
	err := b.ours.CallContext(t.Context(), &ours, x.method, x.args(b.ours)...)
	want := b.geths.CallContext(t.Context(), &geths, x.method, x.args(b.geths)...)
	switch {
	case want != nil:
		require.EqualError(t, err, want.Error())
		require.Equal(t, code(want), code(err))
		require.Equal(t, errorData(want), errorData(err))
	case x.equal:
		require.NoError(t, err)
		require.Equal(t, geths, ours)
	default:
		require.NoError(t, err)
		require.NoError(t, sameShape("the answer", ours, geths))
	}
}

func errorData(err error) any {
	if e, ok := err.(rpc.DataError); ok {
		return e.ErrorData()
	}
	return nil
}

// Every method that geth also has runs against both nodes, on the same
// transactions. The answers have the same shape, and the same value if the chains
// agree on it.
func TestConformance(t *testing.T) {
	c := &conformance{both: startBoth(t), t: t, stranger: common.Address{0xee}}
	for who, tx := range map[*common.Address]*types.Transaction{&c.me: c.txs[1], &c.waiter: c.waiting} {
		var err error
		*who, err = types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		require.NoError(t, err)
	}
	c.call = map[string]any{"from": c.me, "to": c.counter}
	c.failing = map[string]any{"from": c.me, "to": c.counter, "data": "0x1234"}
	for _, fill := range []func(){c.blocks, c.transactions, c.states, c.calls, c.logs, c.node, c.pool} {
		fill()
	}
	tried := map[string]bool{}
	for i, x := range c.tries {
		tried[x.method] = true
		args, err := json.Marshal(x.args(c.ours))
		require.NoError(t, err)
		t.Run(fmt.Sprintf("%d %s%s", i, x.method, args), func(t *testing.T) { x.compare(t, c.both) })
	}
	for _, name := range methods(c.api) {
		require.True(t, tried[name] != elsewhere[name], "%s is to be tried here, or elsewhere", name)
	}
}
