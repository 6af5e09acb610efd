package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
)

// GetFinalityProof is jam_getFinalityProof: a document that proves that a transaction is final, for examples/verify; null for one that is
// in no block. While the transaction is not final the error is CodeNotFinal, on a chain that cannot be asked for proofs CodeNoProofs.
func (a *JAM) GetFinalityProof(ctx context.Context, hash common.Hash) (*proof.Document, error) {
	if err := a.limits.call(ctx, "jam_getFinalityProof", 0); err != nil {
		return nil, err
	}
	d, err := a.node.FinalityProof(ctx, hash)
	return d, proofError(err)
}

// GetTrust is jam_getTrust: what a verifier has to know beforehand. It is for trying things out: who believes the node about it, believes
// the node about everything.
func (a *JAM) GetTrust(ctx context.Context) (*proof.Trust, error) {
	trust, err := a.node.Trust(ctx)
	return trust, proofError(err)
}
