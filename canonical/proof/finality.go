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

// Quorum returns the number of votes that a set of validators needs to make a block
// final: the smallest number above two thirds of the set. Punished validators count
// in the size of the set.
func Quorum(validators int) int { return 2*validators/3 + 1 }

// Target is a JAM block together with the state root after it, as validators vote
// for it. The state root is part of the vote because a header commits only to the
// state before its block.
type Target struct {
	// Header and Slot identify the block. StateRoot is the root of the state after the block.
	Header    jamq.HeaderHash `json:"header"`
	Slot      jamq.Slot       `json:"slot"`
	StateRoot common.Hash     `json:"stateRoot"`
}

// Precommit is the message that a validator signs to make a block final. It is the
// second vote in a round of GRANDPA.
type Precommit struct {
	// Target is the block for which the validator votes.
	Target Target `json:"target"`
	// Round is the round of GRANDPA, and Set is the number of the validator set.
	Round uint64 `json:"round"`
	Set   uint64 `json:"set"`
}

// Format defines which bytes a validator signs for a precommit. It is an interface
// because JAM has not fixed its wire format yet: [Draft] is the format of this
// library, and a host can supply a different one.
type Format interface {
	// Name identifies the format in documents, so that a verifier notices if the signatures are
	// for a different format.
	Name() string
	// Message returns the bytes that the validator signs. Different precommits must have
	// different bytes.
	Message(p Precommit) []byte
}

// Draft is the [Format] of this library for the votes of validators, modelled on GRANDPA.
// A validator signs a domain tag, the header hash, the state root, the slot, the round and
// the set, in this order. Integers are little-endian.
type Draft struct{}

// draftTag is the beginning of each message that validators sign as a vote. A signature
// that was made for another purpose can therefore not be used as a vote.
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

// Sign signs the precommit as the validator with the given index in its set.
// Validators and tests use it.
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

// Finality is one of the two ways to prove the first link: signatures of validators
// over one precommit. GRANDPA can also finalize a block by votes for one of its
// descendants. The document is then about that descendant, whose state still
// contains the service's data.
type Finality struct {
	// Format is the name of the [Format] in which the precommit was signed.
	Format string `json:"format"`
	// Precommit is the message that the validators signed.
	Precommit Precommit `json:"precommit"`
	// Signatures come from more than two thirds of the set, and are in ascending order of their
	// validators.
	Signatures []Signature `json:"signatures"`
}

// Verify checks that more than two thirds of the trusted validators signed, and
// returns the block that their votes make final. A punished validator, whose key is
// zero, counts in the size of the set but cannot sign. The whole document is
// invalid if a single signature is wrong, repeated, or from a validator that must
// not vote, so provers must leave such signatures out.
//
// The error wraps ErrTrust if the trust is not valid, and otherwise ErrFinality. It
// also wraps ErrKey if the key of a signer must not vote.
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

// errSignature is returned if a signature does not verify under its validator's key.
var errSignature = errors.New("the signature is wrong")

// verifySigners checks that the signers are distinct and more than two thirds of the
// set.
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
	// Verify the signatures last, because that is the expensive part.
	for i := range signatures {
		if err := verify(&signatures[i]); err != nil {
			return fmt.Errorf("%w: validator %d: %w", ErrFinality, signatures[i].Validator, err)
		}
	}
	return nil
}
