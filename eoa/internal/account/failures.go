package account

import "errors"

var (
	// ErrInvalidRequest is returned for a request that could never be executed.
	ErrInvalidRequest = errors.New("eoa: invalid request")
	// ErrMalformed is returned if stored bytes are damaged, so that no executor
	// can have written them as a record.
	ErrMalformed = errors.New("eoa: malformed record")
	// ErrNotExecuted means that a request has ended without being executed: it
	// failed before it was sent, or it was cancelled or superseded. [Record.Err]
	// wraps it.
	ErrNotExecuted = errors.New("eoa: not executed")
	// ErrNotReplaced means that [Client.Replace] came too late: the chain has executed
	// the earlier payload of the request. [Record.Err] wraps it.
	ErrNotReplaced = errors.New("eoa: not replaced")
	// ErrReverted means that a request was executed and failed. [Record.Err] wraps
	// it if a block contains the failed transaction, and [Chain.Estimate] wraps it
	// if the node tried the call.
	ErrReverted = errors.New("eoa: execution reverted")
	// ErrInvalidConfig is wrapped by all errors about a configuration.
	ErrInvalidConfig = errors.New("eoa: invalid config")
	// ErrOtherChain stops an account whose node seems to be on another chain. For a
	// long time the node has reported fewer transactions of the account than a
	// finalized block had before.
	ErrOtherChain = errors.New("eoa: node is on another chain")
	// ErrStopped is returned by [Executor.Step] while the account is stopped: nothing is
	// signed or sent until an operator calls [Client.Resume]. The error also wraps the cause,
	// ErrStoreRolledBack or ErrOtherChain.
	ErrStopped = errors.New("eoa: account is stopped")
	// ErrStoreRolledBack is the cause of a stop: the store has lost writes, for
	// example because a replica was promoted that did not have them. Transactions
	// of the lost writes may be on the chain, so going on could execute requests
	// twice. There are two signs of it:
	//
	//   - The store lacks commits that this process has seen.
	//   - An exclusive account has a transaction that the store does not know.
	ErrStoreRolledBack = errors.New("eoa: store lost writes")
)
