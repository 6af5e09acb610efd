package eoa

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// timeouts wraps a Chain and a Signer with a deadline per call. JSON-RPC
// clients set none, and a step that blocks keeps every other worker off the
// account.
type timeouts struct {
	chain  Chain
	signer Signer
	wait   time.Duration
}

func (p timeouts) Look(ctx context.Context, a common.Address) (Look, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Look(ctx, a)
}

// LookBlobs is Look with the price of blobs, if the chain can return it.
func (p timeouts) LookBlobs(ctx context.Context, a common.Address) (Look, error) {
	chain, knows := p.chain.(BlobChain)
	if !knows {
		return p.Look(ctx, a)
	}
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return chain.LookBlobs(ctx, a)
}

func (p timeouts) Ask(ctx context.Context, q Questions) (Answers, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Ask(ctx, q)
}

// Estimate returns one result for each request, also if the Chain is broken.
func (p timeouts) Estimate(ctx context.Context, from common.Address, requests []*Request) []Estimated {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	results := p.chain.Estimate(ctx, from, requests)
	for len(results) < len(requests) {
		results = append(results, Estimated{Err: fmt.Errorf("eoa: %d estimates, want %d", len(results), len(requests))})
	}
	return results
}

func (p timeouts) Send(ctx context.Context, raws [][]byte) []Sent {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.chain.Send(ctx, raws)
}

func (p timeouts) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.signer.Sign(ctx, a, tx)
}
