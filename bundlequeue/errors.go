package bundlequeue

import "errors"

// Every error of a Queue wraps one of these or one of package chainview's. A refused event changes nothing.
var (
	// ErrQueueFull: as many bundles wait as Config.MaxQueueDepth allows. The transactions stay with the caller.
	ErrQueueFull = errors.New("bundlequeue: queue full")
	// ErrWrongNumber: an enqueued bundle does not have the next number.
	ErrWrongNumber = errors.New("bundlequeue: wrong number")
	// ErrNotExpected: the event's ticket is not open, because it was answered or because the request became
	// pointless. Drivers may ignore it.
	ErrNotExpected = errors.New("bundlequeue: not expected")
	// ErrInadmissible: a built package must not be sent: its anchor is too old, its prerequisites are not those asked
	// for, or its hash is taken. The request stays open: answer it again, or with BuildFailed.
	ErrInadmissible = errors.New("bundlequeue: inadmissible package")
	// ErrUnknownEvent: the event is of no known type, or of another bundle type than the queue.
	ErrUnknownEvent = errors.New("bundlequeue: unknown event")
)
