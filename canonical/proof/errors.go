package proof

import "errors"

// Each link of the chain has an error of its own.
var (
	// ErrFinality: the validators' signatures do not make the JAM block, or the log, final.
	ErrFinality = errors.New("proof: not final")
	// ErrState: the state proof does not show what it should.
	ErrState = errors.New("proof: state not proved")
	// ErrOutput: an output, or its block's root in the log, is not proved.
	ErrOutput = errors.New("proof: output not proved")
	// ErrCommitment: what the service committed to is not the block or the package of the claim.
	ErrCommitment = errors.New("proof: commitment does not bind the claim")
	// ErrTransaction: the transaction is not proved to be in the block.
	ErrTransaction = errors.New("proof: transaction not proved")
)

var (
	// ErrInput: a proof cannot be made of what was given.
	ErrInput = errors.New("proof: invalid input")
	// ErrMalformed: a text is not a document, or not one of this version.
	ErrMalformed = errors.New("proof: malformed document")
	// ErrTrust: what a verifier believes beforehand is incomplete or contradicts itself.
	ErrTrust = errors.New("proof: invalid trust")
	// ErrKey: a key must not vote, because its signatures prove nothing.
	ErrKey = errors.New("proof: key without a vote")
)
