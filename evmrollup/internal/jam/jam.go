// Package jam connects the reference node to its JAM chain, which is either simulated
// in the node's process or the chain of a JAM node.
package jam

import (
	"context"
	"errors"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/submit"
)

// Network connects an EVM rollup node to its JAM chain. It is a builder.Network with
// additional methods.
type Network interface {
	builder.Network
	builder.Receiver
	// Spec returns the constants of the chain.
	Spec() jamq.ChainSpec
	// Run makes the blocks of a simulated chain until ctx ends. For the chain of a JAM
	// node, it only waits until ctx ends.
	Run(ctx context.Context) error
	// Heads returns the best and the finalized JAM block.
	Heads() (best, finalized jamq.Block)
	// Health returns the condition of the feed that delivers JAM blocks.
	Health() submit.FeedHealth
	// Prove returns the JAM part of a proof that a rollup block is final, and the trusted
	// data that verify this proof. Trust returns the data that a verifier must trust now.
	// Handoff returns the proof of the validator set that follows the given set. Errors
	// wrap ErrNoProofs.
	Prove(ctx context.Context, number uint64) (*proof.Document, *proof.Trust, error)
	Trust(ctx context.Context) (*proof.Trust, error)
	Handoff(ctx context.Context, set uint64) (*proof.Handoff, error)
	// Close closes the connection to the JAM chain, if there is one.
	Close()
}

// ErrNoProofs is returned if the JAM chain does not provide the data for proofs.
var ErrNoProofs = errors.New("jam: no finality proofs")
