package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// patience is a chain and a signer that are not waited for without end: clients of JSON-RPC have no time-outs of their own, and a step that waits keeps
// the account from everybody.
type patience struct {
	chain  Chain
	signer Signer
	wait   time.Duration
}

func (p patience) Look(ctx context.Context, a common.Address) (Look, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Look(ctx, a)
}

// LookBlobs is a Look with the price of blobs, if the chain knows it.
func (p patience) LookBlobs(ctx context.Context, a common.Address) (Look, error) {
	chain, knows := p.chain.(BlobChain)
	if !knows {
		return p.Look(ctx, a)
	}
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return chain.LookBlobs(ctx, a)
}

func (p patience) Ask(ctx context.Context, q Questions) (Answers, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Ask(ctx, q)
}

func (p patience) Estimate(ctx context.Context, from common.Address, r *Request) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Estimate(ctx, from, r)
}

func (p patience) Send(ctx context.Context, raws [][]byte) []Sent {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Send(ctx, raws)
}

func (p patience) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.signer.Sign(ctx, a, tx)
}
