package eoa

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// timeouts wraps a Chain and a Signer with a deadline per call. JSON-RPC
// clients set none, and a step that blocks keeps every other worker off the
// account. A panic of the host's code counts as a failure of the call: it would
// end the process, and all other accounts with it.
type timeouts struct {
	chain  Chain
	signer Signer
	wait   time.Duration
	log    *slog.Logger
}

// catch turns a panic into an error. It is deferred. The stack is only logged,
// because a record keeps the text of the error.
func (p timeouts) catch(of string, err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("eoa: panic of %s: %v", of, value)
		p.log.Error("eoa: panic", "of", of, "value", value, "stack", string(debug.Stack()))
	}
}

func (p timeouts) Look(ctx context.Context, a common.Address) (l Look, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	defer p.catch("Chain.Look", &err)
	return p.chain.Look(ctx, a)
}

// LookBlobs is Look with the price of blobs, if the chain can return it.
func (p timeouts) LookBlobs(ctx context.Context, a common.Address) (l Look, err error) {
	chain, knows := p.chain.(BlobChain)
	if !knows {
		return p.Look(ctx, a)
	}
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	defer p.catch("BlobChain.LookBlobs", &err)
	return chain.LookBlobs(ctx, a)
}

func (p timeouts) Ask(ctx context.Context, q Questions) (a Answers, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	defer p.catch("Chain.Ask", &err)
	return p.chain.Ask(ctx, q)
}

// Estimate returns one result for each request, also if the Chain is broken.
func (p timeouts) Estimate(ctx context.Context, from common.Address, requests []*Request) []Estimated {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	var err error
	results := func() []Estimated {
		defer p.catch("Chain.Estimate", &err)
		return p.chain.Estimate(ctx, from, requests)
	}()
	for len(results) < len(requests) {
		if err == nil {
			err = fmt.Errorf("eoa: %d estimates, want %d", len(results), len(requests))
		}
		results = append(results, Estimated{Err: err})
	}
	return results
}

// Send returns one result for each transaction. If the Chain is broken, all are
// unknown.
func (p timeouts) Send(ctx context.Context, raws [][]byte) []Sent {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	var err error
	results := func() []Sent {
		defer p.catch("Chain.Send", &err)
		return p.chain.Send(ctx, raws)
	}()
	if len(results) != len(raws) {
		results = make([]Sent, len(raws))
	}
	for i := range results {
		if err != nil {
			results[i].Text = err.Error()
		}
	}
	return results
}

func (p timeouts) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (signed *types.Transaction, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	defer p.catch("Signer.Sign", &err)
	return p.signer.Sign(ctx, a, tx)
}

// noteBusy stops using the node for a while if err wraps [*BusyError].
func (e *Executor) noteBusy(err error) {
	var busy *BusyError
	if errors.As(err, &busy) {
		e.view.SetQuietUntil(&e.rules, e.cfg.Now(), busy.RetryAfter)
	}
}

// nodeBusy reports whether the node asked us to wait and the wait is not over.
func (e *Executor) nodeBusy() bool { return e.cfg.Now().Before(e.view.QuietUntil()) }
