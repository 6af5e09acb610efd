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

// timeouts wraps the host's Chain and Signer, so that no call takes longer than
// Config.Timeout. JSON-RPC clients have no such limit, and no other worker can work
// on the account while a step waits. timeouts also turns a panic of the host's code
// into an error of the call, so that the panic does not end the process.
type timeouts struct {
	chain  Chain
	signer Signer
	wait   time.Duration
	log    *slog.Logger
}

// limited makes a call with the time limit, and turns a panic into an error.
func limited[T any](ctx context.Context, p timeouts, of string, call func(context.Context) (T, error)) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("eoa: panic of %s: %v", of, value)
			// The stack goes to the log and not into the error, because records
			// keep the texts of errors.
			p.log.Error("eoa: panic", "of", of, "value", value, "stack", string(debug.Stack()))
		}
	}()
	return call(ctx)
}

func (p timeouts) Look(ctx context.Context, a common.Address) (Look, error) {
	return limited(ctx, p, "Chain.Look", func(ctx context.Context) (Look, error) { return p.chain.Look(ctx, a) })
}

func (p timeouts) Ask(ctx context.Context, q Questions) (Answers, error) {
	return limited(ctx, p, "Chain.Ask", func(ctx context.Context) (Answers, error) { return p.chain.Ask(ctx, q) })
}

// Estimate returns one result for each request, even if the Chain fails.
func (p timeouts) Estimate(ctx context.Context, from common.Address, requests []*Request) []Estimated {
	results, err := limited(ctx, p, "Chain.Estimate", func(ctx context.Context) ([]Estimated, error) {
		return p.chain.Estimate(ctx, from, requests), nil
	})
	for len(results) < len(requests) {
		if err == nil {
			err = fmt.Errorf("eoa: %d estimates, want %d", len(results), len(requests))
		}
		results = append(results, Estimated{Err: err})
	}
	return results
}

// Send returns one result for each transaction, even if the Chain fails.
func (p timeouts) Send(ctx context.Context, raws [][]byte) []Sent {
	results, err := limited(ctx, p, "Chain.Send", func(ctx context.Context) ([]Sent, error) { return p.chain.Send(ctx, raws), nil })
	if len(results) != len(raws) {
		// The zero result is Unknown, because the node may have any of the
		// transactions.
		results = make([]Sent, len(raws))
	}
	for i := range results {
		if err != nil {
			results[i].Text = err.Error()
		}
	}
	return results
}

func (p timeouts) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	return limited(ctx, p, "Signer.Sign", func(ctx context.Context) (*types.Transaction, error) { return p.signer.Sign(ctx, a, tx) })
}

// noteBusy stops all calls to the node for a while if err wraps [*BusyError].
func (e *Executor) noteBusy(err error) {
	var busy *BusyError
	if errors.As(err, &busy) {
		e.view.SetQuietUntil(&e.rules, e.cfg.Now(), busy.RetryAfter)
	}
}

// nodeBusy reports whether the node has requested a wait that has not ended.
func (e *Executor) nodeBusy() bool { return e.cfg.Now().Before(e.view.Quiet) }
