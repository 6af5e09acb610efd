package proof

import (
	"errors"

	"github.com/jamq/jamq/canonical/statetrie"
)

// A [Document] is a chain of links, from the signatures of validators to a transaction.
// Each kind of link has an error, so that a verifier can see which link is broken.
var (
	// ErrFinality is returned if the signatures do not prove that the JAM block, or the output
	// log, is final.
	ErrFinality = errors.New("proof: not final")
	// ErrState is returned if the nodes of a state proof do not lead from the root to the
	// claimed value.
	ErrState = statetrie.ErrProof
	// ErrOutput is returned if the proof does not show that the service yielded the output, or
	// that the output's block is in the log.
	ErrOutput = errors.New("proof: output not proved")
	// ErrCommitment is returned if the service's commitment is about another block or package
	// than the claim.
	ErrCommitment = errors.New("proof: commitment does not bind the claim")
	// ErrTransaction is returned if the proof does not show that the block contains the
	// transaction.
	ErrTransaction = errors.New("proof: transaction not proved")
	// ErrReceipt is returned if the proof does not show that the receipt belongs to the
	// transaction.
	ErrReceipt = errors.New("proof: receipt not proved")
	// ErrHandoff is returned if a handoff does not prove the next validator set.
	ErrHandoff = errors.New("proof: next validator set not proved")
)

var (
	// ErrInput is returned if no proof can be made from the arguments, for example because an
	// index is out of range.
	ErrInput = errors.New("proof: invalid input")
	// ErrMalformed is returned if a text is not a document of this version.
	ErrMalformed = errors.New("proof: malformed document")
	// ErrTrust is returned if the verifier's trust is incomplete or contradicts
	// itself.
	ErrTrust = errors.New("proof: invalid trust")
	// ErrKey is returned if a key must not vote because anyone can forge its signatures.
	ErrKey = errors.New("proof: key without a vote")
)
