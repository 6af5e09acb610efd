package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/examples/refnode/ledger"
)

// GetFinalityProof implements jam_getFinalityProof. It returns a document that
// proves that a transaction is final; examples/verify checks it. The answer is
// null for a transaction that is in no block. The error code is [CodeNotFinal]
// while the transaction is not final, and [CodeNoProofs] if the JAM chain does
// not offer proofs.
func (a *JAM) GetFinalityProof(ctx context.Context, hash common.Hash) (_ *proof.Document, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, "jam_getFinalityProof", 0); err != nil {
		return nil, err
	}
	d, err := a.node.FinalityProof(ctx, hash)
	return d, proofError(err)
}

// GetTrust implements jam_getTrust. It returns the data that a verifier must
// trust in advance. Use it only for experiments: a verifier that takes this
// data from the node trusts the node for everything.
func (a *JAM) GetTrust(ctx context.Context) (_ *proof.Trust, err error) {
	defer ledger.Recover(&err)
	trust, err := a.node.Trust(ctx)
	return trust, proofError(err)
}
