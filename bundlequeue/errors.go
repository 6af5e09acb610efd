package bundlequeue

import "errors"

// Every error of a Queue wraps one of these errors or one of package chainview. An event that is
// refused with an error has not changed the queue.
var (
	// ErrQueueFull means that Config.MaxQueueDepth bundles are waiting already. The host keeps the
	// transactions and tries again later.
	ErrQueueFull = errors.New("bundlequeue: queue full")
	// ErrWrongNumber means that the number in an event does not fit:
	//
	//   - In Reserve it is not the next number, and in Enqueue it is neither the next number
	//     nor a reserved one.
	//   - In other events, the queue has no bundle with this number, the event cannot be
	//     applied in the state of the bundle, or the new number is out of range.
	ErrWrongNumber = errors.New("bundlequeue: wrong number")
	// ErrWrongParent means that a bundle was executed on a block that is not the one before it in
	// the queue. Usually that block has failed in the meantime. The host should process the Failed
	// effects and execute the transactions again on [Queue.Head].
	ErrWrongParent = errors.New("bundlequeue: wrong parent")
	// ErrCommitmentUsed means that the commitment of a new bundle belongs to another bundle,
	// perhaps to one that has failed.
	ErrCommitmentUsed = errors.New("bundlequeue: commitment was used before")
	// ErrNotExpected means that the queue does not wait for this answer, because the request was
	// answered before or was canceled. Drivers may ignore this error.
	ErrNotExpected = errors.New("bundlequeue: not expected")
	// ErrInadmissible means that a package must not be sent: its anchor is too old, it lacks a
	// required prerequisite, or its hash was used before. The request stays open, so the host must
	// answer it again, with a different package or with BuildFailed.
	ErrInadmissible = errors.New("bundlequeue: inadmissible package")
	// ErrUnknownAnchor means that a package is anchored to a block that the queue has not
	// imported: a wrong block, or one that the host has not passed to the queue yet. The
	// returned error also wraps ErrInadmissible. If finality has moved since the request,
	// the queue may have forgotten the block. In this case it discards the package
	// without an error: see [Built].
	ErrUnknownAnchor = errors.New("bundlequeue: unknown anchor")
	// ErrUnknownEvent means that an event has an unknown type or a value that is not allowed.
	ErrUnknownEvent = errors.New("bundlequeue: unknown event")
	// ErrCorrupt means that a snapshot or a record cannot be decoded.
	ErrCorrupt = errors.New("bundlequeue: corrupt bytes")
	// ErrInvariant means that [Queue.Check] has found the queue in an impossible state.
	ErrInvariant = errors.New("bundlequeue: invariant violated")
)
