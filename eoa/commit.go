package eoa

import (
	"context"

	"github.com/jamq/jamq/eoa/internal/account"
)

// stage changes the executor's view of the account at once, and leaves the write to the
// store to the next commit.
func (e *Executor) stage(b Batch) {
	version := e.view.Head.Version
	if !e.view.Changes(&b) {
		e.view.Head = b.Head
	} else {
		// Joining this batch with the next one saves a round trip to the store. This is allowed
		// only for observations of the chain: if a crash loses them, the next worker makes them
		// again.
		e.staged = account.Join(e.staged, b)
		e.view.Apply(b)
		e.count(b)
	}
	e.view.Head.Version = version
}

// commit applies a batch to the view, and writes it with the staged batch.
func (e *Executor) commit(ctx context.Context, b Batch) error {
	changes := e.view.Changes(&b)
	// If the batch changes nothing, the staged batch waits for the next commit.
	if e.stage(b); !changes {
		return nil
	}
	return e.commitStaged(ctx)
}

// commitStaged writes the staged batch, if there is one.
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
		// The batch may or may not be in the store.
		e.commitUnknown = true
		return err
	}
	e.commitUnknown, e.inbox.seen = false, wake
	e.view.Head.Version++
	e.view.Head.Marks = b.Head.Marks
	e.cfg.Witness.remember(e.account, &e.view.Head, &wake)
	e.inbox.committed(&b)
	e.signals.announceChange()
	return nil
}
