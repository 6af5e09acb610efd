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

// Quorum returns how many validators of a set are more than two thirds of it.
// Exactly two thirds are too few. Punished validators count in the set.
func Quorum(validators int) int { return 2*validators/3 + 1 }

// Target is a JAM block with the state after it, as finality votes name it: the header commits only to the state before it.
type Target struct {
	// Header and Slot are the block's, StateRoot is its posterior state root.
	Header    jamq.HeaderHash `json:"header"`
	Slot      jamq.Slot       `json:"slot"`
	StateRoot common.Hash     `json:"stateRoot"`
}

// Precommit is what a validator signs to make a block final: GRANDPA's second vote.
type Precommit struct {
	// Target is the block.
	Target Target `json:"target"`
	// Round is GRANDPA's round, Set the number of the validator set.
	Round uint64 `json:"round"`
	Set   uint64 `json:"set"`
}

// Format is how a network encodes a precommit for signing. JAM's wire format is not decided: [Draft] is this library's, and a host brings
// another where its network has another.
type Format interface {
	// Name tells formats apart in documents.
	Name() string
	// Message returns the bytes that are signed. Different precommits must have different ones.
	Message(p Precommit) []byte
}

// Draft is the format of this library, after GRANDPA: a domain tag, the target (header hash, posterior state root), slot, round
// and set, all integers little-endian.
type Draft struct{}

// draftTag keeps these signatures apart from everything else that a validator's key signs.
const draftTag = "jam_finality_precommit"

// Name implements Format.
func (Draft) Name() string { return "jam-grandpa-draft-1" }

// Message implements Format.
func (Draft) Message(p Precommit) []byte {
	out := append([]byte(draftTag), p.Target.Header[:]...)
	out = append(out, p.Target.StateRoot[:]...)
	out = binary.LittleEndian.AppendUint32(out, uint32(p.Target.Slot))
	out = binary.LittleEndian.AppendUint64(out, p.Round)
	return binary.LittleEndian.AppendUint64(out, p.Set)
}

// Sign returns the signature of the validator at an index of the set, for validators and tests.
func (p Precommit) Sign(f Format, validator uint16, key ed25519.PrivateKey) Signature {
	return Signature{Validator: validator, Signature: ed25519.Sign(key, f.Message(p))}
}

// Signature is one validator's.
type Signature struct {
	// Validator is the index in the set.
	Validator uint16 `json:"validator"`
	// Signature is Ed25519's, of 64 bytes, or BLS12-381's, of 48.
	Signature hexutil.Bytes `json:"signature"`
}

// Finality is the first link: signatures of validators over one precommit. Where GRANDPA finalizes a block by votes for a later one, the
// document is about the later one: what a service has stored is still there.
type Finality struct {
	// Format is the name of the format that was signed.
	Format string `json:"format"`
	// Precommit is what they signed.
	Precommit Precommit `json:"precommit"`
	// Signatures ascend by validator; more than two thirds of the set.
	Signatures []Signature `json:"signatures"`
}

// Verify checks that more than two thirds of the trusted validators signed, and
// returns the block that they made final. A validator whose key is zero counts
// in the set and cannot sign. One signature that is wrong, repeated, or of a
// validator that must not vote makes the whole document invalid: an honest
// prover leaves it out.
//
// Errors wrap ErrFinality, or ErrTrust if the trust is not valid. They also
// wrap ErrKey if a signer's key must not vote.
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

// errSignature is the verdict on a signature that does not verify.
var errSignature = errors.New("the signature is wrong")

// verifySigners checks that the signers are distinct members of the set, that
// they are enough, and that verify accepts each signature. It counts before it
// calls verify, which is expensive.
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
