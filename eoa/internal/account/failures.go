package account

import "errors"

var (
	// ErrInvalidRequest is returned for a request that can never be sent.
	ErrInvalidRequest = errors.New("eoa: invalid request")
	// ErrMalformed is returned for stored bytes that are not a valid record.
	ErrMalformed = errors.New("eoa: malformed record")
	// ErrNotExecuted is wrapped by the error of [Record.Err] if no transaction of
	// the request will ever be executed.
	ErrNotExecuted = errors.New("eoa: not executed")
	// ErrReverted is wrapped by the error of [Chain.Estimate] if the node
	// executed the call and it failed, and by that of [Record.Err] if the
	// transaction is in a block and failed there.
	ErrReverted = errors.New("eoa: execution reverted")
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("eoa: invalid config")
	// ErrOtherChain is the cause of a stop if the node keeps reporting fewer
	// transactions of the account than a finalized block had.
	ErrOtherChain = errors.New("eoa: node is on another chain")
	// ErrStopped is returned by Step while the account is stopped. The error
	// also wraps the cause: ErrStoreRolledBack or ErrOtherChain. Nothing is
	// signed or sent until an operator calls [Client.Resume].
	ErrStopped = errors.New("eoa: account is stopped")
	// ErrStoreRolledBack is the cause of a stop if the store lacks commits to
	// the account that this process has seen, or if the account is exclusive and
	// has a transaction that the store does not know. The transactions of the
	// lost writes may be on the chain, so that going on could execute requests
	// twice.
	ErrStoreRolledBack = errors.New("eoa: store lost writes")
)
