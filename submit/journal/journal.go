package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

var (
	// ErrTooLarge: a record is longer than MaxRecord.
	ErrTooLarge = errors.New("journal: record too large")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal: closed")
	// ErrFailed: an earlier write failed, or what was written cannot be read back. Open the journal again.
	ErrFailed = errors.New("journal: failed before")
)

// MaxRecord bounds a record, in bytes.
const MaxRecord = 1 << 28

// Journal keeps records in order. Its methods are safe for concurrent use.
type Journal interface {
	// Append adds records, all or none of which survive a crash before it returns; after it all do. A refused call adds none.
	Append(records ...[]byte) error
	// Replay calls f with each record in the order of their appending, those that were there when it began. The record is only valid
	// during the call. An error of f ends it and is returned. f runs under no lock and may append.
	Replay(f func(record []byte) error) error
	// Close ends the journal. Closing again does nothing.
	Close() error
}

// headerSize is a record's length and its checksum, 4 bytes each, little-endian.
const headerSize = 8

// moreFollow is set in the length of a record that was appended together with the next one: both count or neither.
const moreFollow = 1 << 31

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the length too. Otherwise the zeros that some file systems leave after a crash would pass for empty records.
func checksum(length [4]byte, record []byte) uint32 {
	return crc32.Update(crc32.Checksum(length[:], castagnoli), castagnoli, record)
}

// frame appends a record with its header.
func frame(buf, record []byte, more bool) []byte {
	size := uint32(len(record))
	if more {
		size |= moreFollow
	}
	var length [4]byte
	binary.LittleEndian.PutUint32(length[:], size)
	buf = append(buf, length[:]...)
	buf = binary.LittleEndian.AppendUint32(buf, checksum(length, record))
	return append(buf, record...)
}

// scan calls f with each record of r that is whole, as are all that were appended with it, and returns how many bytes they take.
// What follows is a torn tail.
func scan(r io.Reader, f func(record []byte) error) (whole int64, err error) {
	in := bufio.NewReader(r)
	var batch [][]byte
	var size int64 // of the batch
	for {
		record, more, err := scanRecord(in)
		if err != nil || record == nil {
			return whole, err
		}
		batch, size = append(batch, record), size+headerSize+int64(len(record))
		if more {
			continue
		}
		for _, record := range batch {
			if err := f(record); err != nil {
				return whole, err
			}
		}
		batch, whole, size = batch[:0], whole+size, 0
	}
}

// scanRecord reads one record and whether another one belongs to it. The record is nil where none is whole.
func scanRecord(in io.Reader) (record []byte, more bool, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return nil, false, notTorn(err)
	}
	length := [4]byte(header[:4])
	size := binary.LittleEndian.Uint32(length[:])
	more, size = size&moreFollow != 0, size&^moreFollow
	if size > MaxRecord {
		return nil, false, nil
	}
	var data bytes.Buffer
	if _, err := io.CopyN(&data, in, int64(size)); err != nil { // grows as it reads: a torn length costs nothing
		return nil, false, notTorn(err)
	}
	record = append([]byte{}, data.Bytes()...)
	if checksum(length, record) != binary.LittleEndian.Uint32(header[4:]) {
		return nil, false, nil
	}
	return record, more, nil
}

// notTorn returns nil for the end of the data, be it in the middle of a record.
func notTorn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// File is a journal in a file. One process may have it open.
type File struct {
	mu     sync.Mutex
	file   *os.File
	size   int64
	cut    int64
	failed bool
}

// Open opens the journal in a file, or makes an empty one. A torn tail is cut off.
func Open(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &File{file: file}
	if err := j.repair(path); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), file.Close())
	}
	return j, nil
}

// repair cuts a torn tail off and makes the file's name durable.
func (j *File) repair(path string) error {
	end, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if j.size, err = scan(io.NewSectionReader(j.file, 0, end), func([]byte) error { return nil }); err != nil {
		return err
	}
	j.cut = end - j.size
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Cut returns how many bytes of a torn tail Open cut off.
func (j *File) Cut() int64 { return j.cut }

// Append implements Journal. Errors wrap ErrTooLarge, ErrClosed or ErrFailed, or are the file's; after one of those the journal must be
// opened again.
func (j *File) Append(records ...[]byte) error {
	var buf []byte
	for i, r := range records {
		if len(r) > MaxRecord {
			return fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(r), MaxRecord)
		}
		buf = frame(buf, r, i < len(records)-1)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.file == nil:
		return ErrClosed
	case j.failed:
		return ErrFailed
	}
	if _, err := j.file.WriteAt(buf, j.size); err != nil {
		j.failed = true
		return fmt.Errorf("journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		j.failed = true // after a failed sync the kernel may have dropped the pages
		return fmt.Errorf("journal: %w", err)
	}
	j.size += int64(len(buf))
	return nil
}

// Replay implements Journal. A Close meanwhile ends it with the file's error.
func (j *File) Replay(f func(record []byte) error) error {
	j.mu.Lock()
	file, size := j.file, j.size
	j.mu.Unlock()
	if file == nil {
		return ErrClosed
	}
	whole, err := scan(io.NewSectionReader(file, 0, size), f)
	if err == nil && whole != size {
		err = fmt.Errorf("%w: %d of %d bytes can be read back", ErrFailed, whole, size)
	}
	return err
}

// Close implements Journal.
func (j *File) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// Memory is a journal that lives as long as the process. The zero value is empty and ready.
type Memory struct {
	mu      sync.Mutex
	records [][]byte
	closed  bool
}

// Append implements Journal. Errors wrap ErrTooLarge or ErrClosed.
func (m *Memory) Append(records ...[]byte) error {
	for _, r := range records {
		if len(r) > MaxRecord {
			return fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(r), MaxRecord)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
	}
	return nil
}

// Replay implements Journal.
func (m *Memory) Replay(f func(record []byte) error) error {
	m.mu.Lock()
	records, closed := m.records, m.closed // records are only ever added
	m.mu.Unlock()
	if closed {
		return ErrClosed
	}
	for _, r := range records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Journal.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
