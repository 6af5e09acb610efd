package proof

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// maxValidators is the maximum size of a validator set. JAM's sets have 1023
// validators.
const maxValidators = 1 << 16

// Trust contains everything that a verifier assumes. It comes from the operator of
// a light client, from a chain specification, or from another trusted party, but
// never from the author of the document. Its JSON form is the file that
// examples/verify reads.
type Trust struct {
	// Set is the number of the current validator set.
	Set uint64 `json:"set"`
	// Validators are the Ed25519 keys of the set, in the order of the set. The key of a
	// punished validator is zero. Such a validator counts in the size of the set but never
	// votes.
	Validators []ValidatorKey `json:"validators"`
	// BLS are the BLS12-381 keys of the set in the same order. They are needed for documents
	// that lead through the output log; if BLS is empty, Verify refuses such documents.
	BLS []BLSKey `json:"bls,omitempty"`
	// Service is the number of the rollup's service on JAM.
	Service jamq.ServiceID `json:"service"`
	// KeyPrefix is the prefix of the keys of the commitments in the service's storage;
	// see [CommitmentKey].
	KeyPrefix hexutil.Bytes `json:"keyPrefix"`
	// GrayPaper is the version of the Gray Paper that defines how the state encodes the
	// validator sets of a [Handoff]. The default is 0.7.2.
	GrayPaper codec.Version `json:"grayPaper,omitempty"`
	// Format defines how precommits are signed. If it is nil, the format is [Draft].
	Format Format `json:"-"`
}

func (t *Trust) format() Format {
	if t.Format == nil {
		return Draft{}
	}
	return t.Format
}

// Validate checks the size of the set and that no key occurs twice, because the
// owner of such a key would have two votes. Only keys that must not vote may occur
// several times. The most common example is the key of zeros, which every punished
// validator has.
//
// Validate accepts keys that must not vote. The chain decides which keys a set has,
// and one bad key must not invalidate the votes of the others. Such a key is
// refused only when it votes; see [Finality.Verify] and [Beefy.Verify].
//
// The error wraps ErrTrust, also if t is nil.
func (t *Trust) Validate() error {
	if t == nil {
		return fmt.Errorf("%w: the trust is nil", ErrTrust)
	}
	if n := len(t.Validators); n == 0 || n > maxValidators {
		return fmt.Errorf("%w: %d validators, want 1 to %d", ErrTrust, n, maxValidators)
	}
	if n := len(t.BLS); n != 0 && n != len(t.Validators) {
		return fmt.Errorf("%w: %d BLS keys for %d validators", ErrTrust, n, len(t.Validators))
	}
	if i, j, found := repeated(t.Validators); found {
		return fmt.Errorf("%w: validators %d and %d have one key, %x", ErrTrust, i, j, t.Validators[i][:])
	}
	if i, j, found := repeated(t.BLS); found {
		return fmt.Errorf("%w: validators %d and %d have one BLS key, %x", ErrTrust, i, j, t.BLS[i][:])
	}
	return nil
}

// repeated returns the indexes of the first key that may vote and occurs twice.
func repeated[K interface {
	comparable
	IsZero() bool
	Validate() error
}](keys []K) (first, second int, found bool) {
	seen := make(map[K]int, len(keys))
	for i, key := range keys {
		if key.IsZero() {
			continue
		}
		other, twice := seen[key]
		if twice && key.Validate() == nil {
			return other, i, true
		}
		seen[key] = i
	}
	return 0, 0, false
}

// ParseTrust decodes the JSON form of a Trust and validates the result. It refuses
// unknown fields and data after the value. The error wraps ErrTrust.
func ParseTrust(data []byte) (*Trust, error) {
	t := new(Trust)
	if err := decodeStrictly(data, t); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrust, err)
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

// Fingerprint returns a hash over the whole trust. Two people who compare their
// fingerprints over another channel know whether they trust the same keys. The
// error wraps ErrTrust if the trust cannot be encoded.
func (t *Trust) Fingerprint() (common.Hash, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return common.Hash{}, fmt.Errorf("%w: %w", ErrTrust, err)
	}
	return blake2b.Sum256(append([]byte(t.format().Name()), raw...)), nil
}
