package builder

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/journal"
)

// The first byte of a record is its kind.
const (
	// recordCheckpoint begins a log: see checkpoint.
	recordCheckpoint = 'C'
	// recordState is a record of Checkpointer.Checkpoint.
	recordState = 'S'
	// recordOperation is an operation with its identity.
	recordOperation = 'O'
	// recordTaken is the identity of an operation that the rollup has taken, and
	// recordRefused that of one that it has not.
	recordTaken, recordRefused = 'T', 'W'
	// recordRollup is a record of a Recorder.
	recordRollup = 'R'
	// recordPart is a part of a snapshot of the queue. recordStep is a step of the queue,
	// and recordConfig the configuration, as JSON, of the steps after it.
	recordPart, recordStep, recordConfig = 'P', 'Q', 'K'
)

// records writes to the log. Calls that wait for the same write share it. Of all records,
// it also keeps those that were appended while a checkpoint is made, because the
// checkpoint does not have them.
type records struct {
	log    Log
	calls  *calls
	writer *semaphore.Weighted // has a weight of one for the only writer

	mu      sync.Mutex
	waiting []*writing
	after   [][]byte // since the checkpoint began
	making  bool     // a checkpoint
	size    int      // of the records since the last checkpoint: see weight
	err     error    // after a write that failed: it is unknown what the log has
	broken  chan struct{}
}

// writing is a call of append.
type writing struct {
	records [][]byte
	over    bool
	err     error
}

// idSize is the size of the identity of an operation in the log.
const idSize = 8

// newID returns a new identity.
func newID() (id [idSize]byte) {
	binary.LittleEndian.PutUint64(id[:], rand.Uint64())
	return id
}

// outcomes are the kinds of the records that end operations, by identity.
type outcomes map[[idSize]byte]byte

// outcomes returns those of the log. An operation without one has had no answer, because the
// process has died before.
func (r *records) outcomes() (outcomes, error) {
	all := make(outcomes)
	err := r.log.Replay(func(record []byte) error {
		if len(record) == 1+idSize && (record[0] == recordTaken || record[0] == recordRefused) {
			all[[idSize]byte(record[1:])] = record[0]
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return all, nil
}

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

func newRecords(log Log, host *calls) records {
	return records{log: log, calls: host, writer: semaphore.NewWeighted(1), broken: make(chan struct{})}
}

// framed returns records with their kind.
func framed(kind byte, bodies [][]byte) [][]byte {
	all := make([][]byte, len(bodies))
	for i, body := range bodies {
		all[i] = append([]byte{kind}, body...)
	}
	return all
}

// append writes records, all or none. They are durable when it returns nil.
func (r *records) append(all ...[]byte) error {
	w := &writing{records: all}
	r.mu.Lock()
	r.waiting = append(r.waiting, w)
	r.mu.Unlock()
	_ = r.writer.Acquire(context.Background(), 1) // an append is never given up
	defer r.writer.Release(1)
	for !w.over {
		r.writeSome()
	}
	return w.err
}

// maxWrite is the size in bytes from which on a write is not shared.
const maxWrite = 1 << 20

// writeSome writes the records of the calls that wait longest. The caller is the writer.
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
	if errors.Is(err, ErrTooLarge) && len(some) > 1 { // only for the one that has it
		for _, w := range some {
			w.over, w.err = true, r.write(w.records)
		}
		return
	}
	for _, w := range some {
		w.over, w.err = true, err
	}
}

func (r *records) write(all [][]byte) error {
	if err := r.failure(); err != nil {
		return err
	}
	if err := r.calls.make(context.Background(), "Log.Append", func() error { return r.log.Append(all...) }); err != nil {
		return r.failed(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += weight(all...)
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
	_ = r.writer.Acquire(context.Background(), 1)
	defer r.writer.Release(1)
	after := r.set(false)
	if all == nil {
		return nil
	}
	if err := r.failure(); err != nil {
		return err
	}
	if err := r.calls.make(context.Background(), "Log.Replace", func() error { return r.log.Replace(append(all, after...)...) }); err != nil {
		return r.failed(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size = weight(after...)
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

// stop waits for the write that runs, and makes all later ones fail.
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

// failure returns the error of the write that failed, or nil.
func (r *records) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// weight returns the number of records. A record counts once more for each 16 KiB that it
// has, because large blocks make a log large with few records.
func weight(all ...[]byte) (n int) {
	const counted = 16 << 10
	for _, record := range all {
		n += 1 + len(record)/counted
	}
	return n
}

// since returns the weight of the records since the last checkpoint.
func (r *records) since() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}
