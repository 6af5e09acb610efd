package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/journal"
)

// The first byte of each record in the log is its kind.
const (
	// recordCheckpoint is the first record of a log: see checkpoint.
	recordCheckpoint = 'C'
	// recordState is one of the records that Checkpointer.Checkpoint returned.
	recordState = 'S'
	// recordChange is a record that Rollup.TakeChanges returned.
	recordChange = 'R'
	// recordPart is a part of the queue's snapshot, in a checkpoint. recordStep is one step of
	// the queue. recordConfig is the configuration of the queue for the steps after it, as
	// JSON.
	recordPart, recordStep, recordConfig = 'P', 'Q', 'K'
	// recordMark marks the position in the log at which the leader has begun a checkpoint, so
	// that followers make theirs of the same state.
	recordMark = 'M'
	// recordDoubt is written when the log may have lost records. recordTrust is written when
	// the lost records can no longer matter. While the last of the two is recordDoubt, the
	// builder sends nothing, also after a restart: see doubt.go.
	recordDoubt, recordTrust = 'D', 'T'
)

// records writes to the log on behalf of any number of goroutines. Calls of append that
// wait at the same time share one write, because each write waits for the disk. Each
// write begins with the changes that the rollup has made, so that a change is in the
// log before everything that follows from it.
type records struct {
	log    Log
	host   host
	calls  *calls
	writer *semaphore.Weighted // has a weight of one, so that only one goroutine writes at a time

	mu      sync.Mutex
	waiting []*writing
	after   [][]byte // records that were appended since the checkpoint began
	making  bool     // a checkpoint is being made
	size    int      // weight of the records since the last checkpoint
	covered int      // weight of the last checkpoint
	// err is the error of all later writes. After a write that failed, the content of
	// the log is unknown, so no further write is allowed. broken is closed when err is
	// set.
	err    error
	broken chan struct{}
}

// These are the names of the writes to the log in Health.Calls.
const logAppend, logReplace = "Log.Append", "Log.Replace"

// writing is one call of append that waits until its records are on disk. When they are,
// or when the write has failed, over is true and err has the result. Only the goroutine
// that holds records.writer uses these two fields.
type writing struct {
	records [][]byte
	over    bool
	err     error
}

// first returns the first record, or nil if the log is empty.
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

func newRecords(log Log, h host, calls *calls) records {
	return records{log: log, host: h, calls: calls, writer: semaphore.NewWeighted(1), broken: make(chan struct{})}
}

// append writes the given records, all or none, after the changes that the rollup has
// made. The error wraps one of these:
//
//   - ErrStopped: the records were not written. The changes may have been written by
//     another call.
//   - ErrLog: it is unknown whether anything was written.
func (r *records) append(all ...[]byte) error {
	w := &writing{records: all}
	r.mu.Lock()
	r.waiting = append(r.waiting, w)
	r.mu.Unlock()
	_ = r.writer.Acquire(context.Background(), 1) // a caller never gives up an append
	defer r.writer.Release(1)
	for !w.over {
		r.writeSome()
	}
	return w.err
}

// maxWrite limits the size of one write to the log, in bytes. A write that has reached it
// leaves the records of further calls to the next write.
const maxWrite = 1 << 20

// writeSome writes the records of the longest-waiting calls of append. The caller has
// acquired r.writer.
func (r *records) writeSome() {
	r.mu.Lock()
	var all [][]byte
	n, size := 0, 0
	for n < len(r.waiting) && size < maxWrite {
		for _, record := range r.waiting[n].records {
			size += len(record)
		}
		all = append(all, r.waiting[n].records...)
		n++
	}
	some := r.waiting[:n]
	r.waiting = r.waiting[n:]
	r.mu.Unlock()
	err := r.write(all)
	for _, w := range some {
		w.over, w.err = true, err
	}
}

// write appends the rollup's changes and then the given records.
func (r *records) write(more [][]byte) error {
	if err := r.failure(); err != nil {
		return err
	}
	all, err := r.takeChanges()
	if err != nil {
		return r.fail(err)
	}
	if all = append(all, more...); len(all) == 0 {
		return nil
	}
	if err := r.calls.make(context.Background(), logAppend, func() error { return r.log.Append(all...) }); err != nil {
		return r.fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += weight(all...)
	if r.making {
		r.after = append(r.after, all...)
	}
	return nil
}

// takeChanges returns the changes of the rollup as records of the log.
func (r *records) takeChanges() (changes [][]byte, err error) {
	err = r.calls.make(context.Background(), "Rollup.TakeChanges", func() error { changes = r.host.takeChanges(); return nil })
	return framed(recordChange, changes), err
}

// framed returns one record for each body. Each record begins with the given kind.
func framed(kind byte, bodies [][]byte) [][]byte {
	all := make([][]byte, len(bodies))
	for i, body := range bodies {
		all[i] = append([]byte{kind}, body...)
	}
	return all
}

// begin begins a checkpoint, which covers all records appended before this call.
func (r *records) begin() { r.set(true) }

func (r *records) set(making bool) (after [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after = r.after
	r.making, r.after = making, nil
	return after
}

// end ends a checkpoint: it replaces the log's content by the records in all.
func (r *records) end(all [][]byte) error {
	_ = r.writer.Acquire(context.Background(), 1)
	defer r.writer.Release(1)
	after := r.set(false)
	if all == nil {
		// The checkpoint was abandoned, and the log stays as it is.
		return nil
	}
	if err := r.failure(); err != nil {
		return err
	}
	// While the checkpoint was made, other goroutines have appended records. The checkpoint
	// does not contain them, so they are written after it.
	err := r.calls.make(context.Background(), logReplace, func() error { return r.log.Replace(append(all, after...)...) })
	switch {
	case errors.Is(err, journal.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return r.fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size, r.covered = weight(after...), weight(all...)
	return nil
}

// fail makes all later writes fail, and returns their error.
func (r *records) fail(cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		// After a failed write, the content of the log is unknown.
		r.err = fmt.Errorf("%w: %w", ErrLog, cause)
		close(r.broken)
	}
	return r.err
}

// stop waits for the running write and makes all later writes fail.
func (r *records) stop() {
	_ = r.writer.Acquire(context.Background(), 1)
	defer r.writer.Release(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = ErrStopped
		close(r.broken)
	}
}

// failure returns the error with which all writes fail from now on, or nil.
func (r *records) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// weight returns how much the given records count toward the limit Config.CheckpointEvery.
// Most records count as one.
func weight(all ...[]byte) (n int) {
	const counted = 16 << 10
	for _, record := range all {
		// A few records with large blocks make the log as large as many small ones. So a record
		// counts once more for each full 16 KiB.
		n += 1 + len(record)/counted
	}
	return n
}

// grew reports whether the log has grown enough since the last checkpoint to make another
// one. more is added to the limit, after checkpoints that have failed.
func (r *records) grew(every, more int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// If the last checkpoint was larger than the limit, wait until as much has been appended
	// again. A large state is then written less often.
	return r.size >= max(every, r.covered)+more
}
