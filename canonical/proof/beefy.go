package proof

import (
	"fmt"
	"math/big"
	"slices"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/ethereum/go-ethereum/common"
)

// Beefy proves that a state of the accumulation-output log is final. This log has one entry
// for each JAM block, computed from the hashes that services yielded in the block, and its
// super-peak is a hash over the whole log. Beefy contains signatures of validators over the
// super-peak, which JAM publishes for bridges. It is the alternative to [Finality] as the
// first link of a document. The signed message does not name a validator set, so the
// verifier's trusted keys decide who may sign.
//
// Each signature is verified by itself instead of as an aggregate, because the
// safety of an aggregate would depend on proofs of possession, which JAM does not
// publish.
type Beefy struct {
	// Peak is the super-peak that the validators signed; see [Log.SuperPeak].
	Peak common.Hash `json:"peak"`
	// Signatures are compressed points of G1. They come from more than two thirds of the set
	// and are in ascending order of their validators.
	Signatures []Signature `json:"signatures"`
}

// beefyTag precedes the super-peak in the signed message, so that the signature cannot be
// used for another purpose. beefySuite defines how the message is mapped to a point of
// the curve: with the basic scheme of the IETF's draft-irtf-cfrg-bls-signature, with
// signatures in G1.
const (
	beefyTag   = "jam_beefy"
	beefySuite = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
)

func beefyPoint(peak common.Hash) (bls.G1Affine, error) {
	return bls.HashToG1(append([]byte(beefyTag), peak[:]...), []byte(beefySuite))
}

// Verify checks that more than two thirds of the trusted validators signed the
// super-peak. A punished validator, whose key is zero, counts in the size of the
// set but cannot sign.
//
// The error wraps:
//
//   - ErrTrust if the trust is not valid
//   - ErrFinality if a signature is missing or wrong, or if no BLS keys are trusted
//   - ErrKey, in addition to ErrFinality, if the key of a signer must not vote
func (b *Beefy) Verify(trust *Trust) error {
	if err := trust.Validate(); err != nil {
		return err
	}
	if len(trust.BLS) == 0 {
		return fmt.Errorf("%w: the document has signatures over the output log, but no BLS keys are trusted", ErrFinality)
	}
	point, err := beefyPoint(b.Peak)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFinality, err)
	}
	return verifySigners(b.Signatures, len(trust.BLS), func(s *Signature) error {
		return verifyPeak(point, trust.BLS[s.Validator], s.Signature)
	})
}

// verifyPeak checks the signature of one validator over a super-peak.
func verifyPeak(peak bls.G1Affine, validator BLSKey, signature []byte) error {
	key, err := validator.point()
	if err != nil {
		return err
	}
	var sig bls.G1Affine
	// SetBytes also accepts the uncompressed form, which is longer.
	if n, err := sig.SetBytes(signature); err != nil || n != len(signature) || n != bls.SizeOfG1AffineCompressed {
		return errSignature
	}
	_, _, _, generator := bls.Generators()
	generator.Neg(&generator)
	ok, err := bls.PairingCheck([]bls.G1Affine{peak, sig}, []bls.G2Affine{key, generator})
	if err != nil || !ok {
		return errSignature
	}
	return nil
}

// BLSSecret is the BLS12-381 secret key of a validator. Validators and tests use it
// to sign. Its operations do not run in constant time, so their duration can reveal
// the key to an observer on the same machine.
type BLSSecret struct{ scalar *big.Int }

// NewBLSSecret derives a secret key from a seed of at least 32 random bytes. The
// error wraps ErrInput if the seed is shorter, or if the key would be zero.
func NewBLSSecret(seed []byte) (BLSSecret, error) {
	scalar := new(big.Int).Mod(new(big.Int).SetBytes(seed), fr.Modulus())
	if len(seed) < 32 || scalar.Sign() == 0 {
		return BLSSecret{}, fmt.Errorf("%w: a BLS seed of %d bytes, want at least 32 and not all zero", ErrInput, len(seed))
	}
	return BLSSecret{scalar}, nil
}

// Public returns the public key of the secret.
func (s BLSSecret) Public() BLSKey {
	var key bls.G2Affine
	key.ScalarMultiplicationBase(s.scalar)
	return key.Bytes()
}

// SignPeak signs a super-peak as the validator with the given index in its set. The
// error wraps ErrInput if the super-peak cannot be mapped to a point.
func (s BLSSecret) SignPeak(peak common.Hash, validator uint16) (Signature, error) {
	point, err := beefyPoint(peak)
	if err != nil {
		return Signature{}, fmt.Errorf("%w: %w", ErrInput, err)
	}
	point.ScalarMultiplication(&point, s.scalar)
	raw := point.Bytes()
	return Signature{Validator: validator, Signature: slices.Clone(raw[:])}, nil
}
