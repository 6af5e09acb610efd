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
	// ErrCorrupt is returned by Open if a record is damaged or missing and
	// others follow it. They were acknowledged, and the host may have acted on
	// them, so the journal cannot be used without them. Restore the whole
	// journal from a copy. Read returns it for every damage, also at the end.
	ErrCorrupt = errors.New("journal: corrupt")
	// ErrInUse is returned by Open if this or another process has the journal
	// open.
	ErrInUse = errors.New("journal: in use")
	// ErrFenced is returned by Append and Replace of a shared journal if another process leads.
	// Nothing was written.
	ErrFenced = errors.New("journal: another process leads")
	// ErrLost is returned by Lead of a shared journal that lacks records which this process has
	// read, or has others in their place. Acknowledged records were lost.
	ErrLost = errors.New("journal: it lacks records that this process has read")
	// ErrFailed is returned if an earlier write failed, or if written records
	// cannot be read back. Close the journal and open it again.
	ErrFailed = errors.New("journal: failed before")
)

// MaxRecord is the maximum size of a record, in bytes.
const MaxRecord = 1 << 28

// Journal stores records in order. Its methods are safe for concurrent use.
type Journal interface {
	// Append adds records. They are durable when it returns. After a crash
	// during the call, either all or none of them are present. A call that is
	// refused adds none.
	Append(records ...[]byte) error
	// Replace replaces all records with new ones. After a crash during the
	// call, either the old or the new records are present, never a mixture. It
	// keeps a journal short: the new records begin with a snapshot of the state
	// that the old ones produced. A call that is refused changes nothing.
	Replace(records ...[]byte) error
	// Replay calls f with each record, in the order in which they were
	// appended. It covers the records that were present when it began. A record
	// is valid only during the call of f. If f returns an error, Replay stops
	// and returns it. Replay holds no lock while f runs, so f may append.
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
