package eoa

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/eoa/internal/account"
)

// signAndSend signs jobs, stores the signatures, and sends the transactions.
func (e *Executor) signAndSend(ctx context.Context, jobs []account.Job) error {
	var signed []account.Signed
	var later []account.Refusal
	for part := range slices.Chunk(jobs, e.cfg.Parallel) {
		// Signing may take long. Renew the lease before each part, because signatures are
		// useless to a worker that has lost the lease.
		if err := e.ensureLease(ctx); err != nil {
			return err
		}
		done, err := e.signAll(ctx, part)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		signed = append(signed, done...)
		if e.signErr = err; err != nil {
			failed := part[len(done)].Record
			e.cfg.Logger.Warn("eoa: signing failed", "account", e.account.String(), "key", failed.Key, "err", err)
			later = append(later, account.Refusal{Record: failed, Reason: err.Error()})
			// Without this nonce, the chain executes no transaction with a higher nonce, so
			// leave the other jobs unsigned.
			break
		}
	}
	if err := e.ensureLease(ctx); err != nil {
		return err
	}
	now := e.cfg.Now()
	if err := e.commit(ctx, e.view.Prepare(&e.rules, now, signed, later)); err != nil {
		return err
	}
	e.report.Signed += len(signed)
	return e.sendDue(ctx)
}

// sendDue sends the stored transactions that are due, and stores the node's
// answers.
func (e *Executor) sendDue(ctx context.Context) error {
	for {
		now := e.cfg.Now()
		out := e.view.ToSend(&e.rules, now, e.cfg.Batch)
		if len(out) == 0 {
			return nil
		}
		raws := make([][]byte, len(out))
		for i := range out {
			var err error
			if raws[i], err = out[i].Wire(e.cfg.CellProofs); err != nil {
				return err
			}
			if out[i].First {
				e.report.Sent++
			} else {
				e.report.Recovered++
			}
		}
		if err := e.ensureLease(ctx); err != nil {
			return err
		}
		results := e.chain.Send(ctx, raws)
		for i, s := range results {
			if s.Result == Accepted {
				e.report.Accepted++
				e.watch.eager = e.watch.eager || out[i].First
			}
			if s.Reason == ReasonNonceTooLow {
				e.signals.requestLook()
			}
		}
		b := e.view.ApplyResults(&e.rules, e.cfg.Now(), out, results)
		// If no record has changed, the batch contains only the time of the last send. It can
		// wait for the next commit.
		if e.stage(b); len(b.Records) > 0 {
			if err := e.commitStaged(ctx); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// signAll requests the signatures of all jobs at the same time.
func (e *Executor) signAll(ctx context.Context, jobs []account.Job) ([]account.Signed, error) {
	signed, failed := make([]account.Signed, len(jobs)), make([]error, len(jobs))
	var group errgroup.Group
	for i := range jobs {
		group.Go(func() error {
			signed[i], failed[i] = e.signOne(ctx, jobs[i])
			return nil
		})
	}
	_ = group.Wait() // all results are in failed
	for i, err := range failed {
		if err != nil {
			// Use the signatures before the first failure.
			return signed[:i], err
		}
	}
	return signed, nil
}

// signOne requests a signature, and checks the result.
func (e *Executor) signOne(ctx context.Context, j account.Job) (account.Signed, error) {
	want, err := j.Transaction(e.account)
	if err != nil {
		return account.Signed{}, err
	}
	got, err := e.signer.Sign(ctx, e.account.Address, want)
	if err != nil {
		return account.Signed{}, fmt.Errorf("eoa: signing for %v: %w", e.account, err)
	}
	if got == nil {
		return account.Signed{}, fmt.Errorf("%w: signer returned no transaction", ErrSigner)
	}
	// The signer is not trusted: the result must be the requested transaction,
	// signed by the account.
	rules := types.LatestSignerForChainID(new(big.Int).SetUint64(e.account.ChainID))
	if got.Type() != want.Type() || rules.Hash(got) != rules.Hash(want) || !got.Protected() {
		return account.Signed{}, fmt.Errorf("%w: the signed transaction is not the requested one", ErrSigner)
	}
	if from, err := types.Sender(rules, got); err != nil || from != e.account.Address {
		return account.Signed{}, fmt.Errorf("%w: signed by %v, want %v", ErrSigner, from, e.account.Address)
	}
	raw, err := got.WithoutBlobTxSidecar().MarshalBinary()
	if err != nil {
		return account.Signed{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	proofs, err := account.Prove(j.Blobs(), e.cfg.CellProofs)
	return account.Signed{Job: j, Tx: got.Hash(), Raw: raw, Proofs: proofs}, err
}
