package proof

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq"
)

// Quorum returns the smallest number of validators that is more than two thirds
// of a set. Punished validators count in the set.
func Quorum(validators int) int { return 2*validators/3 + 1 }

// Target is a JAM block with its posterior state root, as finality votes name
// it. The header alone commits only to the state before the block.
type Target struct {
	// Header and Slot identify the block. StateRoot is its posterior state
	// root.
	Header    jamq.HeaderHash `json:"header"`
	Slot      jamq.Slot       `json:"slot"`
	StateRoot common.Hash     `json:"stateRoot"`
}

// Precommit is the message that a validator signs to make a block final: the
// second vote of GRANDPA.
type Precommit struct {
	// Target is the block that is voted for.
	Target Target `json:"target"`
	// Round is the round of GRANDPA, and Set the number of the validator set.
	Round uint64 `json:"round"`
	Set   uint64 `json:"set"`
}

// Format defines how a network encodes a precommit for signing. JAM has not
// fixed its wire format. [Draft] is the format of this library, and a host can
// supply a different one.
type Format interface {
	// Name identifies the format in documents.
	Name() string
	// Message returns the bytes that are signed. It must return different bytes
	// for different precommits.
	Message(p Precommit) []byte
}

// Draft is the format of this library, modelled on GRANDPA: a domain tag, the
// target (header hash, posterior state root), slot, round and set. Integers are
// little-endian.
type Draft struct{}

// draftTag separates these signatures from all others of a validator's key.
const draftTag = "jam_finality_precommit"

// Name returns "jam-grandpa-draft-1".
func (Draft) Name() string { return "jam-grandpa-draft-1" }

// Message returns the bytes that a validator signs for p.
func (Draft) Message(p Precommit) []byte {
	out := append([]byte(draftTag), p.Target.Header[:]...)
	out = append(out, p.Target.StateRoot[:]...)
	out = binary.LittleEndian.AppendUint32(out, uint32(p.Target.Slot))
	out = binary.LittleEndian.AppendUint64(out, p.Round)
	return binary.LittleEndian.AppendUint64(out, p.Set)
}

// Sign returns the signature of the validator with this index in the set, for
// validators and tests.
func (p Precommit) Sign(f Format, validator uint16, key ed25519.PrivateKey) Signature {
	return Signature{Validator: validator, Signature: ed25519.Sign(key, f.Message(p))}
}

// Signature is the signature of one validator.
type Signature struct {
	// Validator is the index of the validator in the set.
	Validator uint16 `json:"validator"`
	// Signature has 64 bytes (Ed25519) or 48 bytes (BLS12-381).
	Signature hexutil.Bytes `json:"signature"`
}

// Finality is the first link: signatures of validators over one precommit. If
// GRANDPA finalized a block by votes for a later one, the document is about the
// later block, whose state still contains the service's data.
type Finality struct {
	// Format is the name of the [Format] that was signed.
	Format string `json:"format"`
	// Precommit is the message that was signed.
	Precommit Precommit `json:"precommit"`
	// Signatures are ascending by validator, from more than two thirds of the
	// set.
	Signatures []Signature `json:"signatures"`
}

// Verify checks that more than two thirds of the trusted validators signed, and
// returns the block that their votes make final. A validator whose key is zero
// counts in the set and cannot sign. One signature that is wrong, repeated, or
// from a validator that must not vote makes the document invalid. Provers must
// omit such signatures.
//
// The error wraps ErrFinality, or ErrTrust if the trust is not valid. It also
// wraps ErrKey if a signer's key must not vote.
func (f *Finality) Verify(trust *Trust) (Target, error) {
	if err := trust.Validate(); err != nil {
		return Target{}, err
	}
	p := f.Precommit
	switch {
	case f.Format != trust.format().Name():
		return Target{}, fmt.Errorf("%w: votes of format %.40q, want %q", ErrFinality, f.Format, trust.format().Name())
	case p.Set != trust.Set:
		return Target{}, fmt.Errorf("%w: votes of validator set %d, trusted is %d", ErrFinality, p.Set, trust.Set)
	}
	message := trust.format().Message(p)
	err := verifySigners(f.Signatures, len(trust.Validators), func(s *Signature) error {
		key := trust.Validators[s.Validator]
		if err := key.Validate(); err != nil {
			return err
		}
		if !ed25519.Verify(key[:], message, s.Signature) {
			return errSignature
		}
		return nil
	})
	if err != nil {
		return Target{}, err
	}
	return p.Target, nil
}

// errSignature is returned for a signature that does not verify.
var errSignature = errors.New("the signature is wrong")

// verifySigners checks that the signers are distinct members of the set and
// more than two thirds of it, and that verify accepts each signature. It counts
// first, because verify is expensive.
func verifySigners(signatures []Signature, validators int, verify func(*Signature) error) error {
	last := -1
	for i := range signatures {
		v := int(signatures[i].Validator)
		if v >= validators {
			return fmt.Errorf("%w: signer %d is not in the set of %d", ErrFinality, v, validators)
		}
		if v <= last {
			return fmt.Errorf("%w: signer %d after %d, want ascending and distinct", ErrFinality, v, last)
		}
		last = v
	}
	if want := Quorum(validators); len(signatures) < want {
		return fmt.Errorf("%w: %d of %d validators signed, want at least %d", ErrFinality, len(signatures), validators, want)
	}
	for i := range signatures {
		if err := verify(&signatures[i]); err != nil {
			return fmt.Errorf("%w: validator %d: %w", ErrFinality, signatures[i].Validator, err)
		}
	}
	return nil
}
