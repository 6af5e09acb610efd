package jamnps

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"math/big"
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
