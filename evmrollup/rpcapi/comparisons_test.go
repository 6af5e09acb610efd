package rpcapi

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
	"strings"
)

func (c *conformance) blocks() {
	// Finalized is for other tests: this geth finalizes when it likes.
	for _, tag := range []string{"latest", "safe", "earliest", "0x2", "0xffff"} {
		c.same("eth_getBlockByNumber", tag, false)
		c.same("eth_getBlockTransactionCountByNumber", tag)
		c.same("eth_getUncleCountByBlockNumber", tag)
	}
	for _, tag := range []string{"latest", "safe", "earliest", "pending", "0x2", "0xffff"} {
		c.same("eth_getHeaderByNumber", tag)
	}
	c.add("eth_getHeaderByHash", c.byHash(3))
	c.same("eth_getHeaderByHash", common.Hash{1})
	for _, method := range []string{"debug_getRawHeader", "debug_getRawBlock", "debug_getRawReceipts"} {
		c.same(method, "0xffff")
		c.same(method, common.Hash{1})
		c.same(method, map[string]any{})
	}
	c.same("debug_getRawReceipts", "0x4")
	c.add("debug_getRawReceipts", c.byHash(5))
	c.same("debug_getRawReceipts", "earliest")
	c.same("eth_getBlockByNumber", "0x2", true)
	c.add("eth_getBlockByHash", c.byHash(3, true))
	c.add("eth_getBlockByHash", c.byHash(3, false))
	c.same("eth_getBlockByHash", common.Hash{1}, false)
	c.add("eth_getBlockTransactionCountByHash", c.byHash(3))
	c.add("eth_getUncleCountByBlockHash", c.byHash(3))
	c.same("eth_getUncleByBlockNumberAndIndex", "0x1", "0x0")
	c.add("eth_getUncleByBlockHashAndIndex", c.byHash(1, "0x0"))
	c.same("eth_getBlockReceipts", "0x4")
	c.add("eth_getBlockReceipts", c.byHash(5))
	c.same("eth_getBlockReceipts", "0xffff")
}

func (c *conformance) transactions() {
	for i, tx := range c.txs {
		c.same("eth_getTransactionByHash", tx.Hash())
		c.same("eth_getTransactionReceipt", tx.Hash())
		c.same("eth_getTransactionByBlockNumberAndIndex", hexutil.Uint64(i+1), "0x0")
		c.add("eth_getTransactionByBlockHashAndIndex", c.byHash(i+1, "0x0"))
		c.same("eth_getRawTransactionByHash", tx.Hash())
		c.same("debug_getRawTransaction", tx.Hash())
		c.same("eth_getRawTransactionByBlockNumberAndIndex", hexutil.Uint64(i+1), "0x0")
		c.add("eth_getRawTransactionByBlockHashAndIndex", c.byHash(i+1, "0x0"))
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "callTracer", "tracerConfig": map[string]any{"withLog": true}})
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "4byteTracer"})
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"enableMemory": true, "enableReturnData": true})
		c.same("debug_traceTransaction", tx.Hash(), map[string]any{"tracer": "flatCallTracer"})
	}
	for _, method := range []string{"eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_getRawTransactionByHash", "debug_getRawTransaction", "debug_traceTransaction"} {
		c.same(method, common.Hash{1})
	}
	c.same("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x7")
	c.same("eth_getRawTransactionByBlockNumberAndIndex", "0x1", "0x7")
	c.same("eth_getRawTransactionByBlockNumberAndIndex", "0xffff", "0x0")
	c.same("eth_getRawTransactionByBlockHashAndIndex", common.Hash{1}, "0x0")
	c.same("eth_pendingTransactions")
	c.same("debug_traceBlockByNumber", "0x4", map[string]any{"tracer": "callTracer"})
	c.add("debug_traceBlockByHash", c.byHash(5, map[string]any{"tracer": "callTracer"}))
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
	c.same("eth_getBalance", c.me, "latest")
	c.add("eth_getBalance", func(client *rpc.Client) []any {
		return []any{c.me, map[string]any{"blockHash": blockHash(c.t, client, 3), "requireCanonical": true}}
	})
	c.same("eth_getBalance", c.stranger, map[string]any{"blockNumber": "0x2"})
	c.same("eth_getBalance", c.stranger, map[string]any{"blockNumber": "0x2", "blockHash": common.Hash{}})
	c.same("eth_getBalance", c.stranger, map[string]any{"blockHash": common.Hash{9}})
	for _, slot := range []string{"", "0x", "0", "00", "0X1", "0xzz", "0x1" + common.Hash{}.Hex()[2:], "0xz1" + common.Hash{}.Hex()[2:]} {
		c.same("eth_getStorageAt", c.counter, slot, "latest")
		c.same("eth_getStorageAt", c.counter, slot, "0xffff")
	}
	slots := map[string]any{c.counter.Hex(): []common.Hash{{}, {31: 1}}, c.stranger.Hex(): []common.Hash{{}}}
	for _, at := range []any{"latest", "0x3", "0xffff", nil} {
		c.same("eth_getStorageValues", slots, at)
	}
	c.same("eth_getStorageValues", map[string]any{})
	c.same("eth_getStorageValues", map[string]any{c.counter.Hex(): make([]common.Hash, 1025)})
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
	slot, slots := common.Hash{}.Hex(), map[string]any{common.Hash{}.Hex(): common.Hash{31: 0x30}.Hex()}
	balance, identity := "0x475f5260205ff3", common.Address{19: 4} // a precompiled contract
	for _, account := range []map[string]any{
		{"code": balance, "balance": most}, {"code": balance, "balance": "0x100000000000000000000000000000000"}, {"code": "0x"},
		{"state": slots}, {"state": map[string]any{}}, {"stateDiff": slots}, {"stateDiff": map[string]any{}}, {"state": slots, "stateDiff": slots},
		{"nonce": "0xffffffffffffffff"}, {"movePrecompileToAddress": c.stranger}, {"unknown": 1}, {"balance": "0x1" + most[2:]}, {"nonce": -1},
	} {
		c.same("eth_call", c.call, "latest", map[string]any{c.counter.Hex(): account})
		c.same("eth_estimateGas", c.call, "latest", map[string]any{c.counter.Hex(): account})
		c.same("debug_traceCall", c.call, "latest", m{"tracer": "callTracer", "stateOverrides": m{c.counter.Hex(): account}})
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
	c.same("debug_traceCall", copied, "latest", m{"tracer": "callTracer", "stateOverrides": moved})
	for _, at := range []string{"0x4", "earliest"} {
		c.same("debug_traceCall", c.call, at, m{"tracer": "callTracer", "txIndex": "0x0"})
	}
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
		c.same("debug_traceCall", program, "latest", m{"tracer": "callTracer", "blockOverrides": block})
		program["gasPrice"], program["from"] = "0x77359400", c.me
		c.same("eth_call", program, "latest", map[string]any{}, block)
	}
	// Arguments that contradict each other.
	for _, fields := range []map[string]any{
		{"gasPrice": "0x1", "maxFeePerGas": "0x1"}, {"chainId": "0x1"}, {"data": "0x01", "input": "0x5f5ff3"}, {"maxPriorityFeePerGas": "0x1"},
		{"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, {"maxFeePerGas": "0x1"}, {"value": "0x1", "from": c.stranger}, {"gas": "0x1"},
		{"maxFeePerBlobGas": "0x1"}, {"authorizationList": c.txs[4].SetCodeAuthorizations()}, {"blobVersionedHashes": []common.Hash{{1}}}, {"nonce": "0x70"},
		{"maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x1"}, {"maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"}, {"gas": "0xffffffffffff"},
	} {
		if fields["from"] == nil {
			fields["from"] = c.me
		}
		c.same("eth_call", fields)
		c.same("eth_estimateGas", fields)
		c.same("eth_createAccessList", fields)
	}
}

func (c *conformance) logs() {
	topic := common.Hash{31: 7}
	c.same("eth_getLogs", map[string]any{"fromBlock": "0x0", "toBlock": "latest", "address": c.counter})
	c.same("eth_getLogs", map[string]any{"fromBlock": "0x2", "toBlock": "0x3", "topics": []any{[]any{topic, common.Hash{1}}}})
	c.add("eth_getLogs", func(client *rpc.Client) []any { return []any{map[string]any{"blockHash": blockHash(c.t, client, 2)}} })
	c.same("eth_getLogs", map[string]any{"blockHash": common.Hash{8}})
	c.same("eth_getLogs", map[string]any{"fromBlock": "0x5", "toBlock": "0x1"})
	c.same("eth_getLogs", map[string]any{"fromBlock": "0x1", "blockHash": common.Hash{8}})
	c.same("eth_getLogs", map[string]any{"topics": make([]any, 5)})
	for _, ends := range [][2]any{{"0x0", "0x70"}, {"0x70", "latest"}, {"0x70", nil}, {nil, "0x70"}, {"latest", "0x70"}, {"latest", "0x5"}, {"0x5", "0x5"}, {"0x5", "0x6"}, {"safe", "0x70"}, {"latest", "0x0"}, {"pending", nil}, {nil, "pending"}} {
		c.same("eth_getLogs", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
	for _, ends := range [][2]any{{"latest", "0x3"}, {"latest", "earliest"}, {"0x3", "0x1"}, {"0x3", "earliest"}, {"pending", nil}, {nil, "pending"}, {"safe", "latest"}, {"0x1", "finalized"}, {nil, "0x7fffffffffffffff"}} {
		c.same("eth_newFilter", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
	for _, ends := range [][2]any{{"earliest", "latest"}, {"0x1", "0x70"}, {"0x70", "latest"}, {"earliest", "earliest"}, {"earliest", "0x3"}} {
		c.same("eth_newFilter", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
	c.same("eth_newFilter", map[string]any{})
	c.same("eth_newBlockFilter")
	c.same("eth_newPendingTransactionFilter")
	c.same("eth_uninstallFilter", "0x1234")
	c.same("eth_getFilterChanges", "0x1234")
	c.same("eth_getFilterLogs", "0x1234")
}

func (c *conformance) node() {
	c.same("eth_chainId")
	c.same("eth_blockNumber")
	c.same("eth_syncing")
	c.same("eth_accounts")
	c.same("eth_gasPrice")
	c.same("eth_maxPriorityFeePerGas")
	c.same("eth_blobBaseFee")
	c.same("eth_baseFee")
	c.fill()
	c.same("eth_feeHistory", "0x3", "latest", []float64{10, 50})
	c.same("eth_feeHistory", 2, "0x4", []float64{})
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
	c.same("web3_sha3", "0x68656c6c6f")
	c.same("web3_sha3", hexutil.Bytes(make([]byte, 200)))
}

// fill asks for transactions of all types, and with fields missing.
func (c *conformance) fill() {
	authorizations := c.txs[4].SetCodeAuthorizations()
	for _, fields := range []map[string]any{
		{}, {"to": c.stranger}, {"to": c.stranger, "gasPrice": "0x77359400"}, {"to": c.stranger, "gasPrice": "0x77359400", "accessList": types.AccessList{}},
		{"to": c.stranger, "accessList": types.AccessList{{Address: c.counter}}}, {"to": c.counter, "authorizationList": authorizations},
		{"data": "0x5f5ff3"}, {"to": c.stranger, "nonce": "0x7", "gas": "0x5208", "value": "0x1"}, {"to": c.stranger, "maxFeePerGas": "0x77359400"},
		{"to": c.stranger, "maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"}, {"to": c.stranger, "maxFeePerGas": "0x1"},
		{"to": c.stranger, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, {"to": c.stranger, "gasPrice": "0x0"},
		{"to": c.stranger, "gasPrice": "0x1", "maxFeePerGas": "0x1"}, {"to": c.stranger, "gasPrice": "0x77359400", "authorizationList": authorizations},
		{"to": c.stranger, "chainId": "0x1"}, {"to": c.stranger, "data": "0x01", "input": "0x02"}, {"to": c.stranger, "maxFeePerBlobGas": "0x0"},
		{"data": "0x5f5ff3", "authorizationList": authorizations}, {"to": c.counter, "data": "0x1234"}, {"to": c.stranger, "maxFeePerBlobGas": "0x1"},
	} {
		fields["from"] = c.me
		c.same("eth_fillTransaction", fields)
	}
	c.same("eth_fillTransaction", map[string]any{"to": c.stranger, "gas": "0x5208"})
	c.same("eth_fillTransaction", map[string]any{"from": c.waiter, "to": c.stranger})
}

func (c *conformance) pool() {
	c.same("txpool_status")
	c.same("txpool_content")
	c.same("txpool_inspect")
	c.same("txpool_contentFrom", c.waiter)
	c.same("txpool_contentFrom", c.me)
	c.same("eth_getTransactionByHash", c.waiting.Hash())
	c.same("eth_getTransactionReceipt", c.waiting.Hash())
	c.same("eth_getRawTransactionByHash", c.waiting.Hash())
	c.same("debug_traceTransaction", c.waiting.Hash())
	c.same("eth_getTransactionCount", c.waiter, "pending")
}

// differences are the calls whose answers are not geth's.
func (c *conformance) differences() {
	c.differs("The state is a unified binary tree (EIP-7864), so the proofs are not those of a Merkle Patricia trie, and `storageHash` is the root of the state. "+
		"Package `evmrollup/stateproof` explains and verifies them.",
		"eth_getProof", c.me, []string{"0x0"}, "latest")
	c.same("eth_getProof", c.me, make([]string, 1025), "latest")
	c.same("eth_getProof", c.me, []string{"0xzz"}, "latest")
	c.same("eth_getProof", c.me, []string{"0x" + strings.Repeat("0", 66)}, "latest")
	c.same("eth_getProof", c.me, []string{}, "0x1000")
	const pending = "The block `pending` is the newest executed one. It is complete and has its hash, unlike the block that geth would make now."
	c.differs(pending, "eth_getBlockByNumber", "pending", false)
	for _, method := range []string{"debug_getRawHeader", "debug_getRawBlock", "debug_getRawReceipts"} {
		c.differs(pending, method, "pending")
	}
	blobs := map[string]any{"from": c.me, "to": c.stranger, "blobVersionedHashes": []common.Hash{{1}}}
	c.differs("The rollup has no blobs, so a call with blobs is refused.", "eth_simulateV1", m{"blockStateCalls": []any{m{"calls": []any{blobs}}}})
	for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList", "eth_fillTransaction"} {
		c.differs("The rollup has no blobs, so a call with blobs is refused.", method, blobs)
	}
	// The init code counts to 700,000, which takes 20 million gas.
	burning := map[string]any{"from": c.me, "data": "0x5f5b60010180620aae6011600157"}
	c.differs("An estimate above the gas that a transaction may have is an error, because the transaction would be refused.", "eth_estimateGas", burning)
	c.differs("The time-out may also be a hex string, as in drafts of EIP-7966.", "eth_sendRawTransactionSync", "0x02c0", "0x1f4")
	raw, err := c.txs[1].MarshalBinary()
	require.NoError(c.t, err)
	c.differs("A transaction in a block is `already known`, even if the block counts as mined. In geth its nonce is then too low.",
		"eth_sendRawTransaction", hexutil.Bytes(raw))
	c.differs("The blocks of the rollup call no system contracts.", "eth_config")
	c.differs("The node's name and namespaces.", "web3_clientVersion")
	c.differs("The node's name and namespaces.", "rpc_modules")
}
