package eoa

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
)

// estimate fills in missing gas limits. A job whose gas cannot be estimated
// keeps gas 0. A job that reverts is refused.
func (e *Executor) estimate(ctx context.Context, jobs []Job) (out []Job, refused []Refusal, err error) {
	for _, j := range jobs {
		if j.Gas == 0 && !j.Noop && !e.nodeBusy() {
			if err := e.hold(ctx); err != nil {
				return nil, nil, err
			}
			gas, err := e.chain.Estimate(ctx, e.account.Address, &j.Record.Request)
			if errors.Is(err, ErrReverted) {
				refused = append(refused, Refusal{j.Record, err.Error()})
				continue
			}
			if err == nil && gas > maxGas {
				err = fmt.Errorf("estimate of %d gas, want at most %d", gas, maxGas)
			}
			if err != nil {
				e.noteBusy(err)
				e.cfg.Log.Warn("eoa: gas estimate failed", "account", e.account.String(), "key", j.Record.Key, "err", err)
				gas = 0
			}
			j.Gas = e.view.gasLimit(&e.cfg, &j.Record, gas)
		}
		out = append(out, j)
	}
	return out, refused, nil
}

// gasLimit returns the gas limit of a transaction that needs an estimated amount
// of gas: more by the margin, but not more than a block or a transaction may
// have if the estimate itself is below that. If a node has refused the limit of
// an earlier attempt, it is the estimate.
func (v *View) gasLimit(c *Config, r *Record, estimate uint64) uint64 {
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
// cannot be signed, and postpones that one.
func (e *Executor) prepare(ctx context.Context, jobs []Job) error {
	var signed []Signed
	var later []Refusal
	for _, j := range jobs {
		// Signers may be slow, and a batch that outlasts the lease is never
		// sent.
		if err := e.hold(ctx); err != nil {
			return err
		}
		s, err := e.sign(ctx, j)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e.cfg.Log.Warn("eoa: signing failed", "account", e.account.String(), "key", j.Record.Key, "err", err)
			later = append(later, Refusal{j.Record, err.Error()})
			break // later nonces depend on this one
		}
		signed = append(signed, s)
	}
	if err := e.hold(ctx); err != nil {
		return err
	}
	now := e.cfg.Clock.Now()
	if err := e.commit(ctx, e.view.Prepared(now, signed)); err != nil {
		return err
	}
	e.report.Signed += len(signed)
	return e.commit(ctx, e.view.Postpone(&e.cfg, now, later))
}

// sign requests a signature and checks that the result is the requested
// transaction, signed by the account.
func (e *Executor) sign(ctx context.Context, j Job) (Signed, error) {
	want, err := j.Transaction(e.account)
	if err != nil {
		return Signed{}, err
	}
	got, err := e.signer.Sign(ctx, e.account.Address, want)
	if err != nil {
		return Signed{}, fmt.Errorf("eoa: signing for %v: %w", e.account, err)
	}
	if got == nil {
		return Signed{}, fmt.Errorf("%w: signer returned no transaction", ErrSigner)
	}
	rules := types.LatestSignerForChainID(e.account.chainID())
	if got.Type() != want.Type() || rules.Hash(got) != rules.Hash(want) || !got.Protected() {
		return Signed{}, fmt.Errorf("%w: the signed transaction is not the requested one", ErrSigner)
	}
	if from, err := types.Sender(rules, got); err != nil || from != e.account.Address {
		return Signed{}, fmt.Errorf("%w: signed by %v, want %v", ErrSigner, from, e.account.Address)
	}
	raw, err := got.WithoutBlobTxSidecar().MarshalBinary()
	if err != nil {
		return Signed{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	proofs, err := prove(j.blobs(), e.cfg.CellProofs)
	return Signed{Job: j, Tx: got.Hash(), Raw: raw, Proofs: proofs}, err
}
