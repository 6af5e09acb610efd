package eoa

import (
	"errors"
	"time"
)

var (
	// ErrKeyReused is returned by Submit if the key belongs to a different request.
	// Nothing was accepted.
	ErrKeyReused = errors.New("eoa: key belongs to another request")
	// ErrUnknownRequest is returned if no request has the given key or transaction hash.
	ErrUnknownRequest = errors.New("eoa: unknown request")
	// ErrHeld is returned if another worker holds the lease of the account.
	ErrHeld = errors.New("eoa: account is held by another worker")
	// ErrFenced is returned by a store if the caller no longer has the lease: it
	// was given back (Park) or taken away (Break), or another worker has acquired
	// it. Nothing was written.
	ErrFenced = errors.New("eoa: lease lost")
	// ErrConflict is returned by [Store.Commit] if the account has changed since
	// the batch was decided, for example because an earlier commit of the same
	// worker arrived late. Nothing was written.
	ErrConflict = errors.New("eoa: account has changed since it was loaded")
	// ErrWoken is returned by [Store.Park] and [Executor.Suspend] if requests or orders have
	// arrived since the worker last read the account. The worker keeps the lease.
	ErrWoken = errors.New("eoa: account has new requests or orders")
	// ErrSigner is returned if a signer has no key for the account, or if its result is not
	// the requested transaction, signed by the account.
	ErrSigner = errors.New("eoa: wrong signature")
)

// BusyError tells the executor that the node asked it to wait before the next
// call. A [Chain] returns it, or an error that wraps it.
type BusyError struct {
	// RetryAfter is how long to wait; 0 means that the node named no time. More
	// than a minute counts as one minute.
	RetryAfter time.Duration
	// Err is the node's error.
	Err error
}

// Error returns the message of Err.
func (e *BusyError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *BusyError) Unwrap() error { return e.Err }
