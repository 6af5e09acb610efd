package eoa

import (
	"context"
	"errors"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
)

// hold makes sure that the account is leased for a while, and loaded.
func (e *Executor) hold(ctx context.Context) error {
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
	// Before anything is written, because a commit raises the version.
	before, ok := e.cfg.Witness.seeHead(e.account, &loaded.Head)
	if err := e.witness(ctx, &loaded.Head, before, ok); err != nil {
		return err
	}
	// The failed commit was decided on this version or an earlier one. An empty
	// commit turns it into a conflict if it arrives later.
	if e.commitUnknown {
		empty := e.view.Batch()
		e.staged = &empty
		if err := e.commitStaged(ctx); err != nil {
			return err
		}
	}
	e.history.see(e.view.Open)
	e.inbox.reset(&e.cfg)
	e.watch.at = time.Time{}
	return nil
}

// read fetches the inbox if it may contain anything new, and carries out
// orders.
func (e *Executor) read(ctx context.Context) error {
	if e.inbox.current() {
		return nil
	}
	e.report.Reads++
	read, err := e.store.Inbox(ctx, e.account, Rank{}, e.inbox.window)
	if err != nil {
		return err
	}
	e.inbox.take(&read, &e.cfg)
	before, ok := e.cfg.Witness.see(e.account, &read.Head, read.Wake)
	if err := e.witness(ctx, &read.Head, before, ok); err != nil {
		return err
	}
	e.history.see(read.Pending)
	if len(read.Orders) == 0 {
		return nil
	}
	if err := e.commitStaged(ctx); err != nil { // orders refer to committed records
		return err
	}
	e.dropGasCall() // an order may change a request
	named := map[string]Record{}
	for _, o := range read.Orders {
		if o.Kind == OrderReset || o.Kind == OrderResume {
			e.signals.noteHead()
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
	return e.commit(ctx, e.view.Obey(e.cfg.Now(), read.Orders, named))
}

// drop forgets the lease and the view.
func (e *Executor) drop() {
	e.dropGasCall()
	e.lease, e.view = Lease{}, nil
	e.signals.setHeld(false)
}
