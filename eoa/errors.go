package eoa

import (
	"errors"
	"time"
)

var (
	// ErrInvalidRequest: a request that can never be sent.
	ErrInvalidRequest = errors.New("eoa: invalid request")
	// ErrKeyReused: the key belongs to a request with another payload.
	ErrKeyReused = errors.New("eoa: key belongs to another request")
	// ErrTooManyBlobs: with the request, more than MaxPendingBlobs blobs would wait for a nonce. Submit it again when some have got theirs.
	ErrTooManyBlobs = errors.New("eoa: too many blobs wait")
	// ErrUnknownRequest: no request has this key, id or transaction hash.
	ErrUnknownRequest = errors.New("eoa: unknown request")
	// ErrHeld: another worker holds the account's lease.
	ErrHeld = errors.New("eoa: account is held by another worker")
	// ErrFenced: the lease has ended, or another worker has taken it over. Nothing was written.
	ErrFenced = errors.New("eoa: lease lost")
	// ErrConflict: the account has changed since the view was loaded, by a write of ours that was thought to have failed. Nothing was written.
	ErrConflict = errors.New("eoa: account has changed since it was loaded")
	// ErrWoken: requests or orders came since the view was loaded, so the account cannot be parked.
	ErrWoken = errors.New("eoa: new requests or orders are there")
	// ErrSigner: a signer gave something else than the transaction it was asked to sign.
	ErrSigner = errors.New("eoa: wrong signature")
	// ErrMalformed: stored bytes that are no record.
	ErrMalformed = errors.New("eoa: malformed bytes")
	// ErrReverted is wrapped by a Chain's Estimate where the call is sure to fail as things are.
	ErrReverted = errors.New("eoa: execution reverts")
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("eoa: invalid config")
)

// BusyError is wrapped by an error of a Chain whose node asks to be left alone for a while.
type BusyError struct {
	// RetryAfter is for how long, 0 where the node does not say; a minute at most is.
	RetryAfter time.Duration
	// Err is what the node said.
	Err error
}

// Error returns what the node said.
func (e *BusyError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *BusyError) Unwrap() error { return e.Err }
