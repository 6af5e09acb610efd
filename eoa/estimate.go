package eoa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/eoa/internal/account"
)

// assignAndSend gives the chosen requests gas, nonces and prices, and sends them.
func (e *Executor) assignAndSend(ctx context.Context, now time.Time, jobs []account.Job) (more bool, err error) {
	jobs, reverting, more, err := e.jobsWithGas(ctx, jobs)
	if err != nil {
		return false, err
	}
	assigned, b := e.view.Assign(&e.rules, now, jobs, reverting, e.inbox.pending)
	if err := e.commit(ctx, b); err != nil || len(assigned) == 0 {
		return more || len(b.Add) > 0, err
	}
	return true, e.signAndSend(ctx, assigned)
}

// awaitGasCall waits for the gas call, at most for patience, and reports its end.
func (e *Executor) awaitGasCall(ctx context.Context, patience time.Duration, idle bool) bool {
	if e.gas == nil || e.gas.ended() {
		return true
	}
	var woke chan struct{}
	// If the executor has nothing else to do, new work also ends the wait.
	if idle {
		woke = e.signals.woke
	}
	select {
	case <-e.gas.done:
		return true
	case <-time.After(patience):
	case <-woke:
		e.Wake() // for the next step
	case <-ctx.Done():
	}
	return false
}

// jobsWithGas returns the jobs that can be sent now because their gas is known.
func (e *Executor) jobsWithGas(ctx context.Context, jobs []account.Job) (ready []account.Job, refused []account.Refusal, more bool, err error) {
	leftOut, patience := e.view.Asking != nil, time.Duration(0)
	switch {
	case e.gas == nil:
		if err := e.ensureLease(ctx); err != nil {
			return nil, nil, false, err
		}
		// Ask the node for the missing estimates, but do not let a slow node delay
		// the other jobs.
		e.gas, patience = e.startGasCall(ctx, jobs), e.cfg.Retry
	case len(jobs) == 0:
		// Nothing else can be sent, so wait longer.
		patience = e.cfg.Timeout
	}
	finished := e.awaitGasCall(ctx, patience, len(jobs) == 0)
	switch {
	case ctx.Err() != nil:
		return nil, nil, false, ctx.Err()
	// Choose left out the requests of this call, so choose again.
	case finished && leftOut:
		return nil, nil, true, nil
	}
	answers := map[uint64]Estimated{}
	if finished && e.gas != nil {
		answers = e.gas.answers
	}
	held := map[string]bool{} // groups stay in order
	for _, j := range jobs {
		r := &j.Record
		_, answered := answers[r.ID]
		switch {
		case r.Group != "" && held[r.Group]:
		case e.gas != nil && j.NeedsGas() && !answered:
			more, held[r.Group] = true, true
			// Choose leaves this request out until the call has ended, and other
			// requests go first.
			e.gas.asking[r.ID] = true
		default:
			ready = append(ready, j)
		}
	}
	if finished {
		e.gas = nil
	}
	ready, refused = e.fillGas(ready, answers)
	return ready, refused, more, nil
}

// estimate waits for the node's gas estimates; refused has the jobs that would
// revert.
func (e *Executor) estimate(ctx context.Context, jobs []account.Job) (out []account.Job, refused []account.Refusal, err error) {
	if err := e.ensureLease(ctx); err != nil {
		return nil, nil, err
	}
	answers := map[uint64]Estimated{}
	if g := e.startGasCall(ctx, jobs); g != nil {
		defer g.cancel()
		select {
		case <-g.done:
			answers = g.answers
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	// A job whose gas cannot be estimated keeps gas 0.
	out, refused = e.fillGas(jobs, answers)
	return out, refused, nil
}

// fillGas sets gas limits from the node's answers; refused has jobs that would
// revert.
func (e *Executor) fillGas(jobs []account.Job, answers map[uint64]Estimated) (out []account.Job, refused []account.Refusal) {
	for _, j := range jobs {
		answer, asked := answers[j.Record.ID]
		asked = asked && j.NeedsGas()
		if asked && errors.Is(answer.Err, ErrReverted) {
			refused = append(refused, account.Refusal{Record: j.Record, Reason: answer.Err.Error()})
			continue
		}
		if asked && answer.Err == nil && answer.Gas > maxGas {
			answer = Estimated{Err: fmt.Errorf("estimate of %d gas, want at most %d", answer.Gas, maxGas)}
		}
		if asked && answer.Err != nil {
			e.noteBusy(answer.Err)
			e.cfg.Logger.Warn("eoa: gas estimate failed", "account", e.account.String(), "key", j.Record.Key, "err", answer.Err)
		} else if asked {
			j.Gas = e.view.GasLimit(&e.rules, &j.Record, answer.Gas)
		}
		out = append(out, j)
	}
	return out, refused
}

// startGasCall asks the node, in the background, for the missing gas limits of
// jobs.
func (e *Executor) startGasCall(ctx context.Context, jobs []account.Job) *gasCall {
	var calls [][]account.Job
	var together []account.Job
	for _, j := range jobs {
		switch {
		case !j.NeedsGas():
		case j.Record.Reason == account.NoEstimate:
			// This estimate has failed before. It gets a separate call, so that a
			// node that hangs on it still answers for the other jobs.
			calls = append(calls, []account.Job{j})
		default:
			together = append(together, j)
		}
	}
	if len(together) > 0 {
		// Nodes answer a batch faster than many calls.
		calls = append(calls, together)
	}
	if len(calls) == 0 || e.nodeBusy() {
		return nil
	}
	// The call may outlast the step and therefore the step's context.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Timeout)
	g := &gasCall{cancel: cancel, done: make(chan struct{}), answers: map[uint64]Estimated{}, asking: map[uint64]bool{}}
	go func() {
		defer cancel()
		answers := make([][]Estimated, len(calls))
		var group errgroup.Group
		group.SetLimit(e.cfg.Parallel)
		for c, jobs := range calls {
			group.Go(func() error {
				requests := make([]*Request, len(jobs))
				for i := range jobs {
					requests[i] = &jobs[i].Record.Request
				}
				answers[c] = e.chain.Estimate(limited, e.account.Address, requests)
				return nil
			})
		}
		_ = group.Wait() // no call returns an error
		for c, jobs := range calls {
			for i := range jobs {
				g.answers[jobs[i].Record.ID] = answers[c][i]
			}
		}
		close(g.done)
	}()
	return g
}
