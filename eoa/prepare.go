package eoa

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// estimate fills in missing gas limits. A job whose gas cannot be estimated
// keeps gas 0. A job that reverts is refused.
func (e *Executor) estimate(ctx context.Context, jobs []Job) (out []Job, refused []refusal, err error) {
	results, err := e.askGas(ctx, jobs)
	if err != nil {
		return nil, nil, err
	}
	for i, j := range jobs {
		answer, asked := results[i]
		if asked && errors.Is(answer.Err, ErrReverted) {
			refused = append(refused, refusal{j.Record, answer.Err.Error()})
			continue
		}
		if asked && answer.Err == nil && answer.Gas > maxGas {
			answer = Estimated{Err: fmt.Errorf("estimate of %d gas, want at most %d", answer.Gas, maxGas)}
		}
		if answer.Err != nil {
			e.noteBusy(answer.Err)
			e.cfg.Log.Warn("eoa: gas estimate failed", "account", e.account.String(), "key", j.Record.Key, "err", answer.Err)
		} else if asked {
			j.Gas = e.view.gasLimit(&e.cfg, &j.Record, answer.Gas)
		}
		out = append(out, j)
	}
	return out, refused, nil
}

// askGas asks the node for the missing gas limits, and returns the answers by
// the index of the job. One call has all jobs, because a node answers a batch
// soonest. A job whose estimate has failed before gets a call for itself, so that
// a request on which the node hangs does not fail the others again. All calls
// together last for at most Config.Timeout.
func (e *Executor) askGas(ctx context.Context, jobs []Job) (map[int]Estimated, error) {
	var calls [][]int // indexes of jobs
	together := -1
	for i := range jobs {
		switch j := &jobs[i]; {
		case j.Gas > 0 || j.Noop:
		case j.Record.Reason == noEstimate:
			calls = append(calls, []int{i})
		case together < 0:
			together = len(calls)
			calls = append(calls, []int{i})
		default:
			calls[together] = append(calls[together], i)
		}
	}
	if len(calls) == 0 || e.nodeBusy() {
		return nil, nil
	}
	if err := e.hold(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	answers := make([][]Estimated, len(calls))
	var group errgroup.Group
	group.SetLimit(e.cfg.Parallel)
	for c, call := range calls {
		group.Go(func() error {
			requests := make([]*Request, len(call))
			for k, i := range call {
				requests[k] = &jobs[i].Record.Request
			}
			answers[c] = e.chain.Estimate(limited, e.account.Address, requests)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	out := map[int]Estimated{}
	for c, call := range calls {
		for k, i := range call {
			out[i] = answers[c][k]
		}
	}
	return out, ctx.Err()
}

// gasLimit returns the gas limit of a transaction that needs an estimated amount
// of gas: more by the margin, but not more than a block or a transaction may
// have if the estimate itself is below that. If a node has refused the limit of
// an earlier attempt, it is the estimate.
func (v *view) gasLimit(c *Config, r *Record, estimate uint64) uint64 {
	if r.overGasLimit() > 0 {
		return estimate
	}
	limit := estimate + estimate/100*c.GasMargin
	for _, most := range []uint64{maxTxGas, v.look.GasLimit} {
		if estimate <= most {
			limit = min(limit, most)
		}
	}
	return limit
}

// overGasLimit returns how many attempts a node has refused because of their gas
// limit.
func (r *Record) overGasLimit() int {
	n := 0
	for i := range r.Attempts {
		if Classify(r.Attempts[i].Why) == ReasonGasLimit {
			n++
		}
	}
	return n
}

// prepare signs jobs and commits the result. It stops at the first job that
// cannot be signed, because later nonces depend on it, and postpones that one.
func (e *Executor) prepare(ctx context.Context, jobs []Job) error {
	var signed []signedJob
	var later []refusal
	for part := range slices.Chunk(jobs, e.cfg.Parallel) {
		// Signers may be slow, and a batch that outlasts the lease is never
		// sent.
		if err := e.hold(ctx); err != nil {
			return err
		}
		done, err := e.signAll(ctx, part)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		signed = append(signed, done...)
		if e.signErr = err; err != nil {
			failed := part[len(done)].Record
			e.cfg.Log.Warn("eoa: signing failed", "account", e.account.String(), "key", failed.Key, "err", err)
			later = append(later, refusal{failed, err.Error()})
			break
		}
	}
	if err := e.hold(ctx); err != nil {
		return err
	}
	now := e.cfg.Clock.Now()
	if err := e.commit(ctx, e.view.prepared(now, signed)); err != nil {
		return err
	}
	e.report.Signed += len(signed)
	return e.commit(ctx, e.view.postpone(&e.cfg, now, later))
}

// signAll signs jobs at the same time. It returns those before the first that
// failed, and its error.
func (e *Executor) signAll(ctx context.Context, jobs []Job) ([]signedJob, error) {
	signed, failed := make([]signedJob, len(jobs)), make([]error, len(jobs))
	var group errgroup.Group
	for i := range jobs {
		group.Go(func() error {
			signed[i], failed[i] = e.sign(ctx, jobs[i])
			return nil
		})
	}
	_ = group.Wait() // all results are in failed
	for i, err := range failed {
		if err != nil {
			return signed[:i], err
		}
	}
	return signed, nil
}

// sign requests a signature and checks that the result is the requested
// transaction, signed by the account.
func (e *Executor) sign(ctx context.Context, j Job) (signedJob, error) {
	want, err := j.Transaction(e.account)
	if err != nil {
		return signedJob{}, err
	}
	got, err := e.signer.Sign(ctx, e.account.Address, want)
	if err != nil {
		return signedJob{}, fmt.Errorf("eoa: signing for %v: %w", e.account, err)
	}
	if got == nil {
		return signedJob{}, fmt.Errorf("%w: signer returned no transaction", ErrSigner)
	}
	rules := types.LatestSignerForChainID(e.account.chainID())
	if got.Type() != want.Type() || rules.Hash(got) != rules.Hash(want) || !got.Protected() {
		return signedJob{}, fmt.Errorf("%w: the signed transaction is not the requested one", ErrSigner)
	}
	if from, err := types.Sender(rules, got); err != nil || from != e.account.Address {
		return signedJob{}, fmt.Errorf("%w: signed by %v, want %v", ErrSigner, from, e.account.Address)
	}
	raw, err := got.WithoutBlobTxSidecar().MarshalBinary()
	if err != nil {
		return signedJob{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	proofs, err := prove(j.blobs(), e.cfg.CellProofs)
	return signedJob{Job: j, Tx: got.Hash(), Raw: raw, Proofs: proofs}, err
}
