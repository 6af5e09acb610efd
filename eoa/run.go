package eoa

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/backoff"
)

// Run works on the account until ctx ends. It then releases the account and returns
// ctx's error. Failures of the store, the chain and the signer are logged and tried
// again. While the account is stopped, Run keeps the lease and waits for an
// operator to call [Client.Resume].
func (e *Executor) Run(ctx context.Context) error { return e.run(ctx, false, nil) }

// run works on the account until ctx ends.
func (e *Executor) run(ctx context.Context, endIdle bool, slots *semaphore.Weighted) error {
	failures := 0
	for ctx.Err() == nil {
		next, err := e.stepInSlot(ctx, slots)
		// A job of another engine must end when the account has no work, or when another worker
		// holds it. In that case endIdle is true.
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

// stepInSlot takes a step in one of the slots, which limit the concurrent steps.
func (e *Executor) stepInSlot(ctx context.Context, slots *semaphore.Weighted) (time.Time, error) {
	if slots != nil {
		if err := slots.Acquire(ctx, 1); err != nil {
			return time.Time{}, err
		}
		defer slots.Release(1)
	}
	return e.Step(ctx)
}

// pause waits for the given time, or forever, unless a wake-up ends it.
func (e *Executor) pause(ctx context.Context, wait time.Duration, wakes, forever bool) {
	var timer <-chan time.Time
	if !forever {
		timer = time.After(wait)
	}
	woke := e.signals.woke
	// After a failure, new work must not shorten the back-off.
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

// Release gives back the account's lease, if the executor holds it, and makes the
// account due at once. Another worker can then go on without waiting until the
// lease expires.
func (e *Executor) Release(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Epoch == 0 {
		return nil
	}
	const tries = 5
	err := ErrWoken
	for range tries {
		inbox, failed := e.store.Inbox(ctx, e.account, 1)
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
	e.forgetLease()
	return err
}

// Suspend ends the work of this executor between two steps, for hosts that run each
// step as a job of another engine, such as package eoa/jobs. Suspend releases the
// account and makes it due at the given time; zero means never. The result is the
// wake version that the last step saw. If the store later has a higher version,
// there is new work.
//
// If requests or orders have arrived since the last step, Suspend keeps the lease
// and returns ErrWoken. If the last step has already released the account, Suspend
// does nothing.
func (e *Executor) Suspend(ctx context.Context, due time.Time) (wake uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Epoch == 0 {
		return e.inbox.wake, nil
	}
	err = e.store.Park(ctx, e.lease, e.inbox.wake, due)
	switch {
	case err == nil, errors.Is(err, ErrFenced):
		e.forgetLease()
	case errors.Is(err, ErrWoken):
		e.Wake()
	}
	return e.inbox.wake, err
}
