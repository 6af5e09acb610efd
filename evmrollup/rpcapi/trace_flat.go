package rpcapi

import (
	"errors"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/evmrollup/node"
)

// callTrace is the trace of a call, or of a contract that was created or destroyed, in
// OpenEthereum's format.
type callTrace struct {
	Action traceAction `json:"action"`
	Error  string      `json:"error,omitempty"`
	// Result is nil if the contract was destroyed, or if the call failed without a revert.
	Result       *traceResult `json:"result"`
	Subtraces    int          `json:"subtraces"`    // number of traces directly below
	TraceAddress []int        `json:"traceAddress"` // the position in each trace above
	Type         string       `json:"type"`         // call, create or suicide
}

// flatTrace is a callTrace together with the position of its transaction.
type flatTrace struct {
	callTrace
	BlockHash           common.Hash `json:"blockHash"`
	BlockNumber         uint64      `json:"blockNumber"`
	TransactionHash     common.Hash `json:"transactionHash"`
	TransactionPosition int         `json:"transactionPosition"`

	size int            // about that of the JSON, in bytes
	to   common.Address // the receiver, or the address of the contract to create
}

// traceAction describes what a trace is about, for example which contract was called.
// The type of the trace determines which fields are set.
type traceAction struct {
	From           *common.Address `json:"from,omitempty"`
	To             *common.Address `json:"to,omitempty"`
	CallType       string          `json:"callType,omitempty"`       // call, staticcall, …
	CreationMethod string          `json:"creationMethod,omitempty"` // create or create2
	Gas            *hexutil.Uint64 `json:"gas,omitempty"`
	Input          *hexutil.Bytes  `json:"input,omitempty"`
	Init           *hexutil.Bytes  `json:"init,omitempty"`
	Value          *hexutil.Big    `json:"value,omitempty"`
	Address        *common.Address `json:"address,omitempty"` // the destroyed contract
	RefundAddress  *common.Address `json:"refundAddress,omitempty"`
	Balance        *hexutil.Big    `json:"balance,omitempty"`
}

// traceResult is the outcome of a call or a creation.
type traceResult struct {
	GasUsed hexutil.Uint64  `json:"gasUsed"`
	Output  *hexutil.Bytes  `json:"output,omitempty"`
	Address *common.Address `json:"address,omitempty"`
	Code    *hexutil.Bytes  `json:"code,omitempty"`
}

// emptyTrace is the approximate JSON size of a trace without data, in bytes.
const emptyTrace = 600

// ends returns the sender and the receiver of a trace. The receiver is nil if the trace
// is of a contract that could not be created.
func (t *flatTrace) ends() (from common.Address, to *common.Address) {
	switch {
	case t.Type == "suicide":
		return *t.Action.Address, t.Action.RefundAddress
	case t.Type == "call":
		return *t.Action.From, t.Action.To
	case t.Result != nil:
		to = t.Result.Address
	}
	return *t.Action.From, to
}

// flatTracer collects the traces of a transaction. It replaces go-ethereum's
// flatCallTracer, which has two faults here: its result can become too large, and it
// counts the gas that a transaction needs before its first instruction, which
// OpenEthereum and the other nodes do not count.
type flatTracer struct {
	block       *node.Block
	index       int // of the transaction
	left        int // bytes that the traces may still have
	stop        func()
	precompiled vm.PrecompiledContracts
	traces      []*flatTrace
	open        []*flatTrace
}

// hook adds the hooks of this tracer to hooks.
func (f *flatTracer) hook(hooks *tracing.Hooks) { hooks.OnEnter, hooks.OnExit = f.enter, f.exit }

// take counts n bytes that are added to a trace. If the traces of the transaction become
// too large, it stops the execution and returns false.
func (f *flatTracer) take(t *flatTrace, n int) bool {
	if f.left -= n; f.left < 0 {
		f.stop()
		return false
	}
	t.size += n
	return true
}

func (f *flatTracer) enter(depth int, op byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
	t := &flatTrace{
		callTrace: callTrace{TraceAddress: []int{}}, BlockHash: f.block.Hash(), BlockNumber: f.block.NumberU64(),
		TransactionHash: f.block.Transactions()[f.index].Hash(), TransactionPosition: f.index, to: to,
	}
	if n := len(f.open); n > 0 {
		parent := f.open[n-1]
		t.TraceAddress = append(slices.Clip(parent.TraceAddress), parent.Subtraces)
		parent.Subtraces++
	}
	f.open = append(f.open, t)
	if !f.take(t, emptyTrace+4*depth+2*len(input)) {
		return
	}
	data, units, amount := hexutil.Bytes(slices.Clone(input)), hexutil.Uint64(gas), (*hexutil.Big)(new(big.Int))
	if value != nil {
		amount = (*hexutil.Big)(new(big.Int).Set(value))
	}
	switch code := vm.OpCode(op); code {
	case vm.SELFDESTRUCT:
		t.Type, t.Action = "suicide", traceAction{Address: &from, RefundAddress: &to, Balance: amount}
	case vm.CREATE, vm.CREATE2:
		t.Type, t.Action = "create", traceAction{From: &from, CreationMethod: callTypes[code], Gas: &units, Init: &data, Value: amount}
	default:
		t.Type, t.Action = "call", traceAction{From: &from, To: &to, CallType: callTypes[code], Gas: &units, Input: &data, Value: amount}
	}
	f.traces = append(f.traces, t)
}

// callTypes are the names that OpenEthereum gives to instructions.
var callTypes = map[vm.OpCode]string{
	vm.CALL: "call", vm.CALLCODE: "callcode", vm.DELEGATECALL: "delegatecall", vm.STATICCALL: "staticcall", vm.CREATE: "create", vm.CREATE2: "create2",
}

func (f *flatTracer) exit(_ int, output []byte, gasUsed uint64, err error, _ bool) {
	last := len(f.open) - 1
	t := f.open[last]
	f.open = f.open[:last]
	_, builtIn := f.precompiled[t.to]
	if !f.take(t, 2*len(output)) {
		return
	}
	if last > 0 && builtIn && (t.Action.CallType == "call" || t.Action.CallType == "staticcall") {
		f.open[last-1].Subtraces--
		f.traces = f.traces[:len(f.traces)-1]
		return
	}
	if err != nil {
		t.Error = traceError(err, builtIn)
	}
	if t.Type == "suicide" || err != nil && !errors.Is(err, vm.ErrExecutionReverted) {
		return
	}
	data := hexutil.Bytes(slices.Clone(output))
	t.Result = &traceResult{GasUsed: hexutil.Uint64(gasUsed)}
	if t.Type == "call" {
		t.Result.Output = &data
		return
	}
	t.Result.Code = &data
	if err == nil {
		t.Result.Address = &t.to
	}
}

// traceError returns OpenEthereum's text for an error, or go-ethereum's text if
// OpenEthereum has none. builtIn is true for an error of a precompiled contract.
func traceError(err error, builtIn bool) string {
	var (
		under   *vm.ErrStackUnderflow
		over    *vm.ErrStackOverflow
		invalid *vm.ErrInvalidOpCode
	)
	is := func(some ...error) bool {
		return slices.ContainsFunc(some, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case strings.HasSuffix(err.Error(), vm.ErrWriteProtection.Error()):
		// A write in a static call also counts as out of gas in go-ethereum, which notices it
		// while computing the gas of the instruction. So this case comes first.
		return vm.ErrWriteProtection.Error()
	case is(vm.ErrExecutionReverted):
		return "Reverted"
	case is(vm.ErrOutOfGas, vm.ErrCodeStoreOutOfGas, vm.ErrGasUintOverflow, vm.ErrMaxCodeSizeExceeded):
		return "Out of gas"
	case is(vm.ErrInvalidJump):
		return "Bad jump destination"
	case is(vm.ErrReturnDataOutOfBounds):
		return "Out of bounds"
	case errors.As(err, &invalid):
		return "Bad instruction"
	case errors.As(err, &under):
		return "Stack underflow"
	case errors.As(err, &over):
		return "Out of stack"
	case builtIn && !is(vm.ErrDepth, vm.ErrInsufficientBalance):
		return "Built-in failed"
	}
	return err.Error()
}
