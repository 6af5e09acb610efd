package rpcapi

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
)

// explained reports whether the page explains why the answers differ.
func explained(method string, args []any) bool {
	switch method {
	case "eth_sendRawTransactionSync":
		if len(args) < 2 {
			return false
		}
		_, text := args[1].(string) // a time-out, as in drafts of the EIP
		return text
	case "debug_getRawBlock", "debug_getRawHeader", "debug_getRawReceipts":
		return len(args) == 1 && args[0] == "pending"
	}
	return false
}

// Both nodes want the same parameters of each method: their number, which of
// them may be missing or null, and their types.
func TestParameters(t *testing.T) {
	b := startBoth(t)
	_, shared := b.methods()
	none := []any{nil, nil, nil, nil, nil, nil, nil, nil}
	for _, name := range shared {
		for _, args := range [][]any{
			{}, none[:1], none[:2], none[:3], none, {"0x1"}, {1}, {1.5}, {true}, {map[string]any{}}, {[]any{}}, {"latest"}, {"pending"}, {""}, {"0x"}, {"0x01"}, {"1"},
			{common.Address{7}}, {common.Hash{7}}, {common.Address{7}, 1}, {common.Address{7}, "0x1"}, {common.Address{7}, map[string]any{}},
			{common.Hash{7}, "0x0"}, {common.Hash{7}, 0}, {common.Hash{7}, true}, {"0x1", "0x0"}, {"0x1", 0}, {"0x1", true}, {"0x1", "0x1", 1},
			{"0x1", []any{}}, {1, "0x1", []any{}}, {map[string]any{}, 1}, {map[string]any{}, "0x1"}, {map[string]any{}, "0x1", 1}, {map[string]any{}, "0x1", map[string]any{}, 1},
			{hexutil.Bytes(make([]byte, 40))}, {map[string]any{"to": "0x1"}}, {map[string]any{"fromBlock": 1}}, {map[string]any{"unknown": 1}}, {map[string]any{"from": 1}},
		} {
			if explained(name, args) {
				continue
			}
			x := try{method: name, args: constant(args)}
			_, _, err, want := x.ask(t, b)
			require.NoError(t, sameError(err, want), "%s%v", name, args)
		}
	}
}
