package jamnps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// writeMessage writes the length of a message in 4 bytes, little-endian, and the
// message.
func writeMessage(w io.Writer, message []byte) error {
	if uint64(len(message)) > 1<<32-1 {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(message))
	}
	framed := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message)))
	_, err := w.Write(append(framed, message...))
	return err
}

// readMessage reads a message in the format of writeMessage, of at most limit bytes.
func readMessage(r io.Reader, limit uint32) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header[:])
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, size, limit)
	}
	// A peer can forge the length, so the buffer begins small and grows only while
	// bytes arrive.
	message := make([]byte, 0, min(size, max(64<<10, size/64+1)))
	for {
		n, err := io.ReadFull(r, message[len(message):cap(message)])
		message = message[:len(message)+n]
		switch {
		case errors.Is(err, io.EOF):
			// The stream has ended within the message. At its beginning, io.EOF is
			// returned.
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(message) == int(size):
			return message, nil
		}
		grown := make([]byte, len(message), min(uint64(size), 4*uint64(len(message))))
		copy(grown, message)
		message = grown
	}
}
