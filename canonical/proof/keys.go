package proof

import (
	"fmt"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/jamq/jamq/internal/smallorder"
)

// ValidatorKey is the Ed25519 public key of a validator. JAM replaces the key of a
// punished validator by zeros. That validator keeps its position in the set but has
// no vote; see [ValidatorKey.Validate].
type ValidatorKey [32]byte

// BLSKey is the BLS12-381 public key of a validator: a compressed point of G2. JAM
// replaces the keys of a punished validator by zeros.
type BLSKey [bls.SizeOfG2AffineCompressed]byte

// IsZero reports whether all bytes of the key are zero.
func (k ValidatorKey) IsZero() bool { return k == ValidatorKey{} }

// Validate returns an error that wraps [ErrKey] if a signature by the key proves
// nothing, because anyone can forge it without a secret. This is the case for the
// key of zeros and for all other points of small order. Validate does not check
// that the key is a point of the curve, because no signature verifies under a key
// that is not a point.
func (k ValidatorKey) Validate() error {
	if k.IsZero() {
		return fmt.Errorf("%w: the Ed25519 key is all zeros, want the key of a validator that is not punished", ErrKey)
	}
	if smallorder.Has(k) {
		return fmt.Errorf("%w: the Ed25519 key %x is a point of small order, want one of large order", ErrKey, k[:])
	}
	return nil
}

// IsZero reports whether all bytes of the key are zero.
func (k BLSKey) IsZero() bool { return k == BLSKey{} }

// Validate returns an error that wraps [ErrKey] if the key must not vote:
//
//   - because it is all zeros, the key of a punished validator
//   - because it is not the compressed form of a point of G2
//   - because it is the point at infinity, whose signatures anyone can forge
func (k BLSKey) Validate() error {
	_, err := k.point()
	return err
}

// point decodes and validates the key.
func (k BLSKey) point() (key bls.G2Affine, err error) {
	if k.IsZero() {
		return key, fmt.Errorf("%w: the BLS key is all zeros, want the key of a validator that is not punished", ErrKey)
	}
	n, err := key.SetBytes(k[:])
	switch {
	case err != nil:
		return key, fmt.Errorf("%w: the BLS key %x is not a point of G2: %w", ErrKey, k[:], err)
	// SetBytes also accepts the longer, uncompressed form.
	case n != len(k):
		return key, fmt.Errorf("%w: the BLS key %x has %d bytes, want %d", ErrKey, k[:], n, len(k))
	case key.IsInfinity():
		return key, fmt.Errorf("%w: the BLS key %x is the point at infinity, want another", ErrKey, k[:])
	}
	return key, nil
}
