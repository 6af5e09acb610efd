// Package jamnps holds the pure parts of JAMNP-S, JAM's network protocol over QUIC: names of peers, protocol identifiers, the kinds of
// streams and the framing of messages. The connection itself is not here yet; it will bring quic-go, which is why this is a module of
// its own: importing the rest of jamq must not move a host's version of it.
package jamnps

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
)

var (
	// ErrKey: a public key of the wrong length.
	ErrKey = errors.New("jamnps: invalid key")
	// ErrTooLarge: a message is longer than allowed.
	ErrTooLarge = errors.New("jamnps: message too large")
)

// alphabet is that of alternative names.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// nameDigits is how many digits of 5 bits a key of 256 bits takes.
const nameDigits = 52

// AlternativeName returns the name that a peer's certificate carries: "e" and the key as a little-endian number, 5 bits a digit, the least
// significant first. The error wraps ErrKey.
func AlternativeName(key ed25519.PublicKey) (string, error) {
	if len(key) != ed25519.PublicKeySize {
		return "", fmt.Errorf("%w: %d bytes, want %d", ErrKey, len(key), ed25519.PublicKeySize)
	}
	bigEndian := make([]byte, len(key))
	for i, b := range key {
		bigEndian[len(key)-1-i] = b
	}
	n := new(big.Int).SetBytes(bigEndian)
	name := make([]byte, 0, 1+nameDigits)
	name = append(name, 'e')
	digit := new(big.Int)
	for range nameDigits {
		digit.And(n, big.NewInt(int64(len(alphabet)-1)))
		name = append(name, alphabet[digit.Int64()])
		n.Rsh(n, 5)
	}
	return string(name), nil
}

// ALPN returns the protocol identifier of a chain, for builders or for everybody else.
func ALPN(genesis [32]byte, builder bool) string {
	const nibbles = 8
	id := "jamnp-s/0/" + hex.EncodeToString(genesis[:])[:nibbles]
	if builder {
		id += "/builder"
	}
	return id
}

// StreamKind is the first byte of a stream.
type StreamKind byte

// The kinds that a builder uses.
const (
	BlockAnnouncement     StreamKind = 0
	BlockRequest          StreamKind = 128
	StateRequest          StreamKind = 129
	WorkPackageSubmission StreamKind = 133
	BundleSubmission      StreamKind = 146
	BundleRequest         StreamKind = 147
	SegmentRequest        StreamKind = 148
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
