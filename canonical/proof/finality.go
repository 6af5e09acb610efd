package proof

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq"
)

// Quorum returns how many of a set of validators are more than two thirds of it, and so decide. Exactly two thirds do not.
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

// Verify checks that more than two thirds of the trusted validators signed, and returns what they made final. One signature that is wrong,
// twice there, or of a stranger spoils all: an honest prover has no use for it. Errors wrap ErrFinality, or ErrTrust for a trust that is not valid.
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
	err := verifySigners(f.Signatures, len(trust.Validators), func(s *Signature) bool {
		return ed25519.Verify(trust.Validators[s.Validator][:], message, s.Signature)
	})
	if err != nil {
		return Target{}, err
	}
	return p.Target, nil
}

// verifySigners checks that signatures are of distinct validators, that each is right, and that they are enough. The count comes before the
// costly part.
func verifySigners(signatures []Signature, validators int, right func(*Signature) bool) error {
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
		if !right(&signatures[i]) {
			return fmt.Errorf("%w: the signature of validator %d is wrong", ErrFinality, signatures[i].Validator)
		}
	}
	return nil
}
