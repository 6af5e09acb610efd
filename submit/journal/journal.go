package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrTooLarge: a record is longer than MaxRecord.
	ErrTooLarge = errors.New("journal: record too large")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal: closed")
	// ErrCorrupt: a record is damaged or missing that others follow. They were acknowledged, and may have been acted on: going on without them would
	// be a guess. Restore the journal as a whole.
	ErrCorrupt = errors.New("journal: corrupt")
	// ErrInUse: another process, or this one, has the journal open.
	ErrInUse = errors.New("journal: in use")
	// ErrFailed: an earlier write failed, or what was written cannot be read back. Open the journal again.
	ErrFailed = errors.New("journal: failed before")
)

// MaxRecord bounds a record, in bytes.
const MaxRecord = 1 << 28

// Journal keeps records in order. Its methods are safe for concurrent use.
type Journal interface {
	// Append adds records, all or none of which survive a crash before it returns; after it all do. A refused call adds none.
	Append(records ...[]byte) error
	// Replace puts records in the place of all that there are: a crash before it returns leaves the old or the new ones, never a mixture. It
	// is how a journal is kept short: the new ones begin with a snapshot of what the old ones led to.
	Replace(records ...[]byte) error
	// Replay calls f with each record in the order of their appending, those that were there when it began. The record is only valid
	// during the call. An error of f ends it and is returned. f runs under no lock and may append.
	Replay(f func(record []byte) error) error
	// Close ends the journal. Closing again does nothing.
	Close() error
}

// CheckSize refuses records that are too large for any journal: the error wraps ErrTooLarge.
func CheckSize(records [][]byte) error {
	for _, r := range records {
		if len(r) > MaxRecord {
			return fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(r), MaxRecord)
		}
	}
	return nil
}
