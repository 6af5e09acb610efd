package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/rpcapi"
)

// checkProofs fetches and verifies the finality proof of each transaction. If
// the JAM chain does not offer proofs, it prints that and succeeds.
func (c *client) checkProofs(ctx context.Context, p *plan, _ uint64, f *findings) error {
	var trust *proof.Trust
	if err := c.raw.CallContext(ctx, &trust, "jam_getTrust"); err != nil {
		var coded rpc.Error
		if errors.As(err, &coded) && coded.ErrorCode() == rpcapi.CodeNoProofs {
			fmt.Fprintf(c.out, "finality proofs: %v\n", err)
			return nil
		}
		return err
	}
	proved := 0
	for _, t := range p.txs {
		var raw json.RawMessage
		if err := c.raw.CallContext(ctx, &raw, "jam_getFinalityProof", t.tx.Hash()); err != nil {
			f.problem("transaction %s: %w", t.tx.Hash(), err)
			continue
		}
		document, err := proof.Parse(raw)
		if err != nil {
			f.problem("transaction %s: %w", t.tx.Hash(), err)
			continue
		}
		result, err := document.Verify(trust)
		if err != nil || result.Transaction.Hash() != t.tx.Hash() {
			f.problem("transaction %s is not proved final: %w", t.tx.Hash(), err)
			continue
		}
		proved++
	}
	fmt.Fprintf(c.out, "finality proofs: %d/%d transactions proved by the signatures of at least %d of %d JAM validators\n",
		proved, len(p.txs), proof.Quorum(len(trust.Validators)), len(trust.Validators))
	return nil
}
