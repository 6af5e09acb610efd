package proof

import (
	"errors"

	"github.com/jamq/jamq/canonical/statetrie"
)

// Each link of the chain has a separate error.
var (
	// ErrFinality is returned if the signatures do not make the JAM block, or
	// the output log, final.
	ErrFinality = errors.New("proof: not final")
	// ErrState is returned if the state proof does not show the value.
	ErrState = statetrie.ErrProof
	// ErrOutput is returned if an output, or its block's root in the log, is
	// not proved.
	ErrOutput = errors.New("proof: output not proved")
	// ErrCommitment is returned if the service's commitment does not bind the
	// block and the package of the claim.
	ErrCommitment = errors.New("proof: commitment does not bind the claim")
	// ErrTransaction is returned if the transaction is not proved to be in the
	// block.
	ErrTransaction = errors.New("proof: transaction not proved")
	// ErrReceipt is returned if the receipt is not proved to be that of the
	// transaction.
	ErrReceipt = errors.New("proof: receipt not proved")
	// ErrHandoff is returned if the next validator set is not proved.
	ErrHandoff = errors.New("proof: next validator set not proved")
)

var (
	// ErrInput is returned if no proof can be made from the arguments.
	ErrInput = errors.New("proof: invalid input")
	// ErrMalformed is returned for a text that is not a document of this
	// version.
	ErrMalformed = errors.New("proof: malformed document")
	// ErrTrust is returned if the verifier's trust is incomplete or contradicts
	// itself.
	ErrTrust = errors.New("proof: invalid trust")
	// ErrKey is returned for a key that must not vote, because its signatures
	// can be forged.
	ErrKey = errors.New("proof: key without a vote")
)
