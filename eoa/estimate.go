package eoa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/eoa/internal/account"
)

// gasFinished waits until the call, if any, has ended, at most for patience, and if
// idle is set at most until new work arrives. It reports whether the call has
// ended.
func (e *Executor) gasFinished(ctx context.Context, patience time.Duration, idle bool) bool {
	if e.gas == nil || e.gas.ended() {
		return true
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	var woke chan struct{}
	if idle {
		woke = e.signals.woke
	}
	select {
	case <-e.gas.done:
		return true
	case <-late.C:
	case <-woke:
		e.Wake() // for the next step
	case <-ctx.Done():
	}
	return false
}

// withGas returns the jobs whose gas is given or estimated. The others wait for
// the end of the call to the node. choose leaves them out meanwhile, so that other
// requests can go first. more means that choose must be repeated. A call that has
// begun gets Config.Retry to answer before others go first, and more if there are
// none.
func (e *Executor) withGas(ctx context.Context, jobs []account.Job) (ready []account.Job, refused []account.Refusal, more bool, err error) {
	leftOut, patience := e.view.Asking != nil, time.Duration(0)
	switch {
	case e.gas == nil:
		if err := e.hold(ctx); err != nil {
			return nil, nil, false, err
		}
		e.gas, patience = e.askGas(ctx, jobs), e.cfg.Retry
	case len(jobs) == 0:
		patience = e.cfg.Timeout
	}
	finished := e.gasFinished(ctx, patience, len(jobs) == 0)
	switch {
	case ctx.Err() != nil:
		return nil, nil, false, ctx.Err()
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

// estimate fills in missing gas limits, and waits for the node. A job whose gas
// cannot be estimated keeps gas 0. A job that reverts is refused.
func (e *Executor) estimate(ctx context.Context, jobs []account.Job) (out []account.Job, refused []account.Refusal, err error) {
	if err := e.hold(ctx); err != nil {
		return nil, nil, err
	}
	answers := map[uint64]Estimated{}
	if g := e.askGas(ctx, jobs); g != nil {
		defer g.cancel()
		select {
		case <-g.done:
			answers = g.answers
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	out, refused = e.fillGas(jobs, answers)
	return out, refused, nil
}

// fillGas fills in the gas limits that follow from answers.
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

// askGas begins to ask the node for the missing gas limits; nil if there are none
// or the node asked to wait. One call has all jobs, because a node answers a batch
// soonest. A job whose estimate has failed before gets a call for itself, so that
// a request on which the node hangs does not fail the others again. All calls
// together last for at most Config.Timeout.
func (e *Executor) askGas(ctx context.Context, jobs []account.Job) *gasCall {
	var calls [][]*Request
	var ids [][]uint64
	together := -1
	for i := range jobs {
		j := &jobs[i]
		if !j.NeedsGas() {
			continue
		}
		at := together
		if at < 0 || j.Record.Reason == account.NoEstimate {
			at = len(calls)
			calls, ids = append(calls, nil), append(ids, nil)
			if j.Record.Reason != account.NoEstimate {
				together = at
			}
		}
		calls[at], ids[at] = append(calls[at], &j.Record.Request), append(ids[at], j.Record.ID)
	}
	if len(calls) == 0 || e.nodeBusy() {
		return nil
	}
	// The call may outlast the step, and then the context of the step.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Timeout)
	g := &gasCall{cancel: cancel, done: make(chan struct{}), answers: map[uint64]Estimated{}, asking: map[uint64]bool{}}
	go func() {
		defer cancel()
		answers := make([][]Estimated, len(calls))
		var group errgroup.Group
		group.SetLimit(e.cfg.Parallel)
		for c := range calls {
			group.Go(func() error {
				answers[c] = e.chain.Estimate(limited, e.account.Address, calls[c])
				return nil
			})
		}
		_ = group.Wait() // no call returns an error
		for c := range calls {
			for k, id := range ids[c] {
				g.answers[id] = answers[c][k]
			}
		}
		close(g.done)
	}()
	return g
}
