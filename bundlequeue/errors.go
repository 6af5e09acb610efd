package bundlequeue

import "errors"

// Every error of a Queue wraps one of these or one of package chainview's. A refused event changes
// nothing.
var (
	// ErrQueueFull: as many bundles wait as the queue's depth allows. The transactions stay with
	// the caller.
	ErrQueueFull = errors.New("bundlequeue: queue full")
	// ErrWrongNumber: an enqueued or reserved bundle does not have the next number, or the queue
	// holds no bundle of that number in the right state.
	ErrWrongNumber = errors.New("bundlequeue: wrong number")
	// ErrNotExpected: the event's ticket is not open, because it was answered before or the request
	// became pointless. Drivers may ignore it.
	ErrNotExpected = errors.New("bundlequeue: not expected")
	// ErrInadmissible: a built package must not be sent. Its anchor is too old, it does not name a
	// prerequisite that was asked for, or its hash is taken. The request stays open: answer it
	// again, or with BuildFailed.
	ErrInadmissible = errors.New("bundlequeue: inadmissible package")
	// ErrUnknownAnchor: the anchor of a built package is no block that the queue has imported. It
	// comes with ErrInadmissible. The host named a wrong block, or one that it has not fed to the
	// queue yet.
	ErrUnknownAnchor = errors.New("bundlequeue: unknown anchor")
	// ErrUnknownEvent: the event is of no known type, belongs to another bundle type than the
	// queue, or has a value that it cannot have.
	ErrUnknownEvent = errors.New("bundlequeue: unknown event")
	// ErrWrongEvidence: the event is a block and the queue has told evidence, or the event is Told
	// and the queue has chain evidence.
	ErrWrongEvidence = errors.New("bundlequeue: wrong kind of evidence")
	// ErrCorrupt: a snapshot or a record cannot be read.
	ErrCorrupt = errors.New("bundlequeue: corrupt bytes")
	// ErrInvariant: the queue is in a state that it can never be in: see [Queue.Check].
	ErrInvariant = errors.New("bundlequeue: invariant violated")
)
