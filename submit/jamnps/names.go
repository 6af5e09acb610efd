package jamnps

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// alphabet contains the 32 digits of names in certificates, in ascending order of
// value.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// nameDigits is the number of digits in a name: a key has 256 bits, and each digit
// stands for 5 of them.
const nameDigits = 52

// alternativeName returns the name that a peer's certificate must have: the letter e
// and then the peer's key. The key is read as a little-endian number and written in
// digits of 5 bits, beginning with the least significant digit. The error wraps ErrKey.
func alternativeName(key ed25519.PublicKey) (string, error) {
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

// keyOfName returns the key whose alternativeName is name. The error wraps ErrMalformed.
func keyOfName(name string) (ed25519.PublicKey, error) {
	if len(name) != 1+nameDigits || name[0] != 'e' {
		return nil, fmt.Errorf("%w: node name %.80q, want e and %d digits", ErrMalformed, name, nameDigits)
	}
	n := new(big.Int)
	for i := nameDigits; i > 0; i-- { // the most significant digit is the last
		digit := strings.IndexByte(alphabet, name[i])
		if digit < 0 {
			return nil, fmt.Errorf("%w: node name %.80q has the digit %q", ErrMalformed, name, name[i])
		}
		n.Lsh(n, 5).Or(n, big.NewInt(int64(digit)))
	}
	if n.BitLen() > 8*ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: node name %.80q is no key", ErrMalformed, name)
	}
	key := n.FillBytes(make([]byte, ed25519.PublicKeySize))
	slices.Reverse(key)
	return key, nil
}

// alpn returns the protocol name on which the two sides of a connection agree in the
// TLS handshake. The name contains the beginning of the chain's genesis hash, so that
// nodes of different chains do not connect. If builder is true, the name is for
// builders instead of validators.
func alpn(genesis [32]byte, builder bool) string {
	const nibbles = 8
	id := "jamnp-s/0/" + hex.EncodeToString(genesis[:])[:nibbles]
	if builder {
		id += "/builder"
	}
	return id
}

// streamKind is the first byte on a stream, which tells the peer which request or
// announcement follows.
type streamKind byte

// The stream kinds of JAMNP-S that a builder uses.
const (
	// blockAnnouncement is UP 0, the announcement of blocks.
	blockAnnouncement streamKind = 0
	// blockRequest is CE 128, a request for blocks.
	blockRequest streamKind = 128
	// stateRequest is CE 129, a request for state.
	stateRequest streamKind = 129
	// justificationRequest is CE 130, a request for the proof that a block is final.
	justificationRequest streamKind = 130
	// workPackageSubmission is CE 133, the submission of a work package.
	workPackageSubmission streamKind = 133
	// bundleSubmission is CE 146, the submission of a bundle.
	bundleSubmission streamKind = 146
)
