package bundlequeue

import "errors"

// Every error of a Queue wraps one of these errors or one of package chainview.
// A refused event changes nothing.
var (
	// ErrQueueFull means that as many bundles wait as the depth of the queue
	// allows. The transactions stay with the caller.
	ErrQueueFull = errors.New("bundlequeue: queue full")
	// ErrWrongNumber means that an enqueued or reserved bundle does not have
	// the next number, or that the queue holds no bundle with the number in a
	// suitable state.
	ErrWrongNumber = errors.New("bundlequeue: wrong number")
	// ErrWrongParent means that a bundle was executed on another block than the
	// one before it. Usually that block has failed meanwhile: take the Failed
	// effects, and execute the transactions again on [Queue.Head].
	ErrWrongParent = errors.New("bundlequeue: wrong parent")
	// ErrCommitmentUsed means that another bundle has the commitment of an
	// enqueued one, or had it before it failed.
	ErrCommitmentUsed = errors.New("bundlequeue: commitment was used before")
	// ErrNotExpected means that the event's ticket is not open: it was answered
	// before, or the request was canceled. Drivers may ignore it.
	ErrNotExpected = errors.New("bundlequeue: not expected")
	// ErrInadmissible means that a built package must not be sent. Its anchor
	// is too old, it lacks a required prerequisite, or its hash is already
	// used. The request stays open: answer it again, or with BuildFailed.
	ErrInadmissible = errors.New("bundlequeue: inadmissible package")
	// ErrUnknownAnchor means that the queue has not imported the anchor of a
	// built package. It is wrapped together with ErrInadmissible. The host used
	// a wrong block, or one that it has not fed to the queue yet. If finality
	// has moved since the request, the queue may have forgotten the block. It
	// then discards the package without an error: see [Built].
	ErrUnknownAnchor = errors.New("bundlequeue: unknown anchor")
	// ErrUnknownEvent means that the event has an unknown type, the bundle type
	// of another queue, or an invalid value.
	ErrUnknownEvent = errors.New("bundlequeue: unknown event")
	// ErrCorrupt means that a snapshot or a record cannot be decoded.
	ErrCorrupt = errors.New("bundlequeue: corrupt bytes")
	// ErrInvariant means that the state of the queue is invalid: see
	// [Queue.Check].
	ErrInvariant = errors.New("bundlequeue: invariant violated")
)
