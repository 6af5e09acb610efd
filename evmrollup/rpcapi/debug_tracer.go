package rpcapi

import (
	"encoding/json"
	"math/big"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/tracers"
	"github.com/ethereum/go-ethereum/params"
)

// boundedTracer is the name under which a bounded tracer is registered with
// go-ethereum. Clients cannot use this name. The configuration of such a tracer is a
// value of type bounds.
const boundedTracer = "jamqBoundedTracer"

func init() {
	tracers.DefaultDirectory.Register(boundedTracer, func(at *tracers.Context, config json.RawMessage, chain *params.ChainConfig) (*tracers.Tracer, error) {
		var b bounds
		if err := json.Unmarshal(config, &b); err != nil {
			return nil, err
		}
		return b.tracer(at, chain)
	}, false)
}

// bounds is the configuration of a bounded tracer. Name and Config select the inner
// tracer. Most is the maximum size, in bytes, of the calls, logs and hashed data in the
// result.
type bounds struct {
	Name   string
	Config json.RawMessage
	Most   int
}

// bounded makes one of go-ethereum's tracers safe for untrusted clients. It protects
// the process against three problems:
//
//   - Some tracers have no function Stop. When the time is over, go-ethereum calls
//     this nil function in another goroutine, which ends the process.
//   - Other tracers fail if they are stopped before the first call begins.
//   - All of them copy the input of every call, so that a transaction with a
//     million gas could make them use gigabytes of memory.
//
// After a bounded tracer has been stopped, it no longer calls the inner tracer, and its
// result is the reason why it was stopped.
type bounded struct {
	*tracers.Tracer
	most, left int // bytes
	reason     atomic.Pointer[error]
}

// tracer returns a new tracer that observes the bounds.
func (b *bounds) tracer(at *tracers.Context, chain *params.ChainConfig) (*tracers.Tracer, error) {
	inner, err := tracers.DefaultDirectory.New(b.Name, at, b.Config, chain)
	if err != nil {
		return nil, err
	}
	t := &bounded{Tracer: inner, most: b.Most, left: b.Most}
	hooks := *inner.Hooks
	t.hook(&hooks)
	return &tracers.Tracer{Hooks: &hooks, GetResult: t.result, Stop: t.stop}, nil
}

// stop stops the tracer for a reason, unless it has already stopped.
func (t *bounded) stop(reason error) { t.reason.CompareAndSwap(nil, &reason) }

// result returns the inner tracer's result, or why the tracer was stopped.
func (t *bounded) result() (json.RawMessage, error) {
	if reason := t.reason.Load(); reason != nil {
		return nil, *reason
	}
	return t.GetResult()
}

// runs counts bytes of the result, and reports whether the tracer may continue.
func (t *bounded) runs(bytes int) bool {
	if t.left -= bytes; t.left < 0 {
		t.stop(tooManyTraces(t.most))
	}
	return t.reason.Load() == nil
}

// hook wraps the hooks that go-ethereum calls while it executes instructions.
func (t *bounded) hook(h *tracing.Hooks) {
	// Replace each hook of the inner tracer by one that counts the size of the result, and
	// that does nothing once the tracer was stopped.
	inner := t.Hooks
	if inner.OnEnter != nil {
		h.OnEnter = func(depth int, op byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
			if t.runs(emptyTrace + 2*len(input)) {
				inner.OnEnter(depth, op, from, to, input, gas, value)
			}
		}
	}
	if inner.OnEnterV2 != nil {
		h.OnEnterV2 = func(depth int, op byte, from, to common.Address, input []byte, gas tracing.Gas, value *big.Int) {
			if t.runs(emptyTrace + 2*len(input)) {
				inner.OnEnterV2(depth, op, from, to, input, gas, value)
			}
		}
	}
	if inner.OnExit != nil {
		h.OnExit = func(depth int, output []byte, gasUsed uint64, err error, reverted bool) {
			if t.runs(2 * len(output)) {
				inner.OnExit(depth, output, gasUsed, err, reverted)
			}
		}
	}
	if inner.OnExitV2 != nil {
		h.OnExitV2 = func(depth int, output []byte, left tracing.Gas, err error, reverted bool) {
			if t.runs(2 * len(output)) {
				inner.OnExitV2(depth, output, left, err, reverted)
			}
		}
	}
	if inner.OnOpcode != nil {
		h.OnOpcode = func(pc uint64, op byte, gas, cost uint64, scope tracing.OpContext, data []byte, depth int, err error) {
			if t.runs(hashed(op, scope)) {
				inner.OnOpcode(pc, op, gas, cost, scope, data, depth, err)
			}
		}
	}
	if inner.OnOpcodeV2 != nil {
		h.OnOpcodeV2 = func(pc uint64, op byte, gas, cost tracing.Gas, scope tracing.OpContext, data []byte, depth int, err error) {
			if t.runs(hashed(op, scope)) {
				inner.OnOpcodeV2(pc, op, gas, cost, scope, data, depth, err)
			}
		}
	}
	t.hookEnds(h)
}

// maxPadding is go-ethereum's limit on the bytes beyond the end of the memory that a
// tracer copies for an instruction that hashes data. A tracer copies these bytes even
// if the instruction does not have enough gas.
const maxPadding = 1 << 20

// hashed returns the size of the data that an instruction hashes, in hex digits.
func hashed(op byte, scope tracing.OpContext) int {
	stack := scope.StackData()
	// Some tracers keep the data of KECCAK256, so it counts as a part of the result.
	if vm.OpCode(op) != vm.KECCAK256 || len(stack) < 2 {
		return 0
	}
	size := &stack[len(stack)-2]
	// Tracers do not copy data so far beyond the memory.
	if most := uint64(len(scope.MemoryData()) + maxPadding); size.GtUint64(most) {
		return 0
	}
	return 2 * int(size.Uint64())
}

// hookEnds wraps the hooks for logs and for the end of a transaction. Like those that hook
// wraps, they count the size of the result, and do nothing after the tracer was stopped.
func (t *bounded) hookEnds(h *tracing.Hooks) {
	inner := t.Hooks
	if inner.OnLog != nil {
		h.OnLog = func(log *types.Log) {
			if t.runs(emptyTrace + 2*len(log.Data)) {
				inner.OnLog(log)
			}
		}
	}
	if inner.OnTxEnd != nil {
		h.OnTxEnd = func(receipt *types.Receipt, err error) {
			if t.runs(0) {
				inner.OnTxEnd(receipt, err)
			}
		}
	}
}
