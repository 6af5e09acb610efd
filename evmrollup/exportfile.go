package evmrollup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jamq/jamq/journal"
)

// exportStep is the number of bytes after which an export is synced to the disk. The
// error for a damaged file tells in which of these pieces the damage is.
const exportStep = 256 << 10

// writeExport writes an export of the records that fill passes to add.
func writeExport(path string, fill func(add func(kind byte, body []byte) error) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("evmrollup: export to %s: %w", path, fs.ErrExist)
	}
	// The records go to a temporary file, which gets its final name when it is complete
	// and durable.
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if err := part.Close(); err != nil {
		return err
	}
	if err := fillExport(part.Name(), fill); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// fillExport writes the records of an export to an empty file.
func fillExport(path string, fill func(add func(kind byte, body []byte) error) error) (err error) {
	file, err := journal.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var records [][]byte
	size := 0
	flush := func() error {
		some := records
		records, size = nil, 0
		return file.Append(some...)
	}
	err = fill(func(kind byte, body []byte) error {
		records = append(records, append([]byte{kind}, body...))
		if size += len(body); size < exportStep {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// readExport calls f with each record of an export.
func readExport(path string, f func(kind byte, body []byte) error) error {
	err := journal.Read(path, func(record []byte) error {
		if len(record) == 0 {
			return fmt.Errorf("%w: an empty record", ErrExport)
		}
		return f(record[0], record[1:])
	})
	if errors.Is(err, journal.ErrCorrupt) {
		return fmt.Errorf("%w: the piece of about %d KiB at the offset is not as it was written: %w", ErrExport, exportStep>>10, err)
	}
	return err
}

// CheckExport returns an error that wraps ErrExport if a file is not a complete export.
// It does not change the file. It does not check that the export belongs to a certain
// chain; Import does so.
func CheckExport(path string) error {
	var header exportHeader
	var last byte
	err := readExport(path, func(kind byte, body []byte) error {
		if last == 0 && kind == exportHead {
			if err := header.read(body); err != nil {
				return err
			}
		}
		last = kind
		return nil
	})
	if err == nil && (header.Version == 0 || last != exportEnd) {
		err = fmt.Errorf("%w: it is incomplete", ErrExport)
	}
	return err
}
