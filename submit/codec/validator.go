package codec

import (
	"fmt"
	"slices"
)

// ValidatorSize is the size of an encoded [Validator], in bytes.
const ValidatorSize = 32 + 32 + 144 + 128

// Validator contains the public keys and the metadata of a validator, as the JAM
// state lists them (GP 6.8 to 6.12). All bytes are zero for a punished validator.
type Validator struct {
	// Bandersnatch is the validator's key for sealing blocks. Ed25519 is the key for all other
	// signatures except those of BEEFY.
	Bandersnatch, Ed25519 [32]byte
	// BLS is the key for signatures of BEEFY. The Gray Paper does not define the meaning of its
	// bytes.
	BLS [144]byte
	// Metadata has no meaning for the chain. JAMNP-S stores the validator's network address there.
	Metadata [128]byte
}

// EncodeValidators returns the concatenated encodings of the validators, without a
// count in front. Up to Gray Paper 0.7.2, the state encodes a set in this way.
// From 0.8.0 on, the number of validators comes first, encoded by [AppendNatural].
func EncodeValidators(validators []Validator) (raw []byte) {
	for _, v := range validators {
		for _, part := range [][]byte{v.Bandersnatch[:], v.Ed25519[:], v.BLS[:], v.Metadata[:]} {
			raw = append(raw, part...)
		}
	}
	return raw
}

// DecodeValidators decodes the result of [EncodeValidators]. The error wraps ErrTruncated if the
// last validator is not complete.
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
