// go test ./internal/tidy -update writes this file from eoa/internal/account/failures.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

var (
	// ErrInvalidRequest is returned for a request that can never be sent.
	ErrInvalidRequest = account.ErrInvalidRequest
	// ErrMalformed is returned for stored bytes that are not a valid record.
	ErrMalformed = account.ErrMalformed
	// ErrNotExecuted is wrapped by the error of [Record.Err] if no transaction of
	// the request will ever be executed.
	ErrNotExecuted = account.ErrNotExecuted
	// ErrReverted is wrapped by the error of [Chain.Estimate] if the node
	// executed the call and it failed, and by that of [Record.Err] if the
	// transaction is in a block and failed there.
	ErrReverted = account.ErrReverted
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = account.ErrInvalidConfig
	// ErrOtherChain is the cause of a stop if the node keeps reporting fewer
	// transactions of the account than a finalized block had.
	ErrOtherChain = account.ErrOtherChain
	// ErrStopped is returned by Step while the account is stopped. The error
	// also wraps the cause: ErrStoreRolledBack or ErrOtherChain. Nothing is
	// signed or sent until an operator calls [Client.Resume].
	ErrStopped = account.ErrStopped
	// ErrStoreRolledBack is the cause of a stop if the store lacks commits to
	// the account that this process has seen, or if the account is exclusive and
	// has a transaction that the store does not know. The transactions of the
	// lost writes may be on the chain, so that going on could execute requests
	// twice.
	ErrStoreRolledBack = account.ErrStoreRolledBack
)
