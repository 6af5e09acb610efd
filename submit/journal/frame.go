package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

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

// frames returns records that belong together, with their headers.
func frames(records [][]byte) []byte {
	var buf []byte
	for i, r := range records {
		buf = frame(buf, r, i < len(records)-1)
	}
	return buf
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
