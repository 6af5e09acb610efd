package jamq

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// HeaderHash identifies a JAM block. It is the BLAKE2b-256 hash of the encoded header
// (Gray Paper 5.1). It is a separate type so that the compiler rejects a package hash
// in its place.
type HeaderHash common.Hash

// PackageHash identifies a work package. It is the BLAKE2b-256 hash of the encoded
// package (Gray Paper 14.1). Equal packages have equal hashes, and a change of any byte
// makes a different package.
type PackageHash common.Hash

// String returns the hash as 0x followed by 64 hexadecimal digits.
func (h HeaderHash) String() string { return common.Hash(h).Hex() }

// String returns the hash as 0x followed by 64 hexadecimal digits.
func (h PackageHash) String() string { return common.Hash(h).Hex() }

// Format implements fmt.Formatter like common.Hash: %x prints 64 hexadecimal digits,
// and %v prints 0x before them. Without this method, %x would print the text of String
// in hexadecimal.
func (h HeaderHash) Format(s fmt.State, verb rune) { common.Hash(h).Format(s, verb) }

// Format implements fmt.Formatter like common.Hash: %x prints 64 hexadecimal digits,
// and %v prints 0x before them. Without this method, %x would print the text of String
// in hexadecimal.
func (h PackageHash) Format(s fmt.State, verb rune) { common.Hash(h).Format(s, verb) }

// Short returns the first four bytes as eight hexadecimal digits, for logs and
// tables.
func (h HeaderHash) Short() string { return hex.EncodeToString(h[:4]) }

// Short returns the first four bytes as eight hexadecimal digits, for logs and tables.
func (h PackageHash) Short() string { return hex.EncodeToString(h[:4]) }

// IsZero reports whether the hash is all zeros, which means "none".
func (h HeaderHash) IsZero() bool { return h == HeaderHash{} }

// IsZero reports whether the hash is all zeros, which means "none".
func (h PackageHash) IsZero() bool { return h == PackageHash{} }

// Compare compares the hashes as byte strings and returns -1, 0 or 1. A refine context
// encodes its prerequisites in this order (Gray Paper C.24).
func (h PackageHash) Compare(other PackageHash) int { return bytes.Compare(h[:], other[:]) }

// MarshalText returns the hash as 0x followed by 64 hexadecimal digits. The
// error is always nil.
func (h HeaderHash) MarshalText() ([]byte, error) { return common.Hash(h).MarshalText() }

// MarshalText returns the hash as 0x followed by 64 hexadecimal digits. The
// error is always nil.
func (h PackageHash) MarshalText() ([]byte, error) { return common.Hash(h).MarshalText() }

// UnmarshalText sets the hash from a text of 0x and 64 hexadecimal digits. For any
// other text, it returns an error and does not change the hash.
func (h *HeaderHash) UnmarshalText(text []byte) error {
	return unmarshalHash((*common.Hash)(h), "header hash", text)
}

// UnmarshalText sets the hash from a text of 0x and 64 hexadecimal digits. For any
// other text, it returns an error and does not change the hash.
func (h *PackageHash) UnmarshalText(text []byte) error {
	return unmarshalHash((*common.Hash)(h), "package hash", text)
}

func unmarshalHash(into *common.Hash, what string, text []byte) error {
	var h common.Hash
	if err := h.UnmarshalText(text); err != nil {
		return fmt.Errorf("jamq: %s: want 0x and 64 hexadecimal digits: %w", what, err)
	}
	*into = h
	return nil
}
