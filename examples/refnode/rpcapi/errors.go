package rpcapi

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/examples/refnode/node"
)

// The texts are those that clients of geth look for.
var (
	errHeaderNotFound        = errors.New("header not found")
	errHeaderForHashNotFound = errors.New("header for hash not found")
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

// Codes of jam_getFinalityProof and jam_getTrust (EIP-1474).
const (
	// CodeNotFinal: the transaction is known and not final yet; ask again.
	CodeNotFinal = -32002
	// CodeNoProofs: the JAM chain that the node works on cannot be asked for what a proof is made of.
	CodeNoProofs = -32004
)

// codedError is an error with a code of its own.
type codedError struct {
	error
	code int
}

// ErrorCode makes go-ethereum's RPC server answer with the code.
func (e codedError) ErrorCode() int { return e.code }

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
