package eoa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
)

// ensureLease acquires or renews the lease, and loads the account if necessary.
func (e *Executor) ensureLease(ctx context.Context) error {
	now := e.cfg.Now()
	var err error
	switch {
	case e.lease.Epoch == 0:
		e.view = nil
		e.report.Commits++
		e.lease, err = e.store.Acquire(ctx, e.account, e.owner, now, e.cfg.LeaseFor)
		if errors.Is(err, ErrHeld) && e.holderMustStop(ctx) {
			e.lease, err = e.store.Acquire(ctx, e.account, e.owner, now, e.cfg.LeaseFor)
		}
		if err != nil {
			e.lease = Lease{}
			return err
		}
		e.signals.setHeld(true)
	// At least half of the lease's duration must remain for the action that
	// follows.
	case e.lease.Until.Sub(now) < e.cfg.LeaseFor/2:
		e.report.Commits++
		renewed, err := e.store.Renew(ctx, e.lease, now, e.cfg.LeaseFor)
		if err != nil {
			return err
		}
		e.lease = renewed
	}
	if e.view != nil {
		return nil
	}
	e.report.Reads++
	loaded, err := e.store.Load(ctx, e.lease)
	if err != nil {
		return err
	}
	e.view, e.staged = account.NewView(e.account, loaded), nil
	e.rules.Exclusive = e.rules.Exclusive || loaded.MayLose && !e.cfg.SharedKey
	// Compare before anything is written, because a commit raises the version.
	before, ok := e.cfg.Witness.remember(e.account, &loaded.Head, nil)
	if err := e.stopIfRolledBack(ctx, &loaded.Head, before, ok); err != nil {
		return err
	}
	// The last commit failed, but the store may still receive it late. An empty commit raises
	// the version of the account, so that the store then refuses the late commit as a
	// conflict.
	if e.commitUnknown {
		empty := e.view.Batch()
		e.staged = &empty
		if err := e.commitStaged(ctx); err != nil {
			return err
		}
	}
	e.history.noteIDs(e.view.Open)
	e.inbox.reset(&e.cfg)
	e.watch.at = time.Time{}
	return nil
}

// readInbox reads the waiting requests, and carries out the users' orders at once.
func (e *Executor) readInbox(ctx context.Context) error {
	if e.inbox.current() {
		return nil
	}
	e.report.Reads++
	read, err := e.store.Inbox(ctx, e.account, e.inbox.window)
	if err != nil {
		return err
	}
	e.inbox.replace(&read, &e.cfg)
	before, ok := e.cfg.Witness.remember(e.account, &read.Head, &read.Wake)
	if err := e.stopIfRolledBack(ctx, &read.Head, before, ok); err != nil {
		return err
	}
	e.history.noteIDs(read.Pending)
	if len(read.Orders) == 0 {
		return nil
	}
	if err := e.commitStaged(ctx); err != nil { // orders refer to committed records
		return err
	}
	e.dropGasCall() // an order may change a request
	named := map[string]Record{}
	for _, o := range read.Orders {
		if o.Kind == account.OrderReset || o.Kind == account.OrderResume {
			e.signals.requestLook()
			continue
		}
		e.report.Reads++
		r, err := e.store.Get(ctx, e.account, o.Key)
		if errors.Is(err, ErrUnknownRequest) {
			continue
		} else if err != nil {
			return err
		}
		named[o.Key] = r
	}
	return e.commit(ctx, e.view.CarryOut(e.cfg.Now(), read.Orders, named))
}

// forgetLease drops the lease and the view.
func (e *Executor) forgetLease() {
	e.dropGasCall()
	// Another worker may work on the account from now on.
	e.lease, e.view = Lease{}, nil
	e.signals.setHeld(false)
}

// stopIfRolledBack stops the account if the store has lost writes (ok is false).
func (e *Executor) stopIfRolledBack(ctx context.Context, h *account.Head, before storeState, ok bool) error {
	if ok {
		return nil
	}
	// The store has lost writes: it lacks some that this process has seen before.
	evidence := fmt.Sprintf("the store has version %d with marks %v, and lacks writes of version %d with marks %v or wake version %d",
		h.Version, h.Marks, before.version, before.marks, before.wake)
	if err := e.commit(ctx, e.view.StopRolledBack(e.cfg.Now(), evidence)); err != nil {
		return err
	}
	e.cfg.Witness.forget(e.account)
	return nil
}

// holderMustStop breaks another worker's lease if the store has lost writes, and
// reports that.
func (e *Executor) holderMustStop(ctx context.Context) bool {
	before := e.cfg.Witness.last(e.account) // read before the store
	e.report.Reads++
	inbox, err := e.store.Inbox(ctx, e.account, 1)
	now := storeState{inbox.Head.Resumes, inbox.Head.Version, inbox.Wake, inbox.Head.Marks}
	// Another worker holds the account, and may execute requests again whose records the store
	// has lost. Take the lease away from it.
	return err == nil && now.behind(before) && e.store.Break(ctx, e.account) == nil
}

// stopped returns the error of a stopped account, and logs each stop once.
func (e *Executor) stopped() error {
	stop := &e.view.Head.Stop
	err := stop.Err()
	if err != nil && !e.stopLogged {
		e.cfg.Logger.Error("eoa: account stopped", "account", e.account.String(), "since", stop.At, "err", err)
	}
	e.stopLogged = err != nil
	return err
}
