package jamtest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/service"
)

// Route is the way in which a proof leads from the validators' signatures to the
// commitment of a rollup block.
type Route int

const (
	// ByStorage leads through the state of the finalized block to the commitment in the
	// service's storage.
	ByStorage Route = iota
	// ByOutputs leads through the accumulation outputs, C(16), of the block in which the
	// service applied the rollup block. Only the last rollup block in a call of the service
	// has this route, because a service yields once per call.
	ByOutputs
	// ByLog leads through the output log after the finalized block. It exists for the same
	// rollup blocks as ByOutputs.
	ByLog
)

// Prove returns the JAM part of a proof document for a rollup block that the service
// has stored on the final chain. This part contains the block and the package of the
// claim, and the links up to the commitment; the rollup adds the transaction. It is
// signed by just more than two thirds of the validators, none of which is punished.
//
// The error wraps:
//
//   - [ErrNotFinal] if the service has not stored the block on the final chain, or
//     if too few validators can sign;
//   - [ErrNoServices] if Config.Genesis is nil;
//   - [ErrNotYielded] if the route needs a yield and the block has none; or
//   - [ErrUnknownBlock] if the chain has forgotten the block in which the service
//     applied the rollup block. ByStorage does not need that block.
func (c *Chain) Prove(id jamq.ServiceID, number uint64, route Route) (*proof.Document, error) {
	final, err := c.withState(c.finalized.Hash)
	if err != nil {
		return nil, err
	}
	key := proof.CommitmentKey([]byte(service.CommitmentPrefix), number)
	encoded := final.state.value(id, key)
	commitment, err := proof.DecodeCommitment(encoded)
	mark := final.state.value(id, service.MarkKey(commitment.Package))
	if err != nil || len(mark) != 4 { // the block of the genesis has no mark
		return nil, fmt.Errorf("%w: block %d of service %d", ErrNotFinal, number, id)
	}
	d := &proof.Document{
		Version:    proof.Version,
		Claim:      proof.Claim{Number: number, Block: commitment.Hash, Package: commitment.Package},
		Commitment: encoded,
	}
	if route == ByStorage {
		d.Storage = &proof.StorageProof{Nodes: final.state.trie.Prove(statetrie.StorageKey(id, key))}
		d.Finality, err = c.precommit(final)
		return d, err
	}
	in, output := final, proof.Output{Service: id, Yield: commitment.Yield()}
	for slot := jamq.Slot(binary.LittleEndian.Uint32(mark)); in != nil && in.Slot > slot; {
		in = in.parent
	}
	if in == nil {
		return nil, fmt.Errorf("%w: the one in which block %d was applied", ErrUnknownBlock, number)
	}
	if !slices.Contains(in.state.outputs, output) {
		return nil, fmt.Errorf("%w: block %d of service %d", ErrNotYielded, number, id)
	}
	if route == ByOutputs {
		outputs := in.state.prove(statetrie.ChapterOutputs)
		d.Outputs = &outputs
		d.Finality, err = c.precommit(in)
		return d, err
	}
	return d, c.proveByLog(d, in, output)
}

// proveByLog adds the links through the output log to the document.
func (c *Chain) proveByLog(d *proof.Document, in *block, output proof.Output) (err error) {
	index := slices.Index(in.state.outputs, output)
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

// beefy returns signatures over the output log after a final block, from just enough
// validators for a quorum.
func (c *Chain) beefy(b *block) (*proof.Beefy, error) {
	v, err := c.quorum(b.set())
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
// it, for hosts that make proofs themselves. The error wraps [ErrNoServices] or
// [ErrUnknownBlock].
func (c *Chain) OutputLog(hash jamq.HeaderHash) (outputs []proof.Output, leaves []common.Hash, err error) {
	b, err := c.withState(hash)
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(b.state.outputs), b.state.leaves.all(), nil
}

// Beefy returns the signatures of just more than two thirds of the validators over the
// output log after a final block. The error wraps [ErrNoServices], or [ErrNotFinal] if
// the block is not final or too few validators can sign.
func (c *Chain) Beefy(hash jamq.HeaderHash) (*proof.Beefy, error) {
	if _, err := c.withState(c.finalized.Hash); err != nil {
		return nil, err
	}
	if !c.Contains(c.finalized.Hash, hash) {
		return nil, fmt.Errorf("%w: block %s", ErrNotFinal, hash)
	}
	return c.beefy(c.blocks[hash])
}

// precommit returns votes for a final block, from just enough validators for a quorum.
func (c *Chain) precommit(b *block) (*proof.Finality, error) {
	v, err := c.quorum(b.set())
	if err != nil {
		return nil, err
	}
	p := proof.Precommit{
		Target: proof.Target{Header: b.Hash, Slot: b.Slot, StateRoot: b.stateRoot},
		Round:  b.height, Set: b.set(),
	}
	f := &proof.Finality{Format: proof.Draft{}.Name(), Precommit: p, Signatures: []proof.Signature{}}
	for _, i := range v.signing {
		f.Signatures = append(f.Signatures, p.Sign(proof.Draft{}, uint16(i), v.ed25519[i]))
	}
	return f, nil
}
