package pebblejournal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/vfs"
)

// acknowledged is a file beside the database with the number that follows the last
// acknowledged record. Pebble drops the records after damage in its log without an
// error, and this file reveals the loss. Writes to the file are not synced: after a
// power failure the number may be too low, which causes no false alarm.
type acknowledged struct{ file vfs.File }

const acknowledgedName = "acknowledged"

// openAcknowledged opens the file in a directory and returns it with its number.
func openAcknowledged(fs vfs.FS, dir string) (*acknowledged, uint64, error) {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, 0, err
	}
	file, err := fs.OpenReadWrite(fs.PathJoin(dir, acknowledgedName))
	if err != nil {
		return nil, 0, err
	}
	a := &acknowledged{file}
	next, err := a.read()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return a, next, nil
}

// readAcknowledged returns the number in the file of a directory, or 0.
func readAcknowledged(files vfs.FS, dir string) (next uint64, err error) {
	file, err := files.Open(files.PathJoin(dir, acknowledgedName))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return (&acknowledged{file}).read()
}

// read returns the number, or 0 if the file is new or damaged.
func (a *acknowledged) read() (uint64, error) {
	raw := make([]byte, numberSize+sumSize)
	switch _, err := a.file.ReadAt(raw, 0); {
	case errors.Is(err, io.EOF):
		return 0, nil
	case err != nil:
		return 0, err
	case crc32.Checksum(raw[:numberSize], castagnoli) != binary.LittleEndian.Uint32(raw[numberSize:]):
		return 0, nil
	}
	return binary.LittleEndian.Uint64(raw), nil
}

// note stores the number that follows the last acknowledged record.
func (a *acknowledged) note(next uint64) error {
	if a == nil {
		return nil
	}
	raw := binary.LittleEndian.AppendUint64(nil, next)
	if _, err := a.file.WriteAt(binary.LittleEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli)), 0); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return nil
}

// reset sets the number to zero and syncs the file.
func (a *acknowledged) reset() error {
	if a == nil {
		return nil
	}
	if err := a.note(0); err != nil {
		return err
	}
	// Without the sync, a power failure could restore the old number, and Open
	// would report records as lost that were removed on purpose.
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return nil
}

func (a *acknowledged) close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}
