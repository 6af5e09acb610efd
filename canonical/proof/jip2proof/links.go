package jip2proof

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/submit/jip2"
)

// ErrContradiction is returned if the answers of a JAM node contradict each other,
// so that no proof can be made from them.
var ErrContradiction = errors.New("jip2proof: the answers of the JAM node contradict each other")

// Links returns the first two links of a proof document about an output of a
// service. output is the node's proof of the output, and signed contains the
// signatures over the BEEFY root to which that proof leads. Links returns all
// signatures of the answer, even if they are too few for proof.Document.Verify. It
// does no I/O and is safe for concurrent use.
//
// The error wraps ErrContradiction in these cases:
//
//   - The two answers have different BEEFY roots.
//   - A path or the peaks do not lead to their root.
//   - The validators of the signatures are not ascending and distinct.
func Links(service jamq.ServiceID, output jip2.AccumulationOutputProof, signed jip2.BeefyCommitments) (*proof.Beefy, *proof.YieldProof, error) {
	beefy, err := signatures(signed)
	if err != nil {
		return nil, nil, err
	}
	log, err := logProof(common.Hash(output.BeefyRoot), output.Outer)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case output.BeefyRoot != signed.BeefyRoot:
		return nil, nil, fmt.Errorf("%w: the BEEFY root is %x for the output and %x for the signatures", ErrContradiction, output.BeefyRoot, signed.BeefyRoot)
	case output.LeafIndex != log.Index:
		return nil, nil, fmt.Errorf("%w: the block's leaf is %d, and the path begins at %d", ErrContradiction, output.LeafIndex, log.Index)
	}
	inner := proof.OutputProof{Index: int(output.Inner.LeafIndex), Count: int(output.Inner.LeafCount), Siblings: []hexutil.Bytes{}}
	for _, sibling := range slices.Backward(output.Inner.Path) { // a document begins at the root
		inner.Siblings = append(inner.Siblings, sibling)
	}
	root := common.Hash(output.BlockOutputRoot)
	if err := proof.VerifyOutput(root, proof.Output{Service: service, Yield: common.Hash(output.YieldHash)}, inner); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	if err := proof.VerifyLog(beefy.Peak, root, log); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	return beefy, &proof.YieldProof{Output: inner, Log: log}, nil
}

// signatures converts signatures, and checks that their validators are ascending and
// distinct.
func signatures(signed jip2.BeefyCommitments) (*proof.Beefy, error) {
	beefy := &proof.Beefy{Peak: common.Hash(signed.BeefyRoot), Signatures: []proof.Signature{}}
	last := -1
	for _, c := range signed.Commitments {
		v := int(c.ValidatorIndex)
		if v <= last {
			return nil, fmt.Errorf("%w: validator %d after %d, want ascending and distinct", ErrContradiction, v, last)
		}
		last = v
		beefy.Signatures = append(beefy.Signatures, proof.Signature{Validator: c.ValidatorIndex, Signature: c.Signature})
	}
	return beefy, nil
}

// logProof converts a path in the log, and checks that the peaks hash to the
// super-peak.
func logProof(superPeak common.Hash, outer jip2.MMRProof) (proof.LogProof, error) {
	p := proof.LogProof{Index: outer.LeafIndex, Siblings: []common.Hash{}, Peaks: []common.Hash{}}
	for _, sibling := range outer.MountainPath {
		p.Siblings = append(p.Siblings, common.Hash(sibling))
	}
	all := make([]*common.Hash, len(outer.Peaks))
	// The highest tree has the oldest leaves.
	for height, peak := range slices.Backward(outer.Peaks) {
		if peak == nil {
			continue
		}
		all[height] = (*common.Hash)(peak)
		begin := p.Count
		p.Count += 1 << height
		// JIP-2 lists all peaks of the log. A document leaves out the peak above the proved
		// leaf, because a verifier computes it.
		if p.Index < begin || p.Index >= p.Count {
			p.Peaks = append(p.Peaks, common.Hash(*peak))
		}
	}
	slices.Reverse(p.Peaks)
	if have := proof.NewLog(all).SuperPeak(); have != superPeak {
		return proof.LogProof{}, fmt.Errorf("%w: the peaks have the super-peak %s, want the BEEFY root %s", ErrContradiction, have, superPeak)
	}
	return p, nil
}
