package proof

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// MaxValidators bounds a set: JAM's own size is 1023.
const MaxValidators = 1 << 16

// Trust is what a verifier believes before it reads a document. It comes from elsewhere: the operator of a light client, a chain
// specification, a friend; never from who made the document. As JSON it is the file that examples/verify takes.
type Trust struct {
	// Set is the number of the validator set in office.
	Set uint64 `json:"set"`
	// Validators are the set's Ed25519 keys, in the order of the set. The key of
	// a punished validator is zero. It counts in the size of the set and never
	// votes.
	Validators []ValidatorKey `json:"validators"`
	// BLS are the set's BLS12-381 keys, in the same order, for documents by way
	// of the output log. Such documents are refused if BLS is empty.
	BLS []BLSKey `json:"bls,omitempty"`
	// Service is the rollup's service on JAM.
	Service jamq.ServiceID `json:"service"`
	// KeyPrefix is where the service keeps its commitments: see [CommitmentKey].
	KeyPrefix hexutil.Bytes `json:"keyPrefix"`
	// Format is how precommits are signed. Nil is [Draft].
	Format Format `json:"-"`
}

func (t *Trust) format() Format {
	if t.Format == nil {
		return Draft{}
	}
	return t.Format
}

// Validate checks the size of the set, and that no key is there twice: its owner
// would have two votes. The key of zeros may repeat, because it has no vote.
//
// Validate accepts keys that must not vote: the chain decides which keys a set
// has, and one bad key must not make the votes of the others worthless. Such a
// key is refused if it votes: see [Finality.Verify] and [Beefy.Verify].
//
// The error wraps ErrTrust, also if t is nil.
func (t *Trust) Validate() error {
	if t == nil {
		return fmt.Errorf("%w: there is none", ErrTrust)
	}
	if n := len(t.Validators); n == 0 || n > MaxValidators {
		return fmt.Errorf("%w: %d validators, want 1 to %d", ErrTrust, n, MaxValidators)
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

// repeated returns the indexes of two equal keys that are not zero.
func repeated[K interface {
	comparable
	IsZero() bool
}](keys []K) (first, second int, found bool) {
	seen := make(map[K]int, len(keys))
	for i, key := range keys {
		if key.IsZero() {
			continue
		}
		if other, twice := seen[key]; twice {
			return other, i, true
		}
		seen[key] = i
	}
	return 0, 0, false
}

// ParseTrust reads the JSON of a Trust and validates it. Unknown fields and anything after it are refused. The error wraps ErrTrust.
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

// Fingerprint returns a hash over everything that is trusted, for people to compare by another way.
func (t *Trust) Fingerprint() (common.Hash, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return common.Hash{}, fmt.Errorf("%w: %w", ErrTrust, err)
	}
	return blake2b.Sum256(append([]byte(t.format().Name()), raw...)), nil
}
