package rpcapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
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
	txs         []*types.Transaction // a deployment, one each of types 0, 1, 2 and 4; that of type 2 fails
	waiting     *types.Transaction   // behind a gap
	counter     common.Address
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
		&types.DynamicFeeTx{ChainID: id, GasTipCap: big.NewInt(params.GWei), GasFeeCap: price, Gas: 100_000, To: &b.counter, Data: []byte{1, 2, 3}}, // fails
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
	require.NoError(t, s.node.Drain(t.Context())) // until it is final, so that all tags are above the genesis
	return b
}

// elsewhere are the methods that geth has not, or answers otherwise: each has a test of its own.
var elsewhere = map[string]bool{
	"admin_nodeInfo": true, "admin_removeTransaction": true, "admin_bannedUntil": true, "admin_pardon": true, // TestTokens, TestRateLimits
	"eth_getProof": true, "jam_getStateWitness": true, // TestStateWitness
	"eth_sendRawTransactionSync": true,                                                       // TestSendAndWait
	"eth_newHeads":               true, "eth_logs": true, "eth_newPendingTransactions": true, // TestSubscriptions
	"jam_queueStatus": true, "jam_getBundle": true, "jam_getFinalityProof": true, "jam_getTrust": true, // the tests of the command
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

// ask calls a method of both. Hashes of blocks differ, so arguments may depend on who is asked.
func (b *both) ask(t *testing.T, method string, args func(c *rpc.Client) []any) (ours, geths any, oursErr, gethsErr error) {
	t.Helper()
	oursErr = b.ours.CallContext(t.Context(), &ours, method, args(b.ours)...)
	gethsErr = b.geths.CallContext(t.Context(), &geths, method, args(b.geths)...)
	return
}

// added are the fields that the node's answers have besides geth's.
var added = []string{"queueStatus", "workPackageHash", "jamHeaderHash", "jamSlot"}

// sameShape compares two answers: the same fields, kinds of values, and lengths of data.
func sameShape(at string, ours, geths any) error {
	switch g := geths.(type) {
	case map[string]any:
		o, ok := ours.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, and geth has an object", at, ours)
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			value, ok := o[name]
			if !ok {
				return fmt.Errorf("%s has no %s, and geth has", at, name)
			}
			if name == "extraData" {
				continue // everybody's own
			}
			if err := sameShape(at+"."+name, value, g[name]); err != nil {
				return err
			}
		}
		for name := range o {
			if _, ok := g[name]; !ok && !slices.Contains(added, name) {
				return fmt.Errorf("%s has %s, and geth has not", at, name)
			}
		}
	case []any:
		o, ok := ours.([]any)
		if !ok || len(o) != len(g) {
			return fmt.Errorf("%s is %v, and geth has %d elements", at, ours, len(g))
		}
		for i := range g {
			if err := sameShape(fmt.Sprintf("%s[%d]", at, i), o[i], g[i]); err != nil {
				return err
			}
		}
	default:
		if o, g := kind(ours), kind(geths); o != g {
			return fmt.Errorf("%s is %s, and geth has %s (%v, %v)", at, o, g, ours, geths)
		}
	}
	return nil
}

// kind says what a value is: a quantity has no leading zeros and any length, data has whole bytes and one length.
func kind(v any) string {
	text, ok := v.(string)
	switch {
	case !ok:
		return fmt.Sprintf("%T", v)
	case !strings.HasPrefix(text, "0x"):
		return "text"
	case len(text) == 2, len(text) <= 18 && (text == "0x0" || text[2] != '0'):
		return "quantity"
	case len(text) <= 34:
		return "name of a filter" // 16 bytes without leading zeros
	}
	return fmt.Sprintf("data of %d digits", len(text)-2)
}

// Every method that geth has too, beside geth itself, on the same transactions: the same shape, and where the chains agree the same value.
func TestConformance(t *testing.T) {
	b := startBoth(t)
	fixed := func(args ...any) func(*rpc.Client) []any { return func(*rpc.Client) []any { return args } }
	me, err := types.Sender(types.LatestSignerForChainID(b.txs[1].ChainId()), b.txs[1])
	require.NoError(t, err)
	waiter, err := types.Sender(types.LatestSignerForChainID(b.waiting.ChainId()), b.waiting)
	require.NoError(t, err)
	stranger := common.Address{0xee}
	block := func(number int) func(c *rpc.Client) string {
		return func(c *rpc.Client) string {
			var header struct{ Hash string }
			require.NoError(t, c.CallContext(t.Context(), &header, "eth_getBlockByNumber", hexutil.Uint64(number), false))
			return header.Hash
		}
	}
	byHash := func(number int, more ...any) func(*rpc.Client) []any {
		return func(c *rpc.Client) []any { return append([]any{block(number)(c)}, more...) }
	}
	call := map[string]any{"from": me, "to": b.counter}
	data := map[string]any{"from": me, "to": b.counter, "data": "0x1234"}
	type try struct {
		method string
		args   func(*rpc.Client) []any
		equal  bool // the values too
	}
	var tries []try
	same := func(method string, args ...any) { tries = append(tries, try{method, fixed(args...), true}) }
	like := func(method string, args ...any) { tries = append(tries, try{method, fixed(args...), false}) }
	likeBy := func(method string, args func(*rpc.Client) []any) { tries = append(tries, try{method, args, false}) }

	// Finalized is for other tests: this geth finalizes when it likes.
	for _, tag := range []string{"latest", "safe", "earliest", "0x2", "0xffff"} {
		like("eth_getBlockByNumber", tag, false)
		same("eth_getBlockTransactionCountByNumber", tag)
		same("eth_getUncleCountByBlockNumber", tag)
	}
	like("eth_getBlockByNumber", "0x2", true)
	likeBy("eth_getBlockByHash", byHash(3, true))
	likeBy("eth_getBlockByHash", byHash(3, false))
	like("eth_getBlockByHash", common.Hash{1}, false)
	likeBy("eth_getBlockTransactionCountByHash", byHash(3))
	likeBy("eth_getUncleCountByBlockHash", byHash(3))
	same("eth_getUncleByBlockNumberAndIndex", "0x1", "0x0")
	likeBy("eth_getUncleByBlockHashAndIndex", byHash(1, "0x0"))
	like("eth_getBlockReceipts", "0x4")
	likeBy("eth_getBlockReceipts", byHash(5))
	same("eth_getBlockReceipts", "0xffff")
	for i, tx := range b.txs {
		like("eth_getTransactionByHash", tx.Hash())
		like("eth_getTransactionReceipt", tx.Hash())
		like("eth_getTransactionByBlockNumberAndIndex", hexutil.Uint64(i+1), "0x0")
		likeBy("eth_getTransactionByBlockHashAndIndex", byHash(i+1, "0x0"))
		same("eth_getRawTransactionByHash", tx.Hash())
		same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "callTracer", "tracerConfig": map[string]any{"withLog": true}})
		same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "4byteTracer"})
		same("debug_traceTransaction", tx.Hash(), map[string]any{"enableMemory": true, "enableReturnData": true})
		like("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "flatCallTracer"})
	}
	for _, method := range []string{"eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_getRawTransactionByHash", "debug_traceTransaction"} {
		like(method, common.Hash{1})
	}
	like("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x7")
	like("debug_traceBlockByNumber", "0x4", map[string]any{"tracer": "callTracer"})
	likeBy("debug_traceBlockByHash", byHash(5, map[string]any{"tracer": "callTracer"}))
	same("debug_traceTransaction", b.txs[1].Hash(), map[string]any{"tracer": "nonsense"})

	for _, at := range []any{"latest", "safe", "0x3", "earliest", "0xffff"} {
		same("eth_getTransactionCount", me, at)
		same("eth_getCode", b.counter, at)
		same("eth_getStorageAt", b.counter, "0x0", at)
		same("eth_getBalance", stranger, at)
		same("eth_call", call, at)
		same("eth_call", data, at)
	}
	same("eth_getCode", me, "latest")
	like("eth_getBalance", me, "latest")
	likeBy("eth_getBalance", func(c *rpc.Client) []any {
		return []any{me, map[string]any{"blockHash": block(3)(c), "requireCanonical": true}}
	})
	same("eth_getBalance", stranger, map[string]any{"blockNumber": "0x2"})
	same("eth_getBalance", stranger, map[string]any{"blockNumber": "0x2", "blockHash": common.Hash{}})
	same("eth_getBalance", stranger, map[string]any{"blockHash": common.Hash{9}})
	same("eth_getStorageAt", b.counter, "0xzz", "latest")
	same("eth_estimateGas", call)
	same("eth_estimateGas", data)
	same("eth_estimateGas", map[string]any{"from": me, "to": stranger, "value": "0x1"})
	same("eth_estimateGas", map[string]any{"from": stranger, "to": me, "value": "0x1"})
	same("eth_createAccessList", call)
	same("eth_createAccessList", data)
	same("eth_createAccessList", map[string]any{"from": me, "data": "0x5f545f5260205ff3"})
	rich := map[string]any{stranger.Hex(): map[string]any{"balance": "0xffffffffffffffff", "code": "0x475f5260205ff3", "nonce": "0x5"}}
	same("eth_call", map[string]any{"to": stranger}, "latest", rich)
	same("eth_estimateGas", map[string]any{"to": stranger}, "latest", rich)
	counted := map[string]any{"stateDiff": map[string]any{common.Hash{}.Hex(): common.Hash{31: 0x29}.Hex()}}
	same("eth_call", call, "latest", map[string]any{b.counter.Hex(): counted})
	same("debug_traceCall", call, "latest", map[string]any{"tracer": "callTracer"})
	same("debug_traceCall", data, "latest", map[string]any{"tracer": "callTracer"})
	same("debug_traceCall", call, "pending", map[string]any{})
	same("debug_traceCall", call, "latest", map[string]any{"stateOverrides": rich})

	topic := common.Hash{31: 7}
	like("eth_getLogs", map[string]any{"fromBlock": "0x0", "toBlock": "latest", "address": b.counter})
	like("eth_getLogs", map[string]any{"fromBlock": "0x2", "toBlock": "0x3", "topics": []any{[]any{topic, common.Hash{1}}}})
	likeBy("eth_getLogs", func(c *rpc.Client) []any { return []any{map[string]any{"blockHash": block(2)(c)}} })
	same("eth_getLogs", map[string]any{"blockHash": common.Hash{8}})
	same("eth_getLogs", map[string]any{"fromBlock": "0x5", "toBlock": "0x1"})
	same("eth_getLogs", map[string]any{"fromBlock": "0x1", "blockHash": common.Hash{8}})
	same("eth_getLogs", map[string]any{"topics": make([]any, 5)})
	like("eth_newFilter", map[string]any{})
	like("eth_newBlockFilter")
	like("eth_newPendingTransactionFilter")
	same("eth_uninstallFilter", "0x1234")
	same("eth_getFilterChanges", "0x1234")
	same("eth_getFilterLogs", "0x1234")

	same("eth_chainId")
	same("eth_blockNumber")
	same("eth_syncing")
	same("eth_accounts")
	like("eth_gasPrice")
	like("eth_maxPriorityFeePerGas")
	same("eth_blobBaseFee")
	like("eth_feeHistory", "0x3", "latest", []float64{10, 50})
	like("eth_feeHistory", 2, "0x4", []float64{})
	same("eth_feeHistory", "0x1", "0xffff", []float64{})
	same("eth_feeHistory", "0x1", "latest", []float64{50, 10})
	same("eth_sendRawTransaction", "0x02c0")
	raw, err := b.txs[1].MarshalBinary()
	require.NoError(t, err)
	for _, method := range []string{"hardhat_metadata", "evm_snapshot", "anvil_nodeInfo", "wallet_getCapabilities"} {
		same(method) // development nodes have them, and their users find out by the error who is none
	}
	same("net_listening")
	same("net_peerCount")
	same("net_version")
	like("web3_clientVersion")
	same("web3_sha3", "0x68656c6c6f")
	same("web3_sha3", hexutil.Bytes(raw))
	same("txpool_status")
	like("txpool_content")
	like("txpool_contentFrom", waiter)
	same("txpool_contentFrom", me)
	like("eth_getTransactionByHash", b.waiting.Hash())
	same("eth_getTransactionReceipt", b.waiting.Hash())
	same("eth_getRawTransactionByHash", b.waiting.Hash())
	same("debug_traceTransaction", b.waiting.Hash())
	same("eth_getTransactionCount", waiter, "pending")
	tried := map[string]bool{}
	for _, x := range tries {
		tried[x.method] = true
	}
	for _, name := range methods(b.api) {
		require.True(t, tried[name] != elsewhere[name], "%s is to be tried here, or elsewhere", name)
	}
	for i, x := range tries {
		args, err := json.Marshal(x.args(b.ours))
		require.NoError(t, err)
		t.Run(fmt.Sprintf("%d %s%s", i, x.method, args), func(t *testing.T) {
			ours, geths, oursErr, gethsErr := b.ask(t, x.method, x.args)
			if gethsErr != nil {
				require.EqualError(t, oursErr, gethsErr.Error())
				require.Equal(t, code(gethsErr), code(oursErr))
				return
			}
			require.NoError(t, oursErr)
			if x.equal {
				require.Equal(t, geths, ours)
			} else {
				require.NoError(t, sameShape("the answer", ours, geths))
			}
		})
	}
}
