package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/stateproof"
)

// GetFinalityProof implements jam_getFinalityProof. It returns a document that proves
// that a transaction is final, or null if the transaction is not in a block. The
// program examples/verify checks the document. The error code is [CodeNotFinal] if the
// transaction is not final yet, and [CodeNoProofs] if the JAM chain does not provide
// the data for proofs.
func (a *jamMethods) GetFinalityProof(ctx context.Context, hash common.Hash) (_ *proof.Document, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, "jam_getFinalityProof", 0); err != nil {
		return nil, err
	}
	d, err := a.node.FinalityProof(ctx, hash)
	return d, proofError(err)
}

// GetReceiptProof implements jam_getReceiptProof. It returns the document of
// jam_getFinalityProof with an additional proof of the receipt, which shows whether the
// transaction succeeded, and its logs. The error codes are those of
// jam_getFinalityProof.
func (a *jamMethods) GetReceiptProof(ctx context.Context, hash common.Hash) (_ *proof.Document, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, "jam_getReceiptProof", 0); err != nil {
		return nil, err
	}
	d, err := a.node.ReceiptProof(ctx, hash)
	return d, proofError(err)
}

// GetAccountProof implements jam_getAccountProof. It returns an account, and slots of
// its storage, in the state after a final block, by default the finalized block. The
// answer contains a proof for verifiers that trust the validators of JAM; the program
// examples/verify checks it. The error codes are those of jam_getFinalityProof.
func (a *jamMethods) GetAccountProof(ctx context.Context, addr common.Address, slots []string, at *rpc.BlockNumberOrHash) (_ *stateproof.FinalAccount, err error) {
	defer ledger.Recover(&err)
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	if err := a.limits.call(ctx, "jam_getAccountProof", 0); err != nil {
		return nil, err
	}
	if at == nil {
		finalized := rpc.BlockNumberOrHashWithNumber(rpc.FinalizedBlockNumber)
		at = &finalized
	}
	b, err := a.resolve(*at)
	if err != nil {
		return nil, err
	}
	f, err := a.node.AccountProof(ctx, b, addr, slots)
	return f, proofError(err)
}

// GetHandoff implements jam_getHandoff. It returns a proof of the validator set that
// follows the given set. A verifier such as examples/verify needs the proof in order to
// trust the next set. The error code is CodeNoProofs if the JAM chain does not provide
// the proof, or if no set follows yet.
func (a *jamMethods) GetHandoff(ctx context.Context, set hexutil.Uint64) (_ *proof.Handoff, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, "jam_getHandoff", 0); err != nil {
		return nil, err
	}
	h, err := a.node.Handoff(ctx, uint64(set))
	return h, proofError(err)
}

// GetTrust implements jam_getTrust. It returns the data that a verifier must trust
// in advance. It is for experiments only, because a verifier that gets this data
// from the node trusts the node for everything.
func (a *jamMethods) GetTrust(ctx context.Context) (_ *proof.Trust, err error) {
	defer ledger.Recover(&err)
	trust, err := a.node.Trust(ctx)
	return trust, proofError(err)
}
