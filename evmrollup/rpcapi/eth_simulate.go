package rpcapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// simulateArgs is the parameter of eth_simulateV1.
type simulateArgs struct {
	// BlockStateCalls are the blocks, in order.
	BlockStateCalls []simulatedCalls `json:"blockStateCalls"`
	// TraceTransfers adds a log for each transfer of ether.
	TraceTransfers bool `json:"traceTransfers"`
	// Validation makes each call obey the rules for a transaction, so that a wrong nonce or
	// a low fee is an error. If it is false, calls need no valid nonce and pay no fees.
	Validation bool `json:"validation"`
	// ReturnFullTransactions returns transactions instead of their hashes.
	ReturnFullTransactions bool `json:"returnFullTransactions"`
}

// simulatedCalls is one block of eth_simulateV1. Its state overrides also apply to all
// later blocks, and its block overrides only to this block.
type simulatedCalls struct {
	BlockOverrides blockOverrides // fields of the block
	StateOverrides stateOverride  // applied before the calls
	Calls          []callArgs     // in order
}

// UnmarshalJSON implements json.Unmarshaler. It refuses unknown overrides.
func (b *simulatedCalls) UnmarshalJSON(raw []byte) error {
	var parts struct {
		BlockOverrides json.RawMessage                    `json:"blockOverrides"`
		StateOverrides map[common.Address]json.RawMessage `json:"stateOverrides"`
		Calls          []callArgs                         `json:"calls"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	*b = simulatedCalls{StateOverrides: stateOverride{}, Calls: parts.Calls}
	if err := decodeKnown(parts.BlockOverrides, &b.BlockOverrides, "block override"); err != nil {
		return err
	}
	for addr, raw := range parts.StateOverrides {
		var account accountOverride
		if err := decodeKnown(raw, &account, "state override for "+addr.Hex()); err != nil {
			return err
		}
		b.StateOverrides[addr] = account
	}
	return nil
}

// decodeKnown decodes a JSON object or null, and refuses unknown and repeated keys.
func decodeKnown[T any](raw json.RawMessage, into *T, what string) error {
	if raw == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return json.Unmarshal(raw, into) // another kind of value
	}
	keys := make(map[string]string) // by field
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field := ""
		for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
			// As in encoding/json, case does not matter.
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(name, key) {
				field = name
			}
		}
		switch other, twice := keys[field]; {
		case field == "":
			return fmt.Errorf("unknown field %q in %s", key, what)
		case twice:
			return fmt.Errorf("keys %q and %q in %s name the same field", other, key, what)
		}
		keys[field] = key
	}
	return json.Unmarshal(raw, into)
}

// The limits of eth_simulateV1 are those of geth.
const (
	// maxSimulatedBlocks is the maximum number of blocks, including those that
	// fill gaps.
	maxSimulatedBlocks = 256
	// maxBlockCalls is the maximum number of calls in one block, and maxSimulatedCalls is
	// the maximum number in all blocks together.
	maxBlockCalls, maxSimulatedCalls = 5000, 10_000
	// blockInterval is the default time between two simulated blocks, in seconds.
	blockInterval = 12
)

// SimulateV1 implements eth_simulateV1. It executes calls in simulated blocks that
// follow an existing block, and returns these blocks with the results. Each call sees
// the changes of the calls before it. The changes are discarded at the end. All calls
// together may use the gas and the time of one eth_call, have Config.MaxLogs logs, and
// return Config.BatchBytes bytes.
func (a *ethCalls) SimulateV1(ctx context.Context, args simulateArgs, at *rpc.BlockNumberOrHash) (_ []object, err error) {
	defer ledger.Recover(&err)
	if err := args.checkSize(); err != nil {
		return nil, err
	}
	if err := a.limits.call(ctx, "eth_simulateV1", 0); err != nil {
		return nil, err
	}
	base, err := a.resolve(latestIfNil(at))
	if err != nil {
		return nil, err
	}
	s := &simulation{api: a.api, args: &args, base: base.Header(), gas: a.cfg.GasCap, bytes: a.cfg.BatchBytes, logs: a.cfg.MaxLogs}
	if s.state, err = a.node.Poststate(base); err != nil {
		return nil, err
	}
	var end context.CancelFunc
	s.ctx, end = a.withTimeout(ctx)
	defer end()
	return s.run()
}

// checkSize returns an error if the request has no block, or too many blocks or calls.
func (s *simulateArgs) checkSize() error {
	switch n := len(s.BlockStateCalls); {
	case n == 0:
		return invalidParams("empty input")
	case n > maxSimulatedBlocks:
		return errTooManyBlocks
	}
	all := 0
	for _, b := range s.BlockStateCalls {
		if n := len(b.Calls); n > maxBlockCalls {
			return codedError{fmt.Errorf("too many calls in block: %d > %d", n, maxBlockCalls), codeTooMany}
		}
		if all += len(b.Calls); all > maxSimulatedCalls {
			return codedError{fmt.Errorf("too many calls: %d > %d", all, maxSimulatedCalls), codeTooMany}
		}
	}
	return nil
}

// sequence returns the blocks of a simulation with ascending numbers and times. It
// fills gaps between the numbers with empty blocks.
func (s *simulateArgs) sequence(base *types.Header) ([]simulatedCalls, error) {
	var all []simulatedCalls
	number, time := base.Number, base.Time
	add := func(b simulatedCalls) {
		number = new(big.Int).Add(number, common.Big1)
		b.BlockOverrides.Number = (*hexutil.Big)(number)
		if b.BlockOverrides.Time == nil {
			next := hexutil.Uint64(time + blockInterval)
			b.BlockOverrides.Time = &next
		}
		time = uint64(*b.BlockOverrides.Time)
		all = append(all, b)
	}
	for _, b := range s.BlockStateCalls {
		if to := (*big.Int)(b.BlockOverrides.Number); to != nil {
			if to.Cmp(number) <= 0 {
				return nil, codedError{fmt.Errorf("block numbers must be in order: %d <= %d", to, number), codeBlockNumber}
			}
			if new(big.Int).Sub(to, base.Number).Cmp(big.NewInt(maxSimulatedBlocks)) > 0 {
				return nil, errTooManyBlocks
			}
			for new(big.Int).Sub(to, number).Cmp(common.Big1) > 0 {
				add(simulatedCalls{})
			}
		}
		if len(all) == maxSimulatedBlocks {
			return nil, errTooManyBlocks
		}
		if at := b.BlockOverrides.Time; at != nil && uint64(*at) <= time {
			return nil, codedError{fmt.Errorf("block timestamps must be in order: %d <= %d", *at, time), codeBlockTime}
		}
		add(b)
	}
	return all, nil
}

// header returns the header of a simulated block before its execution.
func (o *blockOverrides) header(before *types.Header) (*types.Header, error) {
	if o.Difficulty != nil {
		return nil, invalidParams("block %d: difficulty override is not allowed after the merge", o.Number.ToInt())
	}
	none := uint64(0)
	// Without an override, the gas limit and the fee recipient are those of the
	// previous block.
	h := &types.Header{
		Number: o.Number.ToInt(), Time: uint64(*o.Time), GasLimit: before.GasLimit, Coinbase: before.Coinbase, BaseFee: (*big.Int)(o.BaseFeePerGas),
		Difficulty: new(big.Int), ExcessBlobGas: &none, BlobGasUsed: &none, ParentBeaconRoot: o.BeaconRoot, RequestsHash: &types.EmptyRequestsHash,
	}
	if o.GasLimit != nil {
		h.GasLimit = uint64(*o.GasLimit)
	}
	if o.FeeRecipient != nil {
		h.Coinbase = *o.FeeRecipient
	}
	if o.PrevRandao != nil {
		h.MixDigest = *o.PrevRandao
	}
	if h.ParentBeaconRoot == nil {
		h.ParentBeaconRoot = new(common.Hash)
	}
	return h, nil
}
