package eoa

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/backoff"
)

// Step does all work that is due now. It returns when the next step is due if
// nothing wakes the executor earlier; zero means never. After an error the next
// step starts from the store's state. Errors wrap ErrHeld if another worker
// holds the account or ErrStopped if it is stopped, or come from the store. A
// failure of the chain or the signer is not an error; it is logged, and next is
// the time of the retry.
func (e *Executor) Step(ctx context.Context) (next time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report = Report{Account: e.account}
	if e.signals.woken() {
		e.inbox.expire()
	}
	next, err = e.step(ctx)
	e.setProblems(e.diagnose(err))
	e.report.Problems = slices.Clone(e.problems)
	e.tellStats(err == nil)
	if err != nil {
		e.view = nil // unknown what was committed: load again
		if errors.Is(err, ErrFenced) {
			e.drop()
		}
	}
	if e.cfg.Observe != nil {
		e.cfg.Observe(e.report)
	}
	return next, err
}

// step makes the decisions in their order, which the safety rules need:
//
//  1. hold: the lease, and the account as the store has it
//  2. read: the orders of users, and the first requests without a nonce
//  3. observe: the outcomes on the chain; a doubt about the node or the store stops
//     the account
//  4. broadcast: signed transactions that are due are sent, some of them again;
//     replacements are signed and sent
//  5. sendNew, until nothing more fits: requests get nonces, are signed, committed and sent
//  6. finish: old records are dropped; without work the account is given back
//
// Each decision is written before the next one depends on it. Observations of the chain
// are written with the next decision.
func (e *Executor) step(ctx context.Context) (time.Time, error) {
	if err := e.hold(ctx); err != nil {
		return time.Time{}, err
	}
	if e.view.Head.Stop.Cause != CauseNone { // another process may have ordered it to go on
		e.inbox.expire()
	}
	if err := e.read(ctx); err != nil {
		return time.Time{}, err
	}
	if err := e.stopped(); err != nil {
		return time.Time{}, err
	}
	ready, err := e.observe(ctx)
	if err == nil && e.view.Head.Stop.Cause != CauseNone {
		if err = e.commitStaged(ctx); err == nil {
			err = e.stopped()
		}
	}
	if err != nil {
		return time.Time{}, err
	}
	if err := e.broadcast(ctx, ready); err != nil {
		return time.Time{}, err
	}
	for ready && !e.nodeBusy() {
		moved, err := e.sendNew(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if !moved {
			break
		}
	}
	return e.finish(ctx)
}

// broadcast sends the stored bytes that are due. If the chain is known well
// enough, it also sends the replacements that are due.
func (e *Executor) broadcast(ctx context.Context, ready bool) error {
	if err := e.sendDue(ctx); err != nil || !ready {
		return err
	}
	now := e.cfg.Now()
	jobs, b := e.view.Bump(&e.rules, now)
	if err := e.commit(ctx, b); err != nil || len(jobs) == 0 {
		return err
	}
	jobs, reverting, err := e.estimate(ctx, jobs)
	if err != nil {
		return err
	}
	jobs, b = e.view.Hold(&e.rules, now, jobs, reverting)
	if err := e.commit(ctx, b); err != nil {
		return err
	}
	if err := e.sign(ctx, jobs); err != nil {
		return err
	}
	return e.sendDue(ctx)
}

// sendDue sends the bytes that are due, in batches and in nonce order.
func (e *Executor) sendDue(ctx context.Context) error {
	for {
		now := e.cfg.Now()
		out := e.view.Due(&e.rules, now, e.cfg.Batch)
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
		if err := e.hold(ctx); err != nil {
			return err
		}
		results := e.chain.Send(ctx, raws)
		for i, s := range results {
			if s.Result == Accepted {
				e.report.Accepted++
				e.watch.eager = e.watch.eager || out[i].First
			}
			if s.Reason == ReasonNonceTooLow {
				e.signals.noteHead()
			}
		}
		b := e.view.Hear(&e.rules, e.cfg.Now(), out, results)
		// Without records the batch only updates Head.Resent: one write for all
		// batches is enough.
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

// sendNew assigns nonces to a batch of requests, signs, commits and broadcasts. It
// reports whether there may be more to send.
func (e *Executor) sendNew(ctx context.Context) (moved bool, err error) {
	if err := e.read(ctx); err != nil {
		return false, err
	}
	now := e.cfg.Now()
	if e.view.Asking = nil; e.gas != nil && !e.gas.ended() {
		e.view.Asking = e.gas.asking
	}
	jobs, ended := e.view.Choose(&e.rules, now, e.inbox.pending)
	if err := e.commit(ctx, ended); err != nil {
		return false, err
	}
	if len(jobs) == 0 && !e.view.PoolBlocked() && e.view.Room(&e.rules) > 0 && e.inbox.widen() {
		return true, nil
	}
	if len(jobs) > 0 {
		e.inbox.window = leastWindow * e.cfg.Batch
	}
	jobs, reverting, more, err := e.withGas(ctx, jobs[:min(len(jobs), e.cfg.Batch)])
	if err != nil {
		return false, err
	}
	assigned, b := e.view.Assign(&e.rules, now, jobs, reverting, e.inbox.pending)
	if err := e.commit(ctx, b); err != nil || len(assigned) == 0 {
		return more || len(b.Add) > 0, err
	}
	if err := e.sign(ctx, assigned); err != nil {
		return false, err
	}
	return true, e.sendDue(ctx)
}

// finish ends a step. It returns when the next step is due, or releases the
// account if no work is left.
func (e *Executor) finish(ctx context.Context) (time.Time, error) {
	busy := len(e.view.Open) > 0 || e.inbox.has()
	if err := e.dropOld(ctx, !busy); err != nil {
		return time.Time{}, err
	}
	if err := e.commitStaged(ctx); err != nil {
		return time.Time{}, err
	}
	now := e.cfg.Now()
	if busy {
		return e.nextStep(now), nil
	} else if e.history.after > 0 {
		return now, nil // more is old
	}
	e.report.Commits++
	err := e.store.Park(ctx, e.lease, e.inbox.wake, time.Time{})
	if errors.Is(err, ErrWoken) {
		e.Wake()
		return now, nil
	}
	if err == nil {
		e.drop()
	}
	return time.Time{}, err
}

// nextStep returns when the next step is due.
func (e *Executor) nextStep(now time.Time) time.Time {
	next := now.Add(min(e.cfg.Rebroadcast, e.cfg.LeaseFor/3))
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if !e.watch.priced && e.watch.failed == 0 && e.wantsBlobs() {
		earlier(now)
	}
	if e.cfg.Poll > 0 {
		earlier(now.Add(e.cfg.Poll))
	}
	if e.watch.eager && e.watch.failed == 0 && len(e.inbox.pending) > 0 && e.view.Room(&e.rules) == 0 {
		// Some nodes make a block at once. One look shows it.
		e.signals.noteHead()
		earlier(now)
	}
	if e.watch.failed > 0 {
		earlier(now.Add(backoff.Wait(e.cfg.Retry, account.MaxRetry, e.watch.failed)))
	}
	if e.gas != nil {
		earlier(now.Add(e.cfg.Retry))
	}
	for at := range e.view.SendTimes(&e.rules, now) {
		earlier(at)
	}
	for i := range e.inbox.pending {
		if at := e.inbox.pending[i].NotBefore; at.After(now) {
			earlier(at)
		}
	}
	if q := e.view.QuietUntil(); q.After(next) {
		next = q
	}
	if next.Before(now) || e.history.after > 0 {
		next = now
	}
	return next
}
