package rpcapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
)

// The types of ethereum/execution-apis. A type is the name of a scalar or of an object, [T] is
// a list, {T} an object with values of T, and A|B is either.
var scalars = map[string]*regexp.Regexp{
	"slot": regexp.MustCompile(`^0x[0-9a-f]{0,64}$`),
	"uint": regexp.MustCompile(`^0x(0|[1-9a-f][0-9a-f]*)$`), "bytes": regexp.MustCompile(`^0x([0-9a-f]{2})*$`), "byte": regexp.MustCompile(`^0x[0-9a-f]{1,2}$`),
	"bytes4": hexOf(4), "bytes8": hexOf(8), "hash": hexOf(32), "bytes256": hexOf(256),
	"address": regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`), "text": regexp.MustCompile(``),
	"tag": regexp.MustCompile(`^(earliest|latest|pending|safe|finalized)$`),
}

func hexOf(n int) *regexp.Regexp { return regexp.MustCompile(fmt.Sprintf(`^0x[0-9a-f]{%d}$`, 2*n)) }

const (
	placeFields  = "blockHash:hash|null blockNumber:uint|null blockTimestamp:uint|null from:address hash:hash transactionIndex:uint|null "
	signedFields = "type:byte nonce:uint to?:address|null gas:uint value:uint input:bytes gasPrice:uint r:uint s:uint "
	listFields   = signedFields + "v?:byte yParity:byte chainId:uint accessList:[Access] "
	feeFields    = listFields + "maxFeePerGas:uint maxPriorityFeePerGas:uint "
	headerFields = "hash:hash parentHash:hash sha3Uncles:hash miner:address stateRoot:hash transactionsRoot:hash receiptsRoot:hash logsBloom:bytes256 " +
		"difficulty?:uint number:uint gasLimit:uint gasUsed:uint timestamp:uint extraData:bytes mixHash:hash nonce:bytes8 baseFeePerGas?:uint " +
		"withdrawalsRoot?:hash blobGasUsed?:uint excessBlobGas?:uint parentBeaconBlockRoot?:hash requestsHash?:hash "
	blockFields = headerFields + "size:uint transactions:[hash]|[Transaction] withdrawals?:[Withdrawal] uncles:[hash] "
)

// objects have their fields in the form name:type, or name?:type if a field may be missing.
var objects = map[string]string{
	"Header": headerFields, "Block": blockFields, "SimulatedBlock": blockFields + "calls:[CallResult]",
	"Withdrawal": "index:uint validatorIndex:uint address:address amount:uint",
	"Legacy":     placeFields + signedFields + "v:uint chainId?:uint", "List": placeFields + listFields, "Fee": placeFields + feeFields,
	"Code": placeFields + feeFields + "authorizationList:[Authorization]", "Access": "address:address storageKeys:[hash]",
	"Authorization": "chainId:uint nonce:uint address:address yParity:byte r:uint s:uint",
	"Receipt": "type?:byte transactionHash:hash transactionIndex:uint blockHash:hash blockNumber:uint from:address to?:address|null cumulativeGasUsed:uint " +
		"gasUsed:uint contractAddress?:address|null logs:[Log] logsBloom:bytes256 status?:uint effectiveGasPrice:uint",
	"Log": "removed?:bool logIndex?:uint transactionIndex?:uint transactionHash:hash blockHash?:hash blockNumber?:uint blockTimestamp?:uint " +
		"address?:address data?:bytes topics?:[hash]",
	"AccountProof": "address:address accountProof:[bytes] balance:uint codeHash:hash nonce:uint storageHash:hash storageProof:[StorageProof]",
	"StorageProof": "key:slot value:uint proof:[bytes]",
	"AccessResult": "accessList:[Access] error?:text gasUsed:uint",
	"FeeHistory": "oldestBlock:uint baseFeePerGas:[uint] baseFeePerBlobGas?:[uint] gasUsedRatio:[number] blobGasUsedRatio?:[number] " +
		"reward?:[[uint]]",
	"Forks":      "current:Fork next?:Fork|null last?:Fork|null",
	"Fork":       "activationTime:number blobSchedule:Blobs chainId:uint forkId:bytes4 precompiles:{address} systemContracts:{address}",
	"Blobs":      "baseFeeUpdateFraction:number max:number target:number",
	"CallResult": "status:byte returnData:bytes gasUsed:uint maxUsedGas?:uint logs:[Log] error?:CallError", "CallError": "code:number message:text data?:bytes",
	"Pool": "pending:uint queued:uint", "Filled": "raw:bytes tx:any",
}

// unions are names of alternatives.
var unions = map[string]string{
	"Transaction": "Legacy|List|Fee|Code", "block": "uint|tag", "blockOrHash": "uint|tag|hash", "changes": "[hash]|[Log]|[Transaction]",
}

// satisfies returns an error if a decoded JSON value is not of a type.
func satisfies(at string, v any, kind string) error {
	if some := alternatives(kind); len(some) > 1 {
		var errs []string
		for _, kind := range some {
			err := satisfies(at, v, kind)
			if err == nil {
				return nil
			}
			errs = append(errs, err.Error())
		}
		return fmt.Errorf("(%s)", strings.Join(errs, ", or "))
	}
	ok := false
	switch {
	case unions[kind] != "":
		return satisfies(at, v, unions[kind])
	case objects[kind] != "":
		return satisfiesObject(at, v, objects[kind])
	case kind[0] == '[' || kind[0] == '{':
		return satisfiesAll(at, v, kind)
	case kind == "null":
		ok = v == nil
	case kind == "bool":
		_, ok = v.(bool)
	case kind == "number":
		_, ok = v.(float64)
	case kind == "any":
		ok = true
	default:
		text, isText := v.(string)
		ok = isText && scalars[kind].MatchString(text)
	}
	if !ok {
		return fmt.Errorf("%s is %v, want %s", at, v, kind)
	}
	return nil
}

// alternatives splits A|B, but not within brackets.
func alternatives(kind string) (some []string) {
	depth, from := 0, 0
	for i, c := range kind {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '|':
			if depth == 0 {
				some, from = append(some, kind[from:i]), i+1
			}
		}
	}
	return append(some, kind[from:])
}

// satisfiesAll checks the elements of a list, or the values of an object.
func satisfiesAll(at string, v any, kind string) error {
	element := kind[1 : len(kind)-1]
	switch all := v.(type) {
	case []any:
		for i := range all {
			if err := satisfies(fmt.Sprintf("%s[%d]", at, i), all[i], element); err != nil {
				return err
			}
		}
		if kind[0] == '[' {
			return nil
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := satisfies(at+"."+name, all[name], element); err != nil {
				return err
			}
		}
		if kind[0] == '{' {
			return nil
		}
	}
	return fmt.Errorf("%s is %v, want %s", at, v, kind)
}

// satisfiesObject allows the fields in addedFields besides those of the type.
func satisfiesObject(at string, v any, fields string) error {
	o, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is %v, want an object", at, v)
	}
	known := slices.Clone(addedFields)
	for _, field := range strings.Fields(fields) {
		name, kind, _ := strings.Cut(field, ":")
		name, optional := strings.CutSuffix(name, "?")
		known = append(known, name)
		value, has := o[name]
		if !has && optional {
			continue
		}
		if !has {
			return fmt.Errorf("%s has no %s", at, name)
		}
		if err := satisfies(at+"."+name, value, kind); err != nil {
			return err
		}
	}
	for name := range o {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s has %s, which is not specified", at, name)
		}
	}
	return nil
}

// The check notices values of other types, and fields that are missing or not specified.
func TestSatisfies(t *testing.T) {
	hash := fmt.Sprintf(`"transactionHash":"0x%064x"`, 7)
	for kind, bad := range map[string][]string{
		"uint": {`"0x01"`, `"0x"`, `1`, `null`, `"1"`}, "bytes": {`"0x1"`, `"01"`, `null`}, "hash|null": {`"0x00"`, `0`}, "bool": {`"true"`, `null`},
		"[uint]": {`{}`, `["0x1",1]`, `null`}, "{address}": {`[]`, `{"a":"0x1"}`}, "[hash]|[Transaction]": {`["0x1"]`, `[{}]`},
		"Log": {`{}`, `[]`, `{"transactionHash":"0x1"}`, `{` + hash + `,"logIndex":1}`, `{` + hash + `,"more":1}`},
	} {
		for _, text := range bad {
			var v any
			require.NoError(t, json.Unmarshal([]byte(text), &v))
			require.Error(t, satisfies("the value", v, kind), "%s as %s", text, kind)
		}
	}
	for kind, text := range map[string]string{"[[uint]]|null": `[["0x0"],[]]`, "Log": `{` + hash + `,"jamSlot":1}`, "{[bool]}": `{"a":[true]}`, "block": `"latest"`} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		require.NoError(t, satisfies("the value", v, kind))
	}
}

// specified is a method with its parameters and its result. A parameter may be missing if
// its type ends with a question mark.
type specified struct {
	method, parameters, result string
	args                       [][]any
}

// specification returns the methods, each with arguments of calls that must succeed.
func (c *conformance) specification() []specified {
	hash := blockHash(c.t, c.ours, 3)
	raw, err := c.txs[1].MarshalBinary()
	require.NoError(c.t, err)
	var filter string
	require.NoError(c.t, c.ours.CallContext(c.t.Context(), &filter, "eth_newFilter", m{}))
	unknown, none := common.Hash{1}, []any{}
	var byHash, byPlace, byHashAndPlace [][]any
	for i, tx := range c.txs {
		byHash = append(byHash, []any{tx.Hash()})
		byPlace = append(byPlace, []any{hexutil.Uint64(i + 1), "0x0"})
		byHashAndPlace = append(byHashAndPlace, []any{blockHash(c.t, c.ours, i+1), "0x0"})
	}
	byHash = append(byHash, []any{unknown})
	blocks := [][]any{{"latest"}, {"0x2"}, {"pending"}, {"0xffff"}}
	full := [][]any{{"0x4", true}, {"0x4", false}, {"0x0", true}, {"0xffff", true}}
	one := func(args ...any) [][]any { return [][]any{args} }
	simulated := m{"blockStateCalls": []any{m{"calls": []any{c.call, c.failing, m{"data": "0xfe"}}}}, "returnFullTransactions": true}
	return []specified{
		{"eth_getBlockByNumber", "block bool", "Block|null", full}, {"eth_getBlockByHash", "hash bool", "Block|null", [][]any{{hash, true}, {hash, false}, {unknown, true}}},
		{"eth_getHeaderByNumber", "block", "Header|null", blocks}, {"eth_getHeaderByHash", "hash", "Header|null", [][]any{{hash}, {unknown}}},
		{"eth_getBlockTransactionCountByNumber", "block", "uint|null", blocks}, {"eth_getBlockTransactionCountByHash", "hash", "uint|null", [][]any{{hash}, {unknown}}},
		{"eth_getUncleCountByBlockNumber", "block", "uint|null", blocks}, {"eth_getUncleCountByBlockHash", "hash", "uint|null", [][]any{{hash}, {unknown}}},
		{"eth_getUncleByBlockNumberAndIndex", "block uint", "Block|null", byPlace}, {"eth_getUncleByBlockHashAndIndex", "hash uint", "Block|null", byHashAndPlace},
		{"eth_getBlockReceipts", "blockOrHash", "[Receipt]|null", [][]any{{"0x4"}, {hash}, {"0xffff"}}},
		{"eth_getTransactionByHash", "hash", "Transaction|null", append(byHash, []any{c.waiting.Hash()})},
		{"eth_getTransactionReceipt", "hash", "Receipt|null", byHash},
		{"eth_getTransactionByBlockNumberAndIndex", "block uint", "Transaction|null", byPlace},
		{"eth_getTransactionByBlockHashAndIndex", "hash uint", "Transaction|null", byHashAndPlace},
		{"eth_getRawTransactionByHash", "hash", "bytes|null", byHash}, {"eth_getRawTransactionByBlockNumberAndIndex", "block uint", "bytes|null", byPlace},
		{"eth_getRawTransactionByBlockHashAndIndex", "hash uint", "bytes|null", byHashAndPlace},
		{"eth_pendingTransactions", "", "[Transaction]", one()},
		{"eth_getTransactionCount", "address blockOrHash", "uint", one(c.me, "latest")}, {"eth_getBalance", "address blockOrHash", "uint", one(c.me, hash)},
		{"eth_getCode", "address blockOrHash", "bytes", [][]any{{c.counter, "latest"}, {c.me, "0x2"}}},
		{"eth_getStorageAt", "address bytes blockOrHash", "bytes", one(c.counter, common.Hash{}, "latest")},
		{"eth_getProof", "address any blockOrHash", "AccountProof", [][]any{{c.counter, []string{"0x0", "0x01"}, "latest"}, {c.stranger, none, "0x2"}}},
		{"eth_getStorageValues", "any blockOrHash?", "{[hash]}", one(m{c.counter.Hex(): []common.Hash{{}}}, "latest")},
		{"eth_call", "any blockOrHash?", "bytes", one(c.call, "latest")}, {"eth_estimateGas", "any blockOrHash?", "uint", one(c.call, "latest")},
		{"eth_createAccessList", "any blockOrHash?", "AccessResult", [][]any{{c.call, "latest"}, {c.failing}}},
		{"eth_simulateV1", "any blockOrHash?", "[SimulatedBlock]", one(simulated, "latest")},
		{"eth_fillTransaction", "any", "Filled", one(m{"from": c.me, "to": c.stranger})},
		{"eth_getLogs", "any", "[Log]", one(m{"fromBlock": "0x0", "toBlock": "latest"})},
		{"eth_newFilter", "any", "uint", one(m{})}, {"eth_newBlockFilter", "", "uint", one()}, {"eth_newPendingTransactionFilter", "", "uint", one()},
		{"eth_getFilterLogs", "uint", "[Log]", one(filter)}, {"eth_getFilterChanges", "uint", "changes", one(filter)}, {"eth_uninstallFilter", "uint", "bool", one(filter)},
		{"eth_chainId", "", "uint", one()}, {"eth_blockNumber", "", "uint", one()}, {"eth_syncing", "", "bool", one()}, {"eth_accounts", "", "[address]", one()},
		{"eth_gasPrice", "", "uint", one()}, {"eth_baseFee", "", "uint", one()}, {"eth_blobBaseFee", "", "uint", one()}, {"eth_maxPriorityFeePerGas", "", "uint", one()},
		{"eth_feeHistory", "uint block [number]", "FeeHistory", [][]any{{"0x3", "latest", []any{10, 50.5}}, {"0x1", "0x2", none}}},
		{"eth_config", "", "Forks", one()}, {"net_version", "", "text", one()}, {"net_listening", "", "bool", one()}, {"net_peerCount", "", "uint", one()},
		{"web3_clientVersion", "", "text", one()}, {"web3_sha3", "bytes", "hash", one(hexutil.Bytes(raw))}, {"txpool_status", "", "Pool", one()},
		{"debug_getRawHeader", "blockOrHash", "bytes", [][]any{{"0x2"}, {hash}}}, {"debug_getRawBlock", "blockOrHash", "bytes", [][]any{{"0x2"}, {hash}}},
		{"debug_getRawReceipts", "blockOrHash", "[bytes]", [][]any{{"0x2"}, {hash}}}, {"debug_getRawTransaction", "hash", "bytes", byHash[:2]},
	}
}

// unspecified are the methods that geth has too without a specification of their answers, or
// that other tests call.
var unspecified = regexp.MustCompile(`^(debug_trace.*|txpool_(content|contentFrom|inspect)|eth_(sendRawTransaction|sendRawTransactionSync))$`)

// checkSpecification: parameters and answers of all methods are those of
// ethereum/execution-apis, besides the documented fields that the node adds.
func (c *conformance) checkSpecification(t *testing.T) {
	checked := map[string]bool{}
	for _, s := range c.specification() {
		checked[s.method] = true
		kinds := strings.Fields(s.parameters)
		for _, args := range s.args {
			var given []any
			raw, err := json.Marshal(args)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(raw, &given))
			required := 0
			for i, kind := range kinds {
				kind, optional := strings.CutSuffix(kind, "?")
				if !optional {
					required = i + 1
				}
				if i < len(given) {
					require.NoError(t, satisfies(fmt.Sprint("parameter ", i), given[i], kind), s.method)
				}
			}
			for n := required; n <= len(args); n++ {
				var answer any
				require.NoError(t, c.ours.CallContext(t.Context(), &answer, s.method, args[:n]...), "%s%s", s.method, raw)
				require.NoError(t, satisfies("the answer", answer, s.result), "%s%s", s.method, raw)
			}
		}
	}
	_, shared := c.methods()
	for _, name := range shared {
		require.True(t, checked[name] || unspecified.MatchString(name) || subscribed[name] != "", "%s has no specification", name)
	}
}
