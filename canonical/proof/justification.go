package proof

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// Grandpa is the [Format] of votes in the draft of GRANDPA for JAM's network
// protocol (JAMNP-S, November 2026). The message consists of a domain tag, the kind
// of the vote, the header hash, the state root, the slot, the round and the set.
type Grandpa struct{}

// grandpaTag begins each signed vote, so that a signature that a validator made for
// another purpose cannot pass for a vote. precommitKind distinguishes precommits from
// other kinds of votes.
const (
	grandpaTag    = "jam_grandpa_vote"
	precommitKind = 1
)

// Name returns "jamnp-s-grandpa-draft-1".
func (Grandpa) Name() string { return "jamnp-s-grandpa-draft-1" }

// Message returns the bytes that a validator signs to vote for p. The draft encodes
// the number of a validator set in 32 bits. If p has a larger number, Message
// returns bytes that no validator ever signs, so that no vote for p is valid.
func (Grandpa) Message(p Precommit) []byte {
	out := append([]byte(grandpaTag), precommitKind)
	out = append(out, p.Target.Header[:]...)
	out = append(out, p.Target.StateRoot[:]...)
	out = binary.LittleEndian.AppendUint32(out, uint32(p.Target.Slot))
	out = binary.LittleEndian.AppendUint64(out, p.Round)
	if p.Set > math.MaxUint32 {
		return binary.LittleEndian.AppendUint64(out, p.Set)
	}
	return binary.LittleEndian.AppendUint32(out, uint32(p.Set))
}

// Justification is the proof of finality that peers return over JAMNP-S (CE 130). It
// contains the votes (precommits) of more than two thirds of a validator set. Each vote is
// for the final block or for a descendant of it. The encoding is that of the draft of
// GRANDPA for JAMNP-S.
type Justification struct {
	// Round is the number of the voting round of GRANDPA in which the votes were cast.
	// Set is the number of the validator set whose members voted.
	Round uint64
	Set   uint32
	// Target is the final block. Only votes for the block itself prove its state root, so
	// [Justification.Finality] needs enough of them.
	Target Target
	// Precommits are the votes. Ancestry contains the headers that lead from the blocks with
	// votes back to the target.
	Precommits []SignedPrecommit
	Ancestry   []codec.Header
}

// SignedPrecommit is the vote of one validator.
type SignedPrecommit struct {
	// Target is the block that the validator voted for.
	Target Target
	// Signature is the signature over the message of [Grandpa], made with the secret key of
	// Key.
	Signature [ed25519.SignatureSize]byte
	Key       ValidatorKey
}

// These are the sizes of the parts of an encoded justification, in bytes.
const (
	targetSize    = 32 + 32 + 4
	precommitSize = targetSize + ed25519.SignatureSize + 32
)

// ParseJustification decodes a justification of at most [MaxDocument] bytes. c is
// the codec of the chain, which decodes the headers. ParseJustification verifies
// nothing. The error wraps ErrMalformed.
func ParseJustification(c *codec.Codec, raw []byte) (*Justification, error) {
	j, err := parseJustification(c, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: justification: %w", ErrMalformed, err)
	}
	return j, nil
}

func parseJustification(c *codec.Codec, raw []byte) (*Justification, error) {
	const fixed = 8 + 4 + targetSize
	if len(raw) > MaxDocument || len(raw) < fixed {
		return nil, fmt.Errorf("%d bytes, want %d to %d", len(raw), fixed, MaxDocument)
	}
	j := &Justification{Round: binary.LittleEndian.Uint64(raw), Set: binary.LittleEndian.Uint32(raw[8:]), Target: decodeTarget(raw[12:])}
	count, rest, err := codec.DecodeNatural(raw[fixed:])
	if err != nil || count > uint64(len(rest)/precommitSize) {
		return nil, fmt.Errorf("%d precommits in %d bytes: %w", count, len(rest), err)
	}
	for range count {
		p := SignedPrecommit{Target: decodeTarget(rest)}
		n := targetSize + copy(p.Signature[:], rest[targetSize:])
		copy(p.Key[:], rest[n:])
		j.Precommits, rest = append(j.Precommits, p), rest[precommitSize:]
	}
	if count, rest, err = codec.DecodeNatural(rest); err != nil || count > uint64(len(rest)) {
		return nil, fmt.Errorf("%d headers in %d bytes: %w", count, len(rest), err)
	}
	for range count {
		var h codec.Header
		if h, rest, err = codec.DecodePrefix[codec.Header](c, rest); err != nil {
			return nil, err
		}
		j.Ancestry = append(j.Ancestry, h)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the end", len(rest))
	}
	return j, nil
}

// decodeTarget decodes a target from the first bytes of raw, which must be long enough.
func decodeTarget(raw []byte) (t Target) {
	copy(t.Header[:], raw)
	copy(t.StateRoot[:], raw[32:])
	t.Slot = jamq.Slot(binary.LittleEndian.Uint32(raw[64:]))
	return t
}

// Verify checks that the justification proves the given block final: its target
// must be that block, and more than two thirds of the trusted validators must have
// voted for the block or for descendants of it. c is the codec of the chain. A
// validator that voted twice counts once.
//
// A single wrong vote, or one for a block that does not descend from the target,
// makes the justification invalid. The error wraps ErrTrust if the trust is not
// valid, and otherwise ErrFinality. It also wraps ErrKey if the key of a voter must
// not vote.
func (j *Justification) Verify(c *codec.Codec, trust *Trust, block jamq.HeaderHash) error {
	if j.Target.Header != block {
		return fmt.Errorf("%w: votes for block %s, want %s", ErrFinality, j.Target.Header, block)
	}
	_, err := j.verify(c, trust)
	return err
}

// verify checks all votes and returns one vote per validator, in ascending order.
func (j *Justification) verify(c *codec.Codec, trust *Trust) ([]vote, error) {
	if err := trust.Validate(); err != nil {
		return nil, err
	}
	const twice = 2 // a validator that votes more often adds nothing
	switch n := len(j.Precommits); {
	case trust.format().Name() != Grandpa{}.Name():
		return nil, fmt.Errorf("%w: votes of format %q, want %q", ErrFinality, Grandpa{}.Name(), trust.format().Name())
	case uint64(j.Set) != trust.Set:
		return nil, fmt.Errorf("%w: votes of validator set %d, trusted is %d", ErrFinality, j.Set, trust.Set)
	case n > twice*len(trust.Validators):
		return nil, fmt.Errorf("%w: %d votes of %d validators", ErrFinality, n, len(trust.Validators))
	}
	votes, err := j.voters(trust)
	if err != nil {
		return nil, err
	}
	under, err := j.descendants(c)
	if err != nil {
		return nil, err
	}
	// Count each validator once. If a validator voted for the target and for a descendant, its
	// vote for the target comes first in votes, so that one remains.
	first := slices.CompactFunc(slices.Clone(votes), func(a, b vote) bool { return a.validator == b.validator })
	if want := Quorum(len(trust.Validators)); len(first) < want {
		return nil, fmt.Errorf("%w: %d of %d validators voted, want at least %d", ErrFinality, len(first), len(trust.Validators), want)
	}
	for _, v := range votes {
		if err := j.verifyVote(v.vote, under); err != nil {
			return nil, fmt.Errorf("%w: validator %d: %w", ErrFinality, v.validator, err)
		}
	}
	return first, nil
}

// vote is a precommit with the index of its validator.
type vote struct {
	validator int
	vote      *SignedPrecommit
}

// voters returns the votes with their validators, in ascending order.
func (j *Justification) voters(trust *Trust) (votes []vote, err error) {
	index := make(map[ValidatorKey]int, len(trust.Validators))
	for i, key := range trust.Validators {
		index[key] = i
	}
	for i := range j.Precommits {
		p := &j.Precommits[i]
		v, known := index[p.Key]
		if !known {
			return nil, fmt.Errorf("%w: key %x is not in the set", ErrFinality, p.Key[:])
		}
		if err := p.Key.Validate(); err != nil {
			return nil, fmt.Errorf("%w: validator %d: %w", ErrFinality, v, err)
		}
		votes = append(votes, vote{v, p})
	}
	slices.SortStableFunc(votes, func(a, b vote) int {
		other := func(v vote) int {
			if v.vote.Target == j.Target {
				return 0
			}
			return 1
		}
		// If a validator has several votes, those for the target come first.
		return cmp.Or(a.validator-b.validator, other(a)-other(b))
	})
	return votes, nil
}

// descendants returns the target, and the blocks that Ancestry proves to descend from
// it.
func (j *Justification) descendants(c *codec.Codec) (map[jamq.HeaderHash]bool, error) {
	parents := make(map[jamq.HeaderHash]jamq.HeaderHash, len(j.Ancestry))
	for i := range j.Ancestry {
		hash, err := c.HeaderHash(&j.Ancestry[i])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFinality, err)
		}
		parents[hash] = j.Ancestry[i].Parent
	}
	under := map[jamq.HeaderHash]bool{j.Target.Header: true}
	for hash := range parents { // in any order: the result is a set
		var way []jamq.HeaderHash
		reached, known := under[hash]
		for at := hash; !known; reached, known = under[at] {
			parent, more := parents[at]
			if !more {
				break
			}
			way = append(way, at)
			at = parent
		}
		for _, at := range way {
			under[at] = reached
		}
	}
	return under, nil
}

// verifyVote checks a vote's signature, and that its block is under the target.
func (j *Justification) verifyVote(p *SignedPrecommit, under map[jamq.HeaderHash]bool) error {
	switch {
	case !under[p.Target.Header]:
		return fmt.Errorf("no headers lead from its block %s to %s", p.Target.Header, j.Target.Header)
	case p.Target.Header == j.Target.Header && p.Target != j.Target:
		return fmt.Errorf("its block has another slot or state root")
	}
	message := Grandpa{}.Message(Precommit{Target: p.Target, Round: j.Round, Set: uint64(j.Set)})
	if !ed25519.Verify(p.Key[:], message, p.Signature[:]) {
		return errSignature
	}
	return nil
}

// Finality returns the first link of a document about the target, in the format
// [Grandpa]. The errors are those of [Justification.Verify]. The error also wraps
// ErrFinality if the block is final, but not more than two thirds of the validators
// voted for the block itself. The votes then do not prove the block's state root,
// and the caller can try again with the justification of a later block.
func (j *Justification) Finality(c *codec.Codec, trust *Trust) (*Finality, error) {
	votes, err := j.verify(c, trust)
	if err != nil {
		return nil, err
	}
	f := &Finality{Format: Grandpa{}.Name(), Precommit: Precommit{Target: j.Target, Round: j.Round, Set: uint64(j.Set)}}
	for _, v := range votes {
		if v.vote.Target == j.Target {
			f.Signatures = append(f.Signatures, Signature{Validator: uint16(v.validator), Signature: v.vote.Signature[:]})
		}
	}
	if _, err := f.Verify(trust); err != nil {
		return nil, err
	}
	return f, nil
}

// Encode returns the encoding that [ParseJustification] decodes. Tests of clients
// use it.
func (j *Justification) Encode(c *codec.Codec) ([]byte, error) {
	out := binary.LittleEndian.AppendUint64(nil, j.Round)
	out = binary.LittleEndian.AppendUint32(out, j.Set)
	target := func(t Target) {
		out = append(append(out, t.Header[:]...), t.StateRoot[:]...)
		out = binary.LittleEndian.AppendUint32(out, uint32(t.Slot))
	}
	target(j.Target)
	out = codec.AppendNatural(out, uint64(len(j.Precommits)))
	for i := range j.Precommits {
		p := &j.Precommits[i]
		target(p.Target)
		out = append(append(out, p.Signature[:]...), p.Key[:]...)
	}
	out = codec.AppendNatural(out, uint64(len(j.Ancestry)))
	for i := range j.Ancestry {
		raw, err := c.Encode(&j.Ancestry[i])
		if err != nil {
			return nil, err
		}
		out = append(out, raw...)
	}
	return out, nil
}
