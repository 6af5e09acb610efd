package eoa

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/backoff"
)

// Run works until ctx ends, and then releases the account. It returns ctx's
// error. Failures of the store, the chain and the signer are logged and
// retried. While the account is stopped, Run keeps it and waits for an
// operator; see [Client.Resume].
func (e *Executor) Run(ctx context.Context) error { return e.run(ctx, false, nil) }

// run works until ctx ends. If endIdle is set, it also returns when no work is
// left or another worker holds the account. If slots is not nil, each step
// occupies a slot.
func (e *Executor) run(ctx context.Context, endIdle bool, slots *semaphore.Weighted) error {
	failures := 0
	for ctx.Err() == nil {
		next, err := e.slotted(ctx, slots)
		if endIdle && (err == nil && next.IsZero() || errors.Is(err, ErrHeld)) {
			return nil
		}
		var wait time.Duration
		switch {
		case errors.Is(err, ErrHeld):
			wait = e.cfg.LeaseFor / 4
		case errors.Is(err, ErrStopped):
			wait = e.cfg.LeaseFor / 3
		case err != nil && ctx.Err() == nil:
			failures++
			wait = backoff.Wait(e.cfg.Retry, account.MaxRetry, failures)
			e.cfg.Logger.Warn("eoa: step failed", "account", e.account.String(), "err", err)
		default:
			failures = 0
			wait = next.Sub(e.cfg.Now())
		}
		e.pause(ctx, wait, err == nil || errors.Is(err, ErrStopped), err == nil && next.IsZero())
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.LeaseFor)
	defer cancel()
	return errors.Join(ctx.Err(), e.Release(rest))
}

// slotted takes a step while it occupies a slot.
func (e *Executor) slotted(ctx context.Context, slots *semaphore.Weighted) (time.Time, error) {
	if slots != nil {
		if err := slots.Acquire(ctx, 1); err != nil {
			return time.Time{}, err
		}
		defer slots.Release(1)
	}
	return e.Step(ctx)
}

// pause waits for the given time, or without limit if forever is set. If wakes
// is set, a wake-up ends the pause; after a failure it must not.
func (e *Executor) pause(ctx context.Context, wait time.Duration, wakes, forever bool) {
	var timer <-chan time.Time
	if !forever {
		t := time.NewTimer(max(wait, 0))
		defer t.Stop()
		timer = t.C
	}
	woke := e.signals.woke
	if !wakes {
		woke = nil
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-woke:
		e.Wake() // makes the step read the store
	}
}

// Release gives the account's lease back. The account is due at once, so that
// another worker can take remaining work without waiting for the lease to end.
func (e *Executor) Release(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Epoch == 0 {
		return nil
	}
	const tries = 5
	err := ErrWoken
	for range tries {
		inbox, failed := e.store.Inbox(ctx, e.account, Rank{}, 1)
		if err = failed; err == nil {
			err = e.store.Park(ctx, e.lease, inbox.Wake, e.cfg.Now())
		}
		if !errors.Is(err, ErrWoken) {
			break
		}
	}
	if errors.Is(err, ErrWoken) || errors.Is(err, ErrFenced) {
		// The lease expires by itself, and Due then lists the account.
		err = nil
	}
	e.drop()
	return err
}

// Suspend releases the account between two steps and schedules the next step at
// due; zero means none. It returns the wake version that the last step saw.
// Package eoa/jobs uses it to hand the next step to another worker. If requests
// or orders have arrived since that step, Suspend keeps the lease and returns
// ErrWoken. If the last step released the account, Suspend does nothing.
func (e *Executor) Suspend(ctx context.Context, due time.Time) (wake uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Epoch == 0 {
		return e.inbox.wake, nil
	}
	err = e.store.Park(ctx, e.lease, e.inbox.wake, due)
	switch {
	case err == nil, errors.Is(err, ErrFenced):
		e.drop()
	case errors.Is(err, ErrWoken):
		e.Wake()
	}
	return e.inbox.wake, err
}
