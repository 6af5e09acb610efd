package eoa

import (
	"errors"
	"time"
)

var (
	// ErrInvalidRequest is returned for a request that can never be sent.
	ErrInvalidRequest = errors.New("eoa: invalid request")
	// ErrKeyReused is returned if the key belongs to a request with a different
	// payload.
	ErrKeyReused = errors.New("eoa: key belongs to another request")
	// ErrTooManyBlobs is returned if more than MaxPendingBlobs blobs would wait
	// for a nonce. Submit the request again when fewer are waiting.
	ErrTooManyBlobs = errors.New("eoa: too many pending blobs")
	// ErrUnknownRequest is returned if no request has the given key, id or
	// transaction hash.
	ErrUnknownRequest = errors.New("eoa: unknown request")
	// ErrHeld is returned if another worker holds the account's lease.
	ErrHeld = errors.New("eoa: account is held by another worker")
	// ErrFenced is returned if the lease was parked or broken, or if another
	// worker has acquired the account. Nothing was written.
	ErrFenced = errors.New("eoa: lease lost")
	// ErrConflict is returned by Commit if the account has changed since the
	// view was loaded, by an earlier commit of the same worker that was
	// believed to have failed. Nothing was written.
	ErrConflict = errors.New("eoa: account has changed since it was loaded")
	// ErrWoken is returned by Park and Suspend if requests or orders have
	// arrived since the worker last read the account. The lease goes on.
	ErrWoken = errors.New("eoa: account has new requests or orders")
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
	// ErrOtherChain is the cause of a stop if the node keeps reporting fewer
	// transactions of the account than a finalized block had.
	ErrOtherChain = errors.New("eoa: node is on another chain")
	// ErrSigner is returned if a signer has no key, or if its result is not the
	// requested transaction signed by the account.
	ErrSigner = errors.New("eoa: wrong signature")
	// ErrMalformed is returned for stored bytes that are not a valid record.
	ErrMalformed = errors.New("eoa: malformed record")
	// ErrReverted is wrapped by the error of [Chain.Estimate] if the node
	// executed the call and it failed, and by that of [Record.Err] if the
	// transaction is in a block and failed there.
	ErrReverted = errors.New("eoa: execution reverted")
	// ErrNotExecuted is wrapped by the error of [Record.Err] if no transaction of
	// the request will ever be executed.
	ErrNotExecuted = errors.New("eoa: not executed")
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("eoa: invalid config")
)

// BusyError is wrapped by an error of a [Chain] if the node asked us to wait.
type BusyError struct {
	// RetryAfter is how long the node asked us to wait. 0 means that it gave no
	// time. Values above one minute are treated as one minute.
	RetryAfter time.Duration
	// Err is the node's error.
	Err error
}

// Error returns the message of Err.
func (e *BusyError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *BusyError) Unwrap() error { return e.Err }
