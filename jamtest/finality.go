package jamtest

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
)

// Commit is the behaviour of a rollup's service that matters for proofs. It
// returns the commitment to the rollup block in a package, or false if the
// service ignores the package. The chain sets the field Package. The result
// must depend on the package only.
type Commit func(p Package) (c proof.Commitment, ok bool)

// commitmentPrefix is the prefix of the storage keys of commitments; see
// proof.CommitmentKey.
const commitmentPrefix = "commitment"

// validatorSet is the number of the only validator set of a simulated chain.
const validatorSet = 0

// state is the simulated part of the state after a block, and the output log.
// It exists only with Config.Commit and shares equal parts with the parent's
// state.
type state struct {
	trie    *statetrie.Trie
	outputs []proof.Output
	log     *proof.Log
	leaves  *leaf
}

// leaf is the last entry of an output log.
type leaf struct {
	before *leaf
	root   common.Hash
	index  uint64
}

// all returns the leaves up to this one, oldest first.
func (l *leaf) all() []common.Hash {
	leaves := make([]common.Hash, l.index+1)
	for ; l != nil; l = l.before {
		leaves[l.index] = l.root
	}
	return leaves
}

// settle sets the posterior roots of a sealed block: real ones if services
// commit, otherwise placeholders.
func (c *Chain) settle(b *block) {
	if c.cfg.Commit == nil {
		b.stateRoot, b.beefyRoot = standIns(b.Hash)
		return
	}
	s := &state{}
	index := uint64(0)
	var log []*common.Hash
	if b.parent != nil {
		before := b.parent.state
		s.trie, s.leaves, log, index = before.trie, before.leaves, before.log.Peaks(), before.leaves.index+1
	}
	s.log = proof.NewLog(log)
	for _, h := range b.Accumulated {
		s.take(c.packages[h], c.cfg.Commit)
	}
	s.trie = s.trie.Set(statetrie.ChapterKey(statetrie.ChapterSlot), binary.LittleEndian.AppendUint32(nil, uint32(b.Slot)))
	s.trie = s.trie.Set(statetrie.ChapterKey(statetrie.ChapterOutputs), proof.EncodeOutputs(s.outputs))
	root := proof.OutputRoot(s.outputs)
	s.log.Append(root)
	s.leaves = &leaf{before: s.leaves, root: root, index: index}
	b.state, b.stateRoot, b.beefyRoot = s, s.trie.Root(), s.log.SuperPeak()
}

// take lets the service of a package commit. The first package of a rollup
// block counts. The service yields for each package; a real service that
// receives several packages at once yields once.
func (s *state) take(p *Package, commit Commit) {
	if p.Service == ForeignService {
		return
	}
	commitment, ok := commit(p.clone())
	if !ok {
		return
	}
	commitment.Package = p.Hash
	key := commitmentKey(p.Service, commitment.Number)
	if _, taken := s.trie.Get(key); taken {
		return
	}
	s.trie = s.trie.Set(key, commitment.Encode())
	s.outputs = append(s.outputs, proof.Output{Service: p.Service, Yield: commitment.Yield()})
}

func commitmentKey(service jamq.ServiceID, number uint64) statetrie.Key {
	return statetrie.StorageKey(service, proof.CommitmentKey([]byte(commitmentPrefix), number))
}

// validators are the keys of the chain's validators.
type validators struct {
	ed25519 []ed25519.PrivateKey
	bls     []proof.BLSSecret
	signing []int // indexes, just enough of them
	trust   proof.Trust
}

// signers returns the keys of the validators, which depend on the seed only. It
// makes them at the first call; a full set takes about a second.
func (c *Chain) signers() (*validators, error) {
	if c.keys != nil {
		return c.keys, nil
	}
	v := &validators{trust: proof.Trust{Set: validatorSet, KeyPrefix: []byte(commitmentPrefix)}}
	for i := range c.cfg.Spec.Validators {
		seed := digest("validator", binary.LittleEndian.AppendUint64(nil, c.cfg.Seed), binary.LittleEndian.AppendUint32(nil, uint32(i)))
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
	c.keys = v
	return v, nil
}

// quorum returns the validators' keys if enough of them can sign. The error
// wraps ErrNotFinal.
func (c *Chain) quorum() (*validators, error) {
	v, err := c.signers()
	if err != nil {
		return nil, err
	}
	if want := proof.Quorum(len(v.ed25519)); len(v.signing) < want {
		return nil, fmt.Errorf("%w: %d of %d validators are not punished, want at least %d",
			ErrNotFinal, len(v.signing), len(v.ed25519), want)
	}
	return v, nil
}

// Trust returns the trust that a verifier of a service's proofs needs: the keys
// of the validators and the prefix of the service's commitments. The keys of
// [Config.Punished] are zero. The caller must not change the keys.
func (c *Chain) Trust(service jamq.ServiceID) (*proof.Trust, error) {
	v, err := c.signers()
	if err != nil {
		return nil, err
	}
	trust := v.trust // shares the keys
	trust.Service = service
	return &trust, nil
}

// Route is the way of a proof from the validators' signatures to the
// commitment.
type Route int

const (
	// ByStorage leads through the state of the finalized block to the service's
	// storage.
	ByStorage Route = iota
	// ByOutputs leads through C(16) of the block that accumulated the package.
	ByOutputs
	// ByLog leads through the output log after the finalized block.
	ByLog
)

// Prove returns the JAM part of the document for a rollup block that the
// service has received on the final chain: the block and package of the claim,
// and the links up to the commitment. The rollup adds the transaction. Just
// more than two thirds of the validators sign; punished ones never do.
//
// The error wraps [ErrNotFinal], also if too few validators can sign,
// [ErrNoCommitments], or [ErrUnknownBlock] if the chain has forgotten the block
// that accumulated the package. ByStorage does not need that block.
func (c *Chain) Prove(service jamq.ServiceID, number uint64, route Route) (*proof.Document, error) {
	if c.cfg.Commit == nil {
		return nil, fmt.Errorf("%w: Config.Commit is nil", ErrNoCommitments)
	}
	key := commitmentKey(service, number)
	encoded, ok := c.finalized.state.trie.Get(key)
	if !ok {
		return nil, fmt.Errorf("%w: block %d of service %d", ErrNotFinal, number, service)
	}
	commitment, err := proof.DecodeCommitment(encoded)
	if err != nil {
		return nil, err
	}
	d := &proof.Document{
		Version:    proof.Version,
		Claim:      proof.Claim{Number: number, Block: commitment.Hash, Package: commitment.Package},
		Commitment: encoded,
	}
	if route == ByStorage {
		d.Storage = &proof.StorageProof{Nodes: c.finalized.state.trie.Prove(key)}
		d.Finality, err = c.precommit(c.finalized)
		return d, err
	}
	in := c.finalized.newest(int(c.finalized.height)+1, c.accumulatedIn[commitment.Package])
	if in == nil {
		return nil, fmt.Errorf("%w: the one that accumulated %s", ErrUnknownBlock, commitment.Package)
	}
	if route == ByOutputs {
		outputs := statetrie.ChapterKey(statetrie.ChapterOutputs)
		value, _ := in.state.trie.Get(outputs)
		d.Outputs = &proof.ChapterProof{Value: value, Nodes: in.state.trie.Prove(outputs)}
		d.Finality, err = c.precommit(in)
		return d, err
	}
	return d, c.proveByLog(d, in, proof.Output{Service: service, Yield: commitment.Yield()})
}

// proveByLog adds the links through the output log.
func (c *Chain) proveByLog(d *proof.Document, in *block, output proof.Output) (err error) {
	index := -1
	for i, o := range in.state.outputs {
		if o == output {
			index = i
		}
	}
	d.Log = new(proof.YieldProof)
	if d.Log.Output, err = proof.ProveOutput(in.state.outputs, index); err != nil {
		return err
	}
	if d.Log.Log, err = proof.ProveLog(c.finalized.state.leaves.all(), int(in.state.leaves.index)); err != nil {
		return err
	}
	d.Beefy, err = c.beefy(c.finalized)
	return err
}

// beefy returns the signatures of just enough validators over the log after a
// final block.
func (c *Chain) beefy(b *block) (*proof.Beefy, error) {
	v, err := c.quorum()
	if err != nil {
		return nil, err
	}
	out := &proof.Beefy{Peak: b.beefyRoot}
	for _, i := range v.signing {
		s, err := v.bls[i].SignPeak(out.Peak, uint16(i))
		if err != nil {
			return nil, err
		}
		out.Signatures = append(out.Signatures, s)
	}
	return out, nil
}

// OutputLog returns the outputs of a block and the leaves of the output log after
// it, for hosts that make proofs themselves. The error wraps [ErrNoCommitments] or
// [ErrUnknownBlock].
func (c *Chain) OutputLog(hash jamq.HeaderHash) (outputs []proof.Output, leaves []common.Hash, err error) {
	if c.cfg.Commit == nil {
		return nil, nil, fmt.Errorf("%w: Config.Commit is nil", ErrNoCommitments)
	}
	b, ok := c.blocks[hash]
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s", ErrUnknownBlock, hash)
	}
	return slices.Clone(b.state.outputs), b.state.leaves.all(), nil
}

// Beefy returns the signatures over the output log after a final block. Just more
// than two thirds of the validators sign. The error wraps [ErrNoCommitments], or
// [ErrNotFinal], also if too few validators can sign.
func (c *Chain) Beefy(hash jamq.HeaderHash) (*proof.Beefy, error) {
	switch {
	case c.cfg.Commit == nil:
		return nil, fmt.Errorf("%w: Config.Commit is nil", ErrNoCommitments)
	case !c.Contains(c.finalized.Hash, hash):
		return nil, fmt.Errorf("%w: block %s", ErrNotFinal, hash)
	}
	return c.beefy(c.blocks[hash])
}

// precommit returns the votes of just enough validators for a final block.
func (c *Chain) precommit(b *block) (*proof.Finality, error) {
	v, err := c.quorum()
	if err != nil {
		return nil, err
	}
	p := proof.Precommit{
		Target: proof.Target{Header: b.Hash, Slot: b.Slot, StateRoot: b.stateRoot},
		Round:  b.height, Set: validatorSet,
	}
	f := &proof.Finality{Format: proof.Draft{}.Name(), Precommit: p, Signatures: []proof.Signature{}}
	for _, i := range v.signing {
		f.Signatures = append(f.Signatures, p.Sign(proof.Draft{}, uint16(i), v.ed25519[i]))
	}
	return f, nil
}
