package rpcapi

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/examples/refnode/node"
)

// The texts are those that clients of geth look for.
var (
	errHeaderNotFound        = errors.New("header not found")
	errHeaderForHashNotFound = errors.New("header for hash not found")
	errFilterNotFound        = errors.New("filter not found")
	errUnknownBlock          = errors.New("unknown block")
)

// codeInvalidParams is JSON-RPC's code for a parameter that is well-formed and not allowed.
const codeInvalidParams = -32602

// paramsError is an error with the code for invalid parameters.
type paramsError struct{ error }

// ErrorCode makes go-ethereum's RPC server answer with the code.
func (paramsError) ErrorCode() int { return codeInvalidParams }

func invalidParams(format string, args ...any) error { return paramsError{fmt.Errorf(format, args...)} }

// revertError tells that a call reverted, with the data that the contract returned.
type revertError struct {
	error
	data []byte
}

// codeReverted is geth's error code for a reverted call.
const codeReverted = 3

// ErrorCode makes go-ethereum's RPC server answer with the code.
func (revertError) ErrorCode() int { return codeReverted }

// ErrorData is the contract's return data.
func (e revertError) ErrorData() any { return hexutil.Encode(e.data) }

// Codes of our own errors (EIP-1474).
const (
	// CodeNotFinal: the transaction is known and not final yet; ask again. Of jam_getFinalityProof.
	CodeNotFinal = -32002
	// CodeNoProofs: the JAM chain that the node works on cannot be asked for what a proof is made of. Of jam_getFinalityProof and jam_getTrust.
	CodeNoProofs = -32004
	// CodeUnsupported: there is no such thing here, and the text says what there is instead. Of eth_getProof.
	CodeUnsupported = -32004
	// CodeLimited: the source asks for too much; the text says when to come again. Over HTTP it may come with status 429.
	CodeLimited = -32005
)

// codedError is an error with a code of its own.
type codedError struct {
	error
	code int
}

// ErrorCode makes go-ethereum's RPC server answer with the code.
func (e codedError) ErrorCode() int { return e.code }

// CodeTimeout is the code of eth_sendRawTransactionSync for a transaction that is sent and has no receipt in time (EIP-7966).
const CodeTimeout = 4

// timeoutError tells that a transaction was sent and has no receipt in time.
type timeoutError struct{ hash common.Hash }

// Error implements error.
func (e timeoutError) Error() string {
	return fmt.Sprintf("the transaction was added to the pool but wasn't processed in time: %s", e.hash)
}

// ErrorCode makes go-ethereum's RPC server answer with the code.
func (timeoutError) ErrorCode() int { return CodeTimeout }

// ErrorData is the transaction's hash.
func (e timeoutError) ErrorData() any { return e.hash }

// proofError gives an error of the node its code.
func proofError(err error) error {
	switch {
	case errors.Is(err, node.ErrNotFinal):
		return codedError{err, CodeNotFinal}
	case errors.Is(err, node.ErrNoProofs):
		return codedError{err, CodeNoProofs}
	}
	return err
}

// reverted wraps the data of a revert, with the reason in words where it holds one.
func reverted(data []byte) error {
	err := vm.ErrExecutionReverted
	if reason, unpackErr := abi.UnpackRevert(data); unpackErr == nil {
		err = fmt.Errorf("%w: %v", err, reason)
	}
	return revertError{err, data}
}
