package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A frame is the data that one call of Append writes: a header and the records, with
// the length of each record in 4 bytes before it. The header contains the length of the
// rest of the frame in 8 bytes, a checksum of that length and of the frame's offset in
// the file, and a checksum of the rest. All numbers are little-endian.
const (
	sumAt      = 8
	bodySumAt  = 12
	headerSize = 16
	lengthSize = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// headerSum returns the checksum of a header.
func headerSum(place int64, length []byte) uint32 {
	// The checksum also covers the position in the file. Zeros that a file system leaves after
	// a crash, or bytes inside a record, therefore never look like a header.
	return crc32.Update(crc32.Checksum(binary.LittleEndian.AppendUint64(nil, uint64(place)), castagnoli), castagnoli, length)
}

// frame returns the frame for records at an offset of the file.
func frame(place int64, records [][]byte) []byte {
	b := make([]byte, headerSize)
	for _, r := range records {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(r))), r...)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-headerSize))
	binary.LittleEndian.PutUint32(b[sumAt:], headerSum(place, b[:sumAt]))
	binary.LittleEndian.PutUint32(b[bodySumAt:], crc32.Checksum(b[headerSize:], castagnoli))
	return b
}

// isHeader reports whether b begins with the valid header of a frame at place.
func isHeader(b []byte, place int64) bool {
	return headerSum(place, b[:sumAt]) == binary.LittleEndian.Uint32(b[sumAt:])
}

// scan calls f with the records of all complete frames at the beginning of the file. It
// returns the offset after these frames; whatever follows is damaged or incomplete.
func scan(file io.ReaderAt, end int64, f func(record []byte) error) (whole int64, err error) {
	for {
		body, err := readFrame(file, whole, end)
		if err != nil || body == nil {
			return whole, err
		}
		whole += headerSize + int64(len(body))
		for len(body) > 0 {
			size := lengthSize + int(binary.LittleEndian.Uint32(body))
			if err := f(body[lengthSize:size:size]); err != nil {
				return whole, err
			}
			body = body[size:]
		}
	}
}

// readFrame returns the body of a frame, or nil if it is incomplete or damaged.
func readFrame(file io.ReaderAt, place, end int64) ([]byte, error) {
	var header [headerSize]byte
	if end-place < headerSize {
		return nil, nil
	}
	if _, err := file.ReadAt(header[:], place); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(header[:])
	if !isHeader(header[:], place) || size > uint64(end-place-headerSize) {
		return nil, nil
	}
	body := make([]byte, size)
	if _, err := file.ReadAt(body, place+headerSize); err != nil && !(errors.Is(err, io.EOF) && size == 0) {
		return nil, err
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(header[bodySumAt:]) || !holdsRecords(body) {
		return nil, nil
	}
	return body, nil
}

// holdsRecords reports whether body consists only of records, each after its
// length.
func holdsRecords(body []byte) bool {
	for len(body) > 0 {
		if len(body) < lengthSize || uint64(binary.LittleEndian.Uint32(body)) > uint64(len(body)-lengthSize) {
			return false
		}
		body = body[lengthSize+int(binary.LittleEndian.Uint32(body)):]
	}
	return true
}

// goesOn reports whether a complete header follows somewhere after an incomplete frame.
func goesOn(file io.ReaderAt, broken, end int64) (bool, error) {
	place := broken + 1
	in := bufio.NewReader(io.NewSectionReader(file, place, end-place))
	for ; ; place++ {
		switch next, err := in.Peek(headerSize); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case isHeader(next, place):
			// A complete frame follows. It was written only after this one was on disk, so this
			// one was damaged later and is not the rest of an interrupted write.
			return true, nil
		}
		if _, err := in.Discard(1); err != nil {
			return false, err
		}
	}
}
