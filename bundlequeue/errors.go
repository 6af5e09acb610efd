package bundlequeue

import "errors"

// Every error of a Queue wraps one of these or one of package chainview's. A refused event changes nothing.
var (
	// ErrQueueFull: as many bundles wait as the queue's depth allows. The transactions stay with the caller.
	ErrQueueFull = errors.New("bundlequeue: queue full")
	// ErrWrongNumber: an enqueued or reserved bundle does not have the next number, or there is none of the number given.
	ErrWrongNumber = errors.New("bundlequeue: wrong number")
	// ErrNotExpected: the event's ticket is not open, because it was answered or because the request became
	// pointless. Drivers may ignore it.
	ErrNotExpected = errors.New("bundlequeue: not expected")
	// ErrInadmissible: a built package must not be sent: its anchor is too old, its prerequisites are not those asked
	// for, or its hash is taken. The request stays open: answer it again, or with BuildFailed.
	ErrInadmissible = errors.New("bundlequeue: inadmissible package")
	// ErrNotNow: a package was taken but must not be sent now; a job to send it comes later. Only Simple.MarkSubmitted says so.
	ErrNotNow = errors.New("bundlequeue: not to be sent now")
	// ErrUnknownEvent: the event is of no known type, of another bundle type than the queue, or has a value that it
	// cannot have.
	ErrUnknownEvent = errors.New("bundlequeue: unknown event")
	// ErrWrongEvidence: a block for a queue that goes by what it is told, or the other way round: see Config.Evidence.
	ErrWrongEvidence = errors.New("bundlequeue: wrong kind of evidence")
	// ErrCorrupt: a snapshot or a record cannot be read.
	ErrCorrupt = errors.New("bundlequeue: corrupt bytes")
)
