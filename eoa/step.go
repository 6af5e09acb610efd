package eoa

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/backoff"
)

// Step does all work that is due now, and returns when the next step is due; zero
// means never. The next step is due earlier if the executor is woken.
//
// The error wraps ErrHeld if another worker holds the account, or ErrStopped if the
// account is stopped. Any other error comes from the store, and the next step then
// starts from the stored state. A failure of the chain or the signer is logged and
// is not an error; next is then the time of the next try.
func (e *Executor) Step(ctx context.Context) (next time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report = Report{Account: e.account}
	if e.signals.woken() {
		e.inbox.expire()
	}
	next, err = e.step(ctx)
	e.setProblems(e.findProblems(err))
	e.report.Problems = slices.Clone(e.problems)
	e.publishStats(err == nil)
	if err != nil {
		e.view = nil // unknown what was committed: load again
		if errors.Is(err, ErrFenced) {
			e.forgetLease()
		}
	}
	if e.cfg.Observe != nil {
		e.cfg.Observe(e.report)
	}
	return next, err
}

// step makes all decisions of a step, in the order that the safety rules need. Each
// decision is stored before the next one depends on it.
func (e *Executor) step(ctx context.Context) (time.Time, error) {
	// Acquire the account, and load its records as the store has them.
	if err := e.ensureLease(ctx); err != nil {
		return time.Time{}, err
	}
	if e.view.Head.Stop.Cause != account.CauseNone { // another process may have ordered it to go on
		e.inbox.expire()
	}
	// Carry out the users' orders, and read the first requests without a nonce.
	if err := e.readInbox(ctx); err != nil {
		return time.Time{}, err
	}
	if err := e.stopped(); err != nil {
		return time.Time{}, err
	}
	// Learn from the chain which transactions were mined. This may also show that the store or
	// the node cannot be trusted, which stops the account.
	ready, err := e.observeChain(ctx)
	if err == nil && e.view.Head.Stop.Cause != account.CauseNone {
		if err = e.commitStaged(ctx); err == nil {
			err = e.stopped()
		}
	}
	if err != nil {
		return time.Time{}, err
	}
	// Send the signed transactions that are due. Then sign stuck transactions
	// again, at a higher price.
	if err := e.broadcast(ctx, ready); err != nil {
		return time.Time{}, err
	}
	// Give nonces to requests, and sign, store and send them, until no more
	// requests fit.
	for ready && !e.nodeBusy() {
		moved, err := e.sendNew(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if !moved {
			break
		}
	}
	// Drop old records. If no work is left, give back the lease.
	return e.finish(ctx)
}

// broadcast sends the signed transactions that are due, and replaces those that are
// stuck.
func (e *Executor) broadcast(ctx context.Context, ready bool) error {
	if err := e.sendDue(ctx); err != nil || !ready {
		return err
	}
	now := e.cfg.Now()
	// Sign a transaction again if it is stuck, if nodes refuse it, or if the user has changed
	// its request. The nonce stays the same, and the price is usually higher.
	jobs, b := e.view.Bumps(&e.rules, now)
	if err := e.commit(ctx, b); err != nil || len(jobs) == 0 {
		return err
	}
	jobs, reverting, err := e.estimate(ctx, jobs)
	if err != nil {
		return err
	}
	jobs, b = e.view.EstimatedBumps(&e.rules, now, jobs, reverting)
	if err := e.commit(ctx, b); err != nil {
		return err
	}
	return e.signAndSend(ctx, jobs)
}

// sendNew gives nonces to some of the waiting requests and sends them.
func (e *Executor) sendNew(ctx context.Context) (moved bool, err error) {
	if err := e.readInbox(ctx); err != nil {
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
	// All requests that were read must wait, so read those behind them.
	if len(jobs) == 0 && !e.view.PoolBlocked && e.view.Room(&e.rules) > 0 && e.inbox.widen() {
		return true, nil
	}
	if len(jobs) > 0 {
		e.inbox.window = leastWindow * e.cfg.Batch
	}
	return e.assignAndSend(ctx, now, jobs[:min(len(jobs), e.cfg.Batch)])
}

// finish deletes old records, and gives back the lease if no work is left.
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
		return now, nil // more records may be old
	}
	e.report.Commits++
	err := e.store.Park(ctx, e.lease, e.inbox.wake, time.Time{})
	// New work has arrived, so the worker keeps the lease.
	if errors.Is(err, ErrWoken) {
		e.Wake()
		return now, nil
	}
	if err == nil {
		e.forgetLease()
	}
	return time.Time{}, err
}

// nextStep returns the earliest time at which any part of the work is due.
func (e *Executor) nextStep(now time.Time) time.Time {
	next := now.Add(min(e.cfg.Rebroadcast, e.cfg.LeaseFor/3))
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if e.cfg.Poll > 0 {
		earlier(now.Add(e.cfg.Poll))
	}
	if e.watch.eager && e.watch.failed == 0 && len(e.inbox.pending) > 0 && e.view.Room(&e.rules) == 0 {
		// Some nodes make a block as soon as they get a transaction, so read the
		// chain at once.
		e.signals.requestLook()
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
	if q := e.view.Quiet; q.After(next) {
		next = q
	}
	if next.Before(now) || e.history.after > 0 {
		next = now
	}
	return next
}
