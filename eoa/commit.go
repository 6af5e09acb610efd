package eoa

import (
	"context"

	"github.com/jamq/jamq/eoa/internal/account"
)

// stage applies b to the view and defers the write to the next commit. Use it
// only for changes observed on the chain: nothing derived from them is sent
// before they are written, and after a crash the next worker observes them
// again.
func (e *Executor) stage(b Batch) {
	version := e.view.Head.Version
	if !e.view.Changes(&b) {
		e.view.Head = b.Head
	} else {
		e.staged = account.Join(e.staged, b)
		e.view.Apply(b)
		e.count(b)
	}
	e.view.Head.Version = version
}

// commit applies b to the view and writes it, if it changes anything.
func (e *Executor) commit(ctx context.Context, b Batch) error {
	changes := e.view.Changes(&b)
	if e.stage(b); !changes {
		return nil
	}
	return e.commitStaged(ctx)
}

// commitStaged writes the staged batch.
func (e *Executor) commitStaged(ctx context.Context) error {
	if e.staged == nil {
		return nil
	}
	b := *e.staged
	e.staged = nil
	b.Head.InFlight, _ = e.view.InFlight()
	b.Head.Marks = e.cfg.Witness.mark(e.view.Head.Marks, b.Head.Version+1)
	e.report.Commits++
	wake, err := e.store.Commit(ctx, e.lease, e.cfg.Now(), b)
	if err != nil {
		e.commitUnknown = true
		return err
	}
	e.commitUnknown, e.inbox.seen = false, wake
	e.view.Head.Version++
	e.view.Head.Marks = b.Head.Marks
	e.cfg.Witness.see(e.account, &e.view.Head, wake)
	e.inbox.committed(&b)
	e.signals.tell()
	return nil
}
