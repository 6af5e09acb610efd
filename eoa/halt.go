package eoa

import (
	"context"
	"fmt"
)

// witness stops the account if ok is false: the store's head h then lacks
// commits of the state before, which this process has seen.
func (e *Executor) witness(ctx context.Context, h *Head, before sight, ok bool) error {
	if ok {
		return nil
	}
	evidence := fmt.Sprintf("the store has version %d with marks %v, and lacks writes of version %d with marks %v or wake version %d",
		h.Version, h.Marks, before.version, before.marks, before.wake)
	if err := e.commit(ctx, e.view.Stop(e.cfg.Now(), evidence)); err != nil {
		return err
	}
	e.cfg.Witness.trust(e.account)
	return nil
}

// holderMustStop reports whether the store lost writes that this process has
// seen, while another worker holds the account. That worker may know nothing of
// them, so its lease ends.
func (e *Executor) holderMustStop(ctx context.Context) bool {
	before := e.cfg.Witness.last(e.account) // read before the store
	e.report.Reads++
	inbox, err := e.store.Inbox(ctx, e.account, Rank{}, 1)
	now := sight{inbox.Head.Resumes, inbox.Head.Version, inbox.Wake, inbox.Head.Marks}
	return err == nil && now.behind(before) && e.store.Break(ctx, e.account) == nil
}

// stopped returns the error of a stopped account, and logs it once.
func (e *Executor) stopped() error {
	stop := &e.view.Head.Stop
	err := stop.Err()
	if err != nil && !e.stopLogged {
		e.cfg.Logger.Error("eoa: account stopped", "account", e.account.String(), "since", stop.At, "err", err)
	}
	e.stopLogged = err != nil
	return err
}
