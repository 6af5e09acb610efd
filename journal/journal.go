package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrTooLarge is returned if a record is longer than MaxRecord.
	ErrTooLarge = errors.New("journal: record too large")
	// ErrClosed is returned by all methods after Close, except by Close itself.
	ErrClosed = errors.New("journal: closed")
	// ErrCorrupt is returned by Open if a record is damaged or missing and other
	// records follow it. The record was acknowledged, and the host may have acted
	// on it, so the journal cannot be used without it. The operator must restore
	// the whole journal from a copy. Read returns ErrCorrupt for any damage, even
	// at the end.
	ErrCorrupt = errors.New("journal: corrupt")
	// ErrInUse is returned by Open if this or another process has the journal
	// open.
	ErrInUse = errors.New("journal: in use")
	// ErrFenced is returned by Append and Replace of a shared journal if another
	// process is the leader, so that this process must not write. Nothing was
	// written.
	ErrFenced = errors.New("journal: another process leads")
	// ErrLost is returned by Lead of a shared journal if records that this process
	// has read are missing from the journal or differ. Acknowledged records were
	// therefore lost.
	ErrLost = errors.New("journal: it lacks records that this process has read")
	// ErrFailed is returned if an earlier write has failed, or if written records cannot be read.
	// The host must close the journal and open it again.
	ErrFailed = errors.New("journal: failed before")
)

// MaxRecord is the maximum size of a record, in bytes.
const MaxRecord = 1 << 28

// Journal stores records in order. Its methods are safe for concurrent use.
type Journal interface {
	// Append adds records, which are durable when it returns nil. If the process
	// crashes during the call, either all or none of the records are in the
	// journal. A refused call adds no record.
	Append(records ...[]byte) error
	// Replace replaces all records with new ones, which keeps the journal short:
	// the new records begin with a snapshot of the state that the old records
	// describe. If the process crashes during the call, the journal contains either
	// the old or the new records, never a mixture. A refused call changes nothing.
	Replace(records ...[]byte) error
	// Replay calls f with each record, in the order in which the records were appended.
	// It covers the records that the journal had when Replay began. f must not keep the
	// record after returning. If f returns an error, Replay stops and returns that error.
	// Replay holds no lock while f runs, so f may append.
	Replay(f func(record []byte) error) error
	// Close closes the journal. Further calls have no effect.
	Close() error
}

// CheckSize returns an error that wraps ErrTooLarge if a record is longer than
// MaxRecord.
func CheckSize(records [][]byte) error {
	for _, r := range records {
		if len(r) > MaxRecord {
			return fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(r), MaxRecord)
		}
	}
	return nil
}
