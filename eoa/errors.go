package eoa

import (
	"errors"
	"time"
)

var (
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
	// ErrSigner is returned if a signer has no key, or if its result is not the
	// requested transaction signed by the account.
	ErrSigner = errors.New("eoa: wrong signature")
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
