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

// The texts of these errors are geth's, because clients compare them.
var (
	errHeaderNotFound        = errors.New("header not found")
	errHeaderForHashNotFound = errors.New("header for hash not found")
	errFilterNotFound        = errors.New("filter not found")
	errUnknownBlock          = errors.New("unknown block")
)

// whole checks that the node still has the body of a block.
func whole(b *node.Block) (*node.Block, error) {
	if b != nil && b.Pruned {
		// This is geth's error for pruned history, with the code 4444.
		return nil, &history.PrunedHistoryError{}
	}
	return b, nil
}

// codeInvalidParams is JSON-RPC's code for a parameter that is well-formed but
// not allowed.
const codeInvalidParams = -32602

// codeTooMany is geth's code for a request whose answer would be too long.
const codeTooMany = -38026

// The error codes of eth_simulateV1 for blocks and calls that cannot be simulated.
const (
	codeBlockGas    = -38015
	codeBlockNumber = -38020
	codeBlockTime   = -38021
	codeExecution   = -32015 // of a call that failed without a revert
	codeInternal    = -32603
)

var errTooManyBlocks = codedError{errors.New("too many blocks"), codeTooMany}

// simulateError gives an error the code that eth_simulateV1 defines for it.
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

// revertError is the error of a reverted call, with the contract's return data.
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

// These are the error codes that clients of this package may check (EIP-1474).
const (
	// CodeNotFinal is returned by the methods that make proofs if the transaction or the
	// block is known but not final yet. The client should try again later.
	CodeNotFinal = -32002
	// CodeNoProofs is returned by jam_getTrust and the methods that make proofs if the
	// node's JAM chain does not provide the necessary data.
	CodeNoProofs = -32004
	// CodeUnsupported is returned if a client uses a part of a method that the node does
	// not support. The error text names the alternatives.
	CodeUnsupported = -32004
	// CodeLimited is returned if a source exceeds its rate limit. The error text includes
	// the time to wait. Over HTTP, the status of the answer may then be 429. CodeLimited is
	// also returned for a transaction that the node cannot accept at the moment because its
	// log does not answer.
	CodeLimited = -32005
)

// codedError is an error with a JSON-RPC error code.
type codedError struct {
	error
	code int
}

// ErrorCode implements rpc.Error.
func (e codedError) ErrorCode() int { return e.code }

// CodeTimeout is returned by eth_sendRawTransactionSync if the transaction was sent but
// its receipt did not arrive in time (EIP-7966).
const CodeTimeout = 4

// timeoutError is the error for a transaction whose receipt did not arrive in time.
type timeoutError struct{ hash common.Hash }

// Error implements error.
func (e timeoutError) Error() string {
	return fmt.Sprintf("the transaction was added to the pool but wasn't processed in time: %s", e.hash)
}

// ErrorCode implements rpc.Error.
func (timeoutError) ErrorCode() int { return CodeTimeout }

// ErrorData returns the transaction's hash.
func (e timeoutError) ErrorData() any { return e.hash }

// proofError adds the JSON-RPC error code to an error from making a proof.
func proofError(err error) error {
	switch {
	case errors.Is(err, node.ErrNotFinal):
		return codedError{err, CodeNotFinal}
	case errors.Is(err, node.ErrNoProofs):
		return codedError{err, CodeNoProofs}
	}
	return err
}

// reverted returns the error for a reverted call, with more detail in developer mode.
func (a *api) reverted(data []byte) error {
	if a.cfg.Dev {
		return devReverted(data)
	}
	return reverted(data)
}

// maxShown limits the bytes of a custom error's arguments in an error text.
const maxShown = 256

// devReverted returns the error for a reverted call in developer mode.
func devReverted(data []byte) error {
	if _, err := abi.UnpackRevert(data); err == nil || len(data) < 4 {
		return reverted(data)
	}
	// The selector and arguments of a custom error help a developer to understand a
	// failed test.
	text, args := fmt.Sprintf("custom error %#x", data[:4]), data[4:]
	if len(args) > 0 {
		text += fmt.Sprintf(": %x", args[:min(len(args), maxShown)])
	}
	if len(args) > maxShown {
		text += "…"
	}
	return revertError{fmt.Errorf("%w: %s", vm.ErrExecutionReverted, text), data}
}

// reverted returns the error for a reverted call. The text includes the reason, if the
// contract's return data contains one.
func reverted(data []byte) error {
	err := vm.ErrExecutionReverted
	if reason, unpackErr := abi.UnpackRevert(data); unpackErr == nil {
		err = fmt.Errorf("%w: %v", err, reason)
	}
	return revertError{err, data}
}
