package rpcapi

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
)

// For any message and any overrides, the call ends, the node keeps running, and the
// state of the block does not change.
func FuzzCall(f *testing.F) {
	f.Add(`{"data":"0x5b5f56","gas":"0x5208"}`, `{}`, `{}`)
	f.Add(`{"to":"0x0000000000000000000000000000000000000004","value":"0x1","maxFeePerGas":"0x1","input":"0x01"}`, `null`, `{}`)
	const at = `"0x00000000000000000000000000000000000000aa"`
	f.Add(`{"accessList":[{"address":`+at+`,"storageKeys":[]}]}`, `{`+at+`:{"nonce":"0x1"}}`, `{"number":"0x0","time":"0x0"}`)
	f.Add(`{"to":`+at+`}`, `{`+at+`:{"code":"0x5f545f5260205ff3","balance":"0xff","stateDiff":{}}}`, `{"baseFeePerGas":"0x1","gasLimit":"0x1"}`)
	n, err := node.New(node.DefaultConfig(jamq.Tiny(), time.Second, 1))
	if err != nil {
		f.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.GasCap, cfg.CallTime = 100_000, time.Second
	a := &api{node: n, cfg: &cfg}
	calls := &ethCalls{a, newFees(a)}
	earliest := rpc.BlockNumberOrHashWithNumber(rpc.EarliestBlockNumber)
	f.Fuzz(func(t *testing.T, message, overrides, block string) {
		var args callArgs
		var o *stateOverride
		var b *blockOverrides
		if json.Unmarshal([]byte(message), &args) != nil || json.Unmarshal([]byte(overrides), &o) != nil || json.Unmarshal([]byte(block), &b) != nil {
			return
		}
		ctx := context.Background()
		_, _ = calls.Call(ctx, args, &earliest, o, b)
		_, _ = calls.EstimateGas(ctx, args, &earliest, o, b)
		_, _ = calls.CreateAccessList(ctx, args, &earliest, o)
		_, _ = calls.FillTransaction(ctx, args)
		var simulated simulateArgs
		twice := fmt.Sprintf(`{"blockStateCalls":[{"calls":[%s,%s],"stateOverrides":%s,"blockOverrides":%s},{}],"traceTransfers":true}`, message, message, overrides, block)
		if json.Unmarshal([]byte(twice), &simulated) == nil {
			_, _ = calls.SimulateV1(ctx, simulated, &earliest)
		}
		view, err := n.StateAt(n.Resolve(rpc.EarliestBlockNumber))
		if err != nil {
			t.Fatal(err)
		}
		if root, err := view.Root(); err != nil || root != n.CanonicalRoot() {
			t.Fatalf("the state is another one: %s, %v", root, err)
		}
	})
}
