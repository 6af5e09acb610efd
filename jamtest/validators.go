package jamtest

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// validators contains the keys of a validator set, and the data that a verifier trusts.
type validators struct {
	ed25519 []ed25519.PrivateKey
	bls     []proof.BLSSecret
	signing []int // indexes of just enough validators for a quorum
	trust   proof.Trust
}

// maxSets is the number of validator sets whose keys are kept. A proof needs the set of
// one block, and making a block also needs the next set.
const maxSets = 4

// signers returns the keys of a validator set. They depend only on the seed and the
// number of the set. They are made when they are needed for the first time, which takes
// about a second for a set of full size.
func (c *Chain) signers(set uint64) (*validators, error) {
	if v := c.keys[set]; v != nil {
		return v, nil
	}
	v := &validators{trust: proof.Trust{Set: set, KeyPrefix: []byte(service.CommitmentPrefix)}}
	for i := range c.cfg.Spec.Validators {
		seed := c.seedOf(set, i)
		key := ed25519.NewKeyFromSeed(seed[:])
		secret, err := proof.NewBLSSecret(seed[:])
		if err != nil {
			return nil, err
		}
		v.ed25519, v.bls = append(v.ed25519, key), append(v.bls, secret)
		if slices.Contains(c.cfg.Punished, i) {
			v.trust.Validators, v.trust.BLS = append(v.trust.Validators, proof.ValidatorKey{}), append(v.trust.BLS, proof.BLSKey{})
			continue
		}
		v.trust.Validators = append(v.trust.Validators, proof.ValidatorKey(key.Public().(ed25519.PublicKey)))
		v.trust.BLS = append(v.trust.BLS, secret.Public())
		if len(v.signing) < proof.Quorum(c.cfg.Spec.Validators) {
			v.signing = append(v.signing, i)
		}
	}
	if len(c.keys) == maxSets {
		clear(c.keys)
	}
	c.keys[set] = v
	return v, nil
}

// seedOf returns the seed for the keys of a validator in a set.
func (c *Chain) seedOf(set uint64, index int) [32]byte {
	data := [][]byte{binary.LittleEndian.AppendUint64(nil, c.cfg.Seed), binary.LittleEndian.AppendUint32(nil, uint32(index))}
	if set > 0 {
		data = append(data, binary.LittleEndian.AppendUint64(nil, set))
	}
	return digest("validator", data...)
}

// quorum returns the keys of a validator set. The error wraps ErrNotFinal if too few of
// the set's validators can sign.
func (c *Chain) quorum(set uint64) (*validators, error) {
	v, err := c.signers(set)
	if err != nil {
		return nil, err
	}
	if want := proof.Quorum(len(v.ed25519)); len(v.signing) < want {
		return nil, fmt.Errorf("%w: %d of %d validators are not punished, want at least %d",
			ErrNotFinal, len(v.signing), len(v.ed25519), want)
	}
	return v, nil
}

// Trust returns the data that a verifier of a service's proofs must trust: the keys of
// the validators of the finalized block, and the prefix of the service's commitments.
// The keys of [Config.Punished] are zero. The caller must not change the keys.
func (c *Chain) Trust(id jamq.ServiceID) (*proof.Trust, error) {
	v, err := c.signers(c.finalized.set())
	if err != nil {
		return nil, err
	}
	trust := v.trust // shares the keys
	trust.Service = id
	return &trust, nil
}

// Handoff returns the proof of the validator set that follows the given set. The given
// set signs this proof with its votes for a final block. That block is the newest one
// from the epoch of the set, because each set votes only for such blocks, even if
// finality has stood still for an epoch.
//
// The error wraps:
//
//   - [ErrNoServices] if Config.Genesis is nil;
//   - [ErrNotFinal] if no block of the set is final, no set follows, or too few
//     validators can sign; or
//   - [ErrUnknownBlock] if the chain has forgotten the blocks of the set.
func (c *Chain) Handoff(set uint64) (*proof.Handoff, error) {
	b, err := c.withState(c.finalized.Hash)
	if err != nil {
		return nil, err
	}
	if !c.cfg.NewValidators || set > b.set() {
		return nil, fmt.Errorf("%w: a block of set %d with a set after it", ErrNotFinal, set)
	}
	for b.set() > set {
		if b = b.parent; b == nil {
			return nil, fmt.Errorf("%w: those of validator set %d", ErrUnknownBlock, set)
		}
	}
	h := &proof.Handoff{Version: proof.Version, Active: b.state.prove(statetrie.ChapterValidators), Pending: b.state.prove(statetrie.ChapterSafrole)}
	votes, err := c.precommit(b)
	if err != nil {
		return nil, err
	}
	h.Finality = *votes
	return h, nil
}

// prove returns the value of a chapter of the state with its proof.
func (s *state) prove(chapter uint8) proof.ChapterProof {
	key := statetrie.ChapterKey(chapter)
	value, _ := s.trie.Get(key)
	return proof.ChapterProof{Value: value, Nodes: s.trie.Prove(key)}
}

// set returns the number of the block's validator set.
func (b *block) set() uint64 {
	if b.state == nil {
		return 0
	}
	return b.state.set
}

// rotate writes the validators of the block's epoch and of the next one into the state,
// if the block is the first of its epoch (Gray Paper 6.13). Every epoch with blocks has
// its own set. rotate does nothing unless Config.NewValidators is true.
func (c *Chain) rotate(s *state, b *block) {
	epoch := func(b *block) jamq.Slot { return b.Slot / c.cfg.Spec.EpochLength }
	switch {
	case !c.cfg.NewValidators || b.parent != nil && epoch(b) == epoch(b.parent):
		return
	case b.parent != nil:
		s.set++
	}
	const (
		ring   = 144 // the root of the next set's Bandersnatch keys
		sealer = 32  // a key for each slot, because there are no tickets
	)
	safrole := append(c.encodedSet(s.set+1), make([]byte, ring)...)
	safrole = append(safrole, 1)
	safrole = append(safrole, make([]byte, sealer*int(c.cfg.Spec.EpochLength))...)
	safrole = append(safrole, 0)
	s.trie = s.trie.Set(statetrie.ChapterKey(statetrie.ChapterValidators), c.encodedSet(s.set))
	s.trie = s.trie.Set(statetrie.ChapterKey(statetrie.ChapterSafrole), safrole)
}

// encodedSet returns a validator set in the encoding of the state, with zeros for keys
// that no proof needs.
func (c *Chain) encodedSet(set uint64) []byte {
	v, err := c.signers(set)
	if err != nil {
		return nil // not with seeds that are hashes
	}
	all := make([]codec.Validator, len(v.trust.Validators))
	for i := range all {
		all[i].Ed25519 = v.trust.Validators[i]
		copy(all[i].BLS[len(all[i].BLS)-len(proof.BLSKey{}):], v.trust.BLS[i][:])
	}
	return codec.EncodeValidators(all)
}
