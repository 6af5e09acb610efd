package rpcapi

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/history"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/evmrollup/node"
)

// The texts are geth's, because clients search for them.
var (
	errHeaderNotFound        = errors.New("header not found")
	errHeaderForHashNotFound = errors.New("header for hash not found")
	errFilterNotFound        = errors.New("filter not found")
	errUnknownBlock          = errors.New("unknown block")
)

// whole returns a block that a method needs with its body, nil for nil. The error is geth's
// for a block of which only the header is left, with the code 4444.
func whole(b *node.Block) (*node.Block, error) {
	if b != nil && b.Pruned {
		return nil, &history.PrunedHistoryError{}
	}
	return b, nil
}

// codeInvalidParams is JSON-RPC's code for a parameter that is well-formed but
// not allowed.
const codeInvalidParams = -32602

// codeTooMany is geth's code for a request whose answer would be too long.
const codeTooMany = -38026

// The codes of eth_simulateV1 for blocks and calls that cannot be.
const (
	codeBlockGas    = -38015
	codeBlockNumber = -38020
	codeBlockTime   = -38021
	codeExecution   = -32015 // of a call that failed without a revert
	codeInternal    = -32603
)

var errTooManyBlocks = codedError{errors.New("too many blocks"), codeTooMany}

// simulateError adds the code of eth_simulateV1 to an error of a call that cannot run.
func simulateError(err error) error {
	for _, known := range []struct {
		err  error
		code int
	}{
		{core.ErrNonceTooLow, -38010}, {core.ErrNonceTooHigh, -38011}, {core.ErrFeeCapTooLow, -38012}, {core.ErrIntrinsicGas, -38013},
		{core.ErrInsufficientFunds, -38014}, {core.ErrInsufficientFundsForTransfer, -38014}, {vm.ErrMaxInitCodeSizeExceeded, -38025},
		{core.ErrFeeCapVeryHigh, codeInvalidParams}, {core.ErrTipVeryHigh, codeInvalidParams}, {core.ErrTipAboveFeeCap, codeInvalidParams},
	} {
		if errors.Is(err, known.err) {
			return codedError{err, known.code}
		}
	}
	return codedError{err, codeInternal}
}

// paramsError is an error with the code for invalid parameters.
type paramsError struct{ error }

// ErrorCode implements rpc.Error.
func (paramsError) ErrorCode() int { return codeInvalidParams }

func invalidParams(format string, args ...any) error { return paramsError{fmt.Errorf(format, args...)} }

// revertError reports that a call reverted. It holds the data that the contract
// returned.
type revertError struct {
	error
	data []byte
}

// codeReverted is geth's error code for a reverted call.
const codeReverted = 3

// ErrorCode implements rpc.Error.
func (revertError) ErrorCode() int { return codeReverted }

// ErrorData returns the contract's return data in hex.
func (e revertError) ErrorData() any { return hexutil.Encode(e.data) }

// Error codes of this package (EIP-1474).
const (
	// CodeNotFinal is the code of the methods with proofs for a transaction or a
	// block that is known but not final yet. The client should retry later.
	CodeNotFinal = -32002
	// CodeNoProofs is the code of the methods with proofs, and of jam_getTrust,
	// if the JAM chain of the node does not offer the data that proofs need.
	CodeNoProofs = -32004
	// CodeUnsupported is the code for a part of a method that the node does not
	// have. The error text names the alternatives.
	CodeUnsupported = -32004
	// CodeLimited is the code for a source that exceeds its limits. The error
	// text includes the time to wait. Over HTTP the status may be 429. It is also
	// the code for a transaction that the node cannot take now, because its log
	// does not answer.
	CodeLimited = -32005
)

// codedError is an error with a JSON-RPC error code.
type codedError struct {
	error
	code int
}

// ErrorCode implements rpc.Error.
func (e codedError) ErrorCode() int { return e.code }

// CodeTimeout is the code of eth_sendRawTransactionSync for a transaction that
// was sent but has no receipt in time (EIP-7966).
const CodeTimeout = 4

// timeoutError reports that a transaction was sent but has no receipt in time.
type timeoutError struct{ hash common.Hash }

// Error implements error.
func (e timeoutError) Error() string {
	return fmt.Sprintf("the transaction was added to the pool but wasn't processed in time: %s", e.hash)
}

// ErrorCode implements rpc.Error.
func (timeoutError) ErrorCode() int { return CodeTimeout }

// ErrorData returns the transaction's hash.
func (e timeoutError) ErrorData() any { return e.hash }

// proofError adds the JSON-RPC code to an error of the node.
func proofError(err error) error {
	switch {
	case errors.Is(err, node.ErrNotFinal):
		return codedError{err, CodeNotFinal}
	case errors.Is(err, node.ErrNoProofs):
		return codedError{err, CodeNoProofs}
	}
	return err
}

// reverted returns the error of a reverted call with the given return data, in developer mode
// with more text.
func (a *api) reverted(data []byte) error {
	if a.cfg.Dev {
		return devReverted(data)
	}
	return reverted(data)
}

// maxShown is the maximum number of bytes of arguments that the text of an error shows.
const maxShown = 256

// devReverted is reverted for people who read the text of the error in the output of a test: if
// the contract defines the error, the text includes the selector and the arguments.
func devReverted(data []byte) error {
	if _, err := abi.UnpackRevert(data); err == nil || len(data) < 4 {
		return reverted(data)
	}
	text, args := fmt.Sprintf("custom error %#x", data[:4]), data[4:]
	if len(args) > 0 {
		text += fmt.Sprintf(": %x", args[:min(len(args), maxShown)])
	}
	if len(args) > maxShown {
		text += "…"
	}
	return revertError{fmt.Errorf("%w: %s", vm.ErrExecutionReverted, text), data}
}

// reverted returns the error of a reverted call with the given return data. Its
// text includes the reason if the data contains one.
func reverted(data []byte) error {
	err := vm.ErrExecutionReverted
	if reason, unpackErr := abi.UnpackRevert(data); unpackErr == nil {
		err = fmt.Errorf("%w: %v", err, reason)
	}
	return revertError{err, data}
}
