package jamnps

import (
	"encoding/binary"
	"fmt"
	"io"
)

// WriteMessage writes a message behind its length. The error wraps ErrTooLarge beyond 2^32-1 bytes, or is the writer's.
func WriteMessage(w io.Writer, message []byte) error {
	if uint64(len(message)) > 1<<32-1 {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(message))
	}
	framed := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message)))
	_, err := w.Write(append(framed, message...))
	return err
}

// ReadMessage reads a message of at most limit bytes. A stream that ends before a message gives io.EOF, one that ends within it
// io.ErrUnexpectedEOF. A forged length allocates nothing that was not sent.
func ReadMessage(r io.Reader, limit uint32) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header[:])
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, size, limit)
	}
	message, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(message) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return message, nil
}
