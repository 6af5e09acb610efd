package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/submit/journal"
)

// The first byte of a record is its kind.
const (
	// recordCheckpoint begins a log: see checkpoint.
	recordCheckpoint = 'C'
	// recordState is a record of Checkpointer.Checkpoint.
	recordState = 'S'
	// recordOperation is an operation that was accepted.
	recordOperation = 'O'
	// recordRollup is a record of a Recorder.
	recordRollup = 'R'
	// recordQueue is a record of the queue's runner: a step, or its state.
	recordQueue = 'Q'
)

// records writes to the log. Of all records, it also keeps those that were
// appended while a checkpoint is made, because the checkpoint does not have them.
type records struct {
	log Log
	// writers lets appends run concurrently, so that the log can make several durable
	// at once. While a checkpoint is made, they run one after the other.
	writers *semaphore.Weighted

	mu     sync.Mutex
	after  [][]byte // since the checkpoint began
	making bool     // a checkpoint
	size   int      // number of records since the last checkpoint
	err    error    // after a write that failed: it is unknown what the log has
	broken chan struct{}
}

// everyone is the weight of a writer that excludes all others.
const everyone = 1 << 20

// first returns the first record of the log, nil if there is none.
func (r *records) first() (record []byte, err error) {
	stop := errors.New("enough")
	err = r.log.Replay(func(first []byte) error {
		if len(first) == 0 {
			return fmt.Errorf("%w: an empty record", ErrCorrupt)
		}
		record = bytes.Clone(first)
		return stop
	})
	switch {
	case err == nil, errors.Is(err, stop):
		return record, nil
	case errors.Is(err, ErrCorrupt):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrLog, err)
}

func newRecords(log Log) records {
	return records{log: log, writers: semaphore.NewWeighted(everyone), broken: make(chan struct{})}
}

// framed returns records with their kind.
func framed(kind byte, bodies [][]byte) [][]byte {
	all := make([][]byte, len(bodies))
	for i, body := range bodies {
		all[i] = append([]byte{kind}, body...)
	}
	return all
}

// enter begins an append, and returns the function that ends it.
func (r *records) enter() (leave func()) {
	for weight := int64(1); ; weight = everyone {
		_ = r.writers.Acquire(context.Background(), weight) // an append is never given up
		r.mu.Lock()
		making := r.making
		r.mu.Unlock()
		if !making || weight == everyone {
			return func() { r.writers.Release(weight) }
		}
		r.writers.Release(weight)
	}
}

// append writes records, all or none. They are durable when it returns nil.
func (r *records) append(all ...[]byte) error {
	defer r.enter()()
	if err := r.failure(); err != nil {
		return err
	}
	if err := r.log.Append(all...); err != nil {
		return r.failed(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += len(all)
	if r.making {
		r.after = append(r.after, all...)
	}
	return nil
}

// begin begins a checkpoint: it has all records that were appended before.
func (r *records) begin() { r.set(true) }

func (r *records) set(making bool) (after [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after = r.after
	r.making, r.after = making, nil
	return after
}

// end ends a checkpoint. If there are records, they replace those that were
// appended before begin.
func (r *records) end(all [][]byte) error {
	_ = r.writers.Acquire(context.Background(), everyone)
	defer r.writers.Release(everyone)
	after := r.set(false)
	if all == nil {
		return nil
	}
	if err := r.failure(); err != nil {
		return err
	}
	if err := r.log.Replace(append(all, after...)...); err != nil {
		return r.failed(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size = len(after)
	return nil
}

// failed returns the error of a write. Unless the log has refused a record because of
// its size, nothing is written any more.
func (r *records) failed(cause error) error {
	if errors.Is(cause, journal.ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrTooLarge, cause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = fmt.Errorf("%w: %w", ErrLog, cause)
		close(r.broken)
	}
	return r.err
}

// failure returns the error of the write that failed, or nil.
func (r *records) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// since returns how many records there are since the last checkpoint.
func (r *records) since() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}
