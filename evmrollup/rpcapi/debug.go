package rpcapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/tracers"
	"github.com/ethereum/go-ethereum/eth/tracers/logger"
	_ "github.com/ethereum/go-ethereum/eth/tracers/native" // registers the tracers written in Go
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// debugMethods implements the namespace debug with go-ethereum's tracers. It has
// methods that trace a transaction, a block or a call, and methods that return raw
// data, but none that read or write files. If the client names no tracer, the struct
// logger is used.
//
// Tracers must be written in Go. A tracer in JavaScript is refused as not found,
// because go-ethereum's JavaScript interpreter would add 18 packages and twenty seconds
// of processor time to a cold build.
type debugMethods struct {
	*api
	calls *tracers.API
}

func newDebug(a *api) *debugMethods { return &debugMethods{a, tracers.NewAPI(traceBackend{api: a})} }

// trace makes a trace within the client's rate limit and the node's limits.
func (d *debugMethods) trace(ctx context.Context, config *tracers.TraceConfig, run func(context.Context, *tracers.TraceConfig) (any, error)) (any, error) {
	if err := d.limits.call(ctx, "debug", 0); err != nil {
		return nil, err
	}
	if config == nil {
		config = &tracers.TraceConfig{}
	}
	if config.Tracer != nil {
		if err := checkTracer(*config.Tracer, config.TracerConfig); err != nil {
			return nil, err
		}
	}
	if config.Config == nil {
		config.Config = &logger.Config{}
	}
	// Limit the size of the trace.
	if config.Limit <= 0 || config.Limit > d.cfg.BatchBytes {
		config.Limit = d.cfg.BatchBytes
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.CallTime)
	defer cancel()
	return run(ctx, config)
}

// muxTracer is the name of go-ethereum's tracer that runs several tracers at once.
const muxTracer = "muxTracer"

// checkTracer refuses a tracer that is not written in Go.
func checkTracer(name string, config json.RawMessage) error {
	names := []string{name}
	if name == muxTracer && len(config) > 0 {
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(config, &parts); err != nil {
			return invalidParams("tracerConfig of %s: %v", muxTracer, err)
		}
		names = slices.Sorted(maps.Keys(parts))
		if slices.Contains(names, muxTracer) {
			return invalidParams("%s in %s: list the tracers themselves", muxTracer, muxTracer)
		}
	}
	for _, name := range names {
		// go-ethereum takes an unknown name for JavaScript. It would call its
		// JavaScript interpreter, a nil function in this program, and the panic in
		// another goroutine would end the process.
		if name == boundedTracer || tracers.DefaultDirectory.IsJS(name) {
			return invalidParams("tracer %.40q not found: want callTracer, prestateTracer or another tracer written in Go, or none for the struct logger; "+
				"this node has no interpreter for tracers in JavaScript", name)
		}
	}
	return nil
}

// The texts of these errors are geth's.
var (
	errTransactionNotFound = errors.New("transaction not found")
	errGenesis             = errors.New("genesis is not traceable")
	errTraceTime           = errors.New("execution timeout")
)

// TraceTransaction implements debug_traceTransaction. It can trace a transaction as
// long as the node keeps the state before the transaction's block.
func (d *debugMethods) TraceTransaction(ctx context.Context, hash common.Hash, config *tracers.TraceConfig) (_ any, err error) {
	defer ledger.Recover(&err)
	return d.trace(ctx, config, func(ctx context.Context, config *tracers.TraceConfig) (any, error) {
		b, index, ok := d.node.Transaction(hash)
		if !ok {
			return nil, errTransactionNotFound
		}
		traces, err := d.traceAll(ctx, b, index, index+1, config)
		if err != nil {
			return nil, err
		}
		return traces[0].Result, nil
	})
}

// TraceBlockByNumber implements debug_traceBlockByNumber.
func (d *debugMethods) TraceBlockByNumber(ctx context.Context, number rpc.BlockNumber, config *tracers.TraceConfig) (_ any, err error) {
	defer ledger.Recover(&err)
	return d.trace(ctx, config, func(ctx context.Context, config *tracers.TraceConfig) (any, error) {
		b := d.node.Resolve(number)
		if b == nil {
			return nil, fmt.Errorf("block #%d not found", number)
		}
		return d.traceAll(ctx, b, 0, len(b.Transactions()), config)
	})
}

// TraceBlockByHash implements debug_traceBlockByHash.
func (d *debugMethods) TraceBlockByHash(ctx context.Context, hash common.Hash, config *tracers.TraceConfig) (_ any, err error) {
	defer ledger.Recover(&err)
	return d.trace(ctx, config, func(ctx context.Context, config *tracers.TraceConfig) (any, error) {
		b := d.node.BlockByHash(hash)
		if b == nil {
			return nil, fmt.Errorf("block %s not found", hash)
		}
		return d.traceAll(ctx, b, 0, len(b.Transactions()), config)
	})
}

// txTrace is the trace of one transaction in the answer for a block.
type txTrace struct {
	TxHash common.Hash     `json:"txHash"`
	Result json.RawMessage `json:"result"`
}

// traceAll traces the transactions of a block from index first to last-1.
func (d *debugMethods) traceAll(ctx context.Context, b *node.Block, first, last int, config *tracers.TraceConfig) ([]txTrace, error) {
	if _, err := whole(b); err != nil {
		return nil, err
	}
	if b.NumberU64() == 0 {
		return nil, errGenesis
	}
	// go-ethereum's API supports neither the edits of a developer nor impersonated
	// senders, so execute the transactions here.
	sdb, block, err := d.node.Prestate(b, first)
	if err != nil {
		return nil, err
	}
	traces, size := make([]txTrace, 0, last-first), 0
	for i := first; i < last; i++ {
		result, err := d.traceOne(ctx, b, i, sdb, block, config)
		if err != nil {
			return nil, err
		}
		if size += len(result); i > first && size > d.cfg.BatchBytes {
			return nil, tooManyTraces(d.cfg.BatchBytes)
		}
		traces = append(traces, txTrace{b.Transactions()[i].Hash(), result})
	}
	return traces, nil
}

// traceOne traces one transaction. It changes sdb, which must be the state before the
// transaction, into the state after it.
func (d *debugMethods) traceOne(ctx context.Context, b *node.Block, index int, sdb *state.StateDB, block vm.BlockContext, config *tracers.TraceConfig) (json.RawMessage, error) {
	tx, chain := b.Transactions()[index], d.node.ChainConfig()
	msg, err := core.TransactionToMessage(tx, d.signer, b.BaseFee())
	if err != nil {
		return nil, err
	}
	msg.SkipEOACheck() // the block had it
	at := &tracers.Context{BlockHash: b.Hash(), BlockNumber: b.Number(), TxIndex: index, TxHash: tx.Hash()}
	tracer, err := d.newTracer(config, at, chain)
	if err != nil {
		return nil, err
	}
	if config.Timeout != nil {
		timeout, err := time.ParseDuration(*config.Timeout)
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if ctx.Err() != nil {
		return nil, errTraceTime
	}
	machine := vm.NewEVM(block, state.NewHookedState(sdb, tracer.Hooks), chain, vm.Config{Tracer: tracer.Hooks})
	machine.SetPrecompiles(d.node.Precompiles(block.BlockNumber, block.Time))
	defer machine.Release()
	defer context.AfterFunc(ctx, func() {
		tracer.Stop(errTraceTime)
		machine.Cancel()
	})()
	sdb.SetTxContext(tx.Hash(), index, uint32(index+1))
	_, _, err = core.ApplyTransactionWithEVM(ctx, msg, core.NewGasPool(msg.GasLimit), sdb, block.BlockNumber, b.Hash(), block.Time, tx, machine)
	if err = errors.Join(err, sdb.Error()); err != nil {
		return nil, fmt.Errorf("tracing failed: %w", err)
	}
	return tracer.GetResult()
}

// newTracer returns the tracer that the configuration names, by default the struct logger.
func (d *debugMethods) newTracer(config *tracers.TraceConfig, at *tracers.Context, chain *params.ChainConfig) (*tracers.Tracer, error) {
	if config.Tracer != nil {
		return d.bounds(config).tracer(at, chain)
	}
	l := logger.NewStructLogger(config.Config)
	return &tracers.Tracer{Hooks: l.Hooks(), GetResult: l.GetResult, Stop: l.Stop}, nil
}

func (d *debugMethods) bounds(config *tracers.TraceConfig) *bounds {
	return &bounds{*config.Tracer, config.TracerConfig, d.cfg.BatchBytes}
}

// TraceCall implements debug_traceCall. It traces a call without changing the state.
// The arguments are those of eth_call, and the configuration may contain overrides.
func (d *debugMethods) TraceCall(ctx context.Context, args traceArgs, at *rpc.BlockNumberOrHash, config *tracers.TraceCallConfig) (_ any, err error) {
	defer ledger.Recover(&err)
	if config == nil {
		config = &tracers.TraceCallConfig{}
	}
	return d.trace(ctx, &config.TraceConfig, func(ctx context.Context, bounded *tracers.TraceConfig) (any, error) {
		if bounded.Tracer != nil {
			raw, err := json.Marshal(d.bounds(bounded))
			if err != nil {
				return nil, err
			}
			name := boundedTracer
			bounded.Tracer, bounded.TracerConfig = &name, raw
		}
		return traceCall(ctx, args.raw, at, config, d.calls.TraceCall)
	})
}

// traceArgs contains the arguments of debug_traceCall. They are decoded twice: first
// when the request arrives, so that the client gets a clear error if they are
// malformed, and later in traceCall, into go-ethereum's type.
type traceArgs struct{ raw json.RawMessage }

// UnmarshalJSON implements json.Unmarshaler.
func (a *traceArgs) UnmarshalJSON(raw []byte) error {
	a.raw = slices.Clone(raw)
	return json.Unmarshal(raw, new(callArgs))
}

// traceCall decodes the arguments of debug_traceCall and passes them to call.
func traceCall[Args any](
	ctx context.Context, raw json.RawMessage, at *rpc.BlockNumberOrHash, config *tracers.TraceCallConfig,
	call func(context.Context, Args, *rpc.BlockNumberOrHash, *tracers.TraceCallConfig) (any, error),
) (any, error) {
	// The type is a parameter, because other modules cannot name go-ethereum's internal
	// type.
	var args Args
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, invalidParams("invalid argument 0: %v", err)
	}
	return call(ctx, args, at, config)
}

// traceBackend gives go-ethereum's TraceCall access to the node. It implements only
// the methods that TraceCall needs; the other methods of the embedded interface
// must not be called.
type traceBackend struct {
	tracers.Backend
	*api
}

func (b traceBackend) HeaderByHash(_ context.Context, hash common.Hash) (_ *types.Header, err error) {
	defer ledger.Recover(&err)
	if block := b.node.BlockByHash(hash); block != nil {
		return block.Header(), nil
	}
	return nil, errHeaderForHashNotFound
}

func (b traceBackend) HeaderByNumber(_ context.Context, number rpc.BlockNumber) (_ *types.Header, err error) {
	defer ledger.Recover(&err)
	if block := b.node.Resolve(number); block != nil {
		return block.Header(), nil
	}
	return nil, errHeaderNotFound
}

func (b traceBackend) CurrentHeader() *types.Header {
	return b.node.Resolve(rpc.LatestBlockNumber).Header()
}

// BlockByHash returns the block with the given hash, or nil if the node does not know
// the block. The tracers turn nil into their error for a block that was not found.
func (b traceBackend) BlockByHash(_ context.Context, hash common.Hash) (_ *types.Block, err error) {
	defer ledger.Recover(&err)
	block, err := whole(b.node.BlockByHash(hash))
	if block == nil {
		return nil, err
	}
	return block.Block, nil
}

// BlockByNumber returns the block with the given number, or nil if there is none.
func (b traceBackend) BlockByNumber(_ context.Context, number rpc.BlockNumber) (_ *types.Block, err error) {
	defer ledger.Recover(&err)
	block, err := whole(b.node.Resolve(number))
	if block == nil {
		return nil, err
	}
	return block.Block, nil
}

func (b traceBackend) RPCGasCap() uint64                { return b.cfg.GasCap }
func (b traceBackend) ChainConfig() *params.ChainConfig { return b.node.ChainConfig() }

// Engine returns a consensus engine that can only name the author of a block.
func (b traceBackend) Engine() consensus.Engine { return authorEngine{} }

type authorEngine struct{ consensus.Engine }

func (authorEngine) Author(h *types.Header) (common.Address, error) { return h.Coinbase, nil }

// errBlockGone is returned if a block was undone during a call.
var errBlockGone = errors.New("the block no longer exists")

func (b traceBackend) StateAtBlock(_ context.Context, block *types.Block, _ *state.StateDB, _, _ bool) (_ *state.StateDB, _ tracers.StateReleaseFunc, err error) {
	defer ledger.Recover(&err)
	executed, err := b.executed(block)
	if err != nil {
		return nil, nil, err
	}
	sdb, err := b.node.Poststate(executed)
	return sdb, func() {}, err
}

func (b traceBackend) StateAtTransaction(
	_ context.Context, block *types.Block, index int,
) (*types.Transaction, vm.BlockContext, *state.StateDB, tracers.StateReleaseFunc, error) {
	switch n := len(block.Transactions()); {
	case block.NumberU64() == 0:
		return nil, vm.BlockContext{}, nil, nil, errors.New("no transaction in genesis")
	case index < 0 || index >= n && index+n > 0: // an empty block has a state at index 0
		return nil, vm.BlockContext{}, nil, nil, fmt.Errorf("transaction index %d out of range for block %s", index, block.Hash())
	}
	executed, err := b.executed(block)
	if err != nil {
		return nil, vm.BlockContext{}, nil, nil, err
	}
	sdb, context, err := b.node.Prestate(executed, index)
	if err != nil {
		return nil, vm.BlockContext{}, nil, nil, err
	}
	var tx *types.Transaction
	if index < len(block.Transactions()) {
		tx = block.Transactions()[index]
	}
	return tx, context, sdb, func() {}, nil
}

func (b traceBackend) executed(block *types.Block) (*node.Block, error) {
	if executed := b.node.BlockByHash(block.Hash()); executed != nil {
		return executed, nil
	}
	return nil, errBlockGone
}
