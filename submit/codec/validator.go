package codec

import (
	"fmt"
	"slices"
)

// ValidatorSize is the size of an encoded [Validator], in bytes.
const ValidatorSize = 32 + 32 + 144 + 128

// Validator has the public keys of a validator, as the state lists them (GP 6.8
// to 6.12). All bytes are zero for a punished validator.
type Validator struct {
	// Bandersnatch is the key for sealing blocks, and Ed25519 the key for all
	// other signatures except those of BEEFY.
	Bandersnatch, Ed25519 [32]byte
	// BLS is the key for BEEFY. Its bytes are opaque to the Gray Paper.
	BLS [144]byte
	// Metadata is opaque to the chain. JAMNP-S has the endpoint there.
	Metadata [128]byte
}

// EncodeValidators returns the encoding of validators without their number in
// front, as a set has it up to Gray Paper 0.7.2.
func EncodeValidators(validators []Validator) (raw []byte) {
	for _, v := range validators {
		for _, part := range [][]byte{v.Bandersnatch[:], v.Ed25519[:], v.BLS[:], v.Metadata[:]} {
			raw = append(raw, part...)
		}
	}
	return raw
}

// DecodeValidators is the inverse of [EncodeValidators]. The error wraps
// ErrTruncated if the last validator is not complete.
func DecodeValidators(raw []byte) ([]Validator, error) {
	if over := len(raw) % ValidatorSize; over != 0 {
		return nil, fmt.Errorf("%w: %d bytes of the last validator, want %d", ErrTruncated, over, ValidatorSize)
	}
	validators := make([]Validator, 0, len(raw)/ValidatorSize)
	for one := range slices.Chunk(raw, ValidatorSize) {
		validators = append(validators, Validator{
			Bandersnatch: [32]byte(one), Ed25519: [32]byte(one[32:]), BLS: [144]byte(one[64:]), Metadata: [128]byte(one[208:]),
		})
	}
	return validators, nil
}
