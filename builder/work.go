package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/journal"
)

// work runs the worker, the goroutine that makes the rollup follow the log.
func (e *engine) work(ctx context.Context) error {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		more, err := e.workOnce(ctx)
		woken := e.woken
		switch failure := e.records.failure(); {
		case ctx.Err() != nil:
			return ctx.Err()
		case failure != nil:
			return failure
		case errors.Is(err, ErrDiverged):
			return err
		case err != nil:
			e.log.Error("builder: a call of the rollup failed; it is repeated", "err", err)
			woken = nil // wait for Config.Retry, even if there is more to do
		case more:
			continue
		}
		retry.Reset(e.cfg.Retry)
		select {
		case <-woken:
		case <-retry.C:
		case <-e.records.broken:
		case <-ctx.Done():
		}
	}
}

// workOnce does one piece of work, and reports whether there may be more.
func (e *engine) workOnce(ctx context.Context) (more bool, err error) {
	// First let the rollup follow the log, by applying or undoing one block. If this fails, it
	// is tried again, and the worker does nothing else before it has succeeded.
	if t, some := e.chain.next(); some {
		if err := e.carry(ctx, t); err != nil {
			return false, err
		}
		e.chain.done()
		return true, nil
	}
	e.finish(ctx)
	if err := e.checkpointIfDue(ctx); errors.Is(err, errPostponed) {
		e.log.Error("builder: no checkpoint was made; the log grows", "err", err)
	} else if err != nil {
		return false, err
	}
	if time.Now().Before(e.proposeAt) {
		return false, nil
	}
	more, err = e.produce(ctx)
	if err == nil || ctx.Err() != nil {
		return more, err
	}
	// An error of Propose only delays the next block. It does not end the worker, because the
	// rollup must still apply and undo the blocks that exist.
	if errors.Is(err, ErrIdle) {
		e.chain.idle()
	} else {
		e.log.Error("builder: no block was made", "err", err)
		e.proposeAt = time.Now().Add(e.cfg.Retry)
	}
	return false, nil
}

// carry lets the rollup follow the log by one block: it calls Apply or Undo, and checks
// that the rollup's root is then the one in the log.
func (e *engine) carry(ctx context.Context, t task) error {
	want := t.block.Root
	if t.kind == undo {
		want = t.block.PreRoot
	}
	// If only Root panicked in an earlier call, Apply or Undo has already succeeded and
	// must not run twice.
	if !e.carried {
		if err := e.call(ctx, t); err != nil {
			return err
		}
		e.carried = true
	}
	have, err := e.root()
	if err != nil {
		return err
	}
	e.carried = false
	if have != want {
		verb := [...]string{apply: "applied", undo: "undone"}[t.kind]
		return fmt.Errorf("%w: block %d was %s: have %s, want %s", ErrDiverged, t.block.Number, verb, have, want)
	}
	return nil
}

// call calls Apply or Undo for a task.
func (e *engine) call(ctx context.Context, t task) error {
	if t.kind == undo {
		return e.calls.make(ctx, "Rollup.Undo", func() error { return e.host.undo(ctx, t.block) })
	}
	return e.calls.make(ctx, "Rollup.Apply", func() error { return e.host.apply(ctx, t.block) })
}

func (e *engine) callFinal(ctx context.Context, block block) error {
	return e.calls.make(ctx, "Rollup.Final", func() error { return e.host.final(ctx, block) })
}

// finish calls Final for the blocks that have become final, in order.
func (e *engine) finish(ctx context.Context) {
	for block, some := e.chain.nextFinal(); some && !time.Now().Before(e.finalAt); block, some = e.chain.nextFinal() {
		if err := e.callFinal(ctx, block); err != nil {
			e.log.Error("builder: Final failed; it is called again", "block", block.Number, "err", err)
			// If Final fails, only the later calls of Final and the next checkpoint are
			// delayed. The rollup makes new blocks in the meantime.
			e.finalAt = time.Now().Add(e.cfg.Retry)
			return
		}
		e.chain.finished()
	}
}

// produce lets the rollup propose a block and puts the block into the queue.
func (e *engine) produce(ctx context.Context) (made bool, err error) {
	var can bool
	if err := e.inTurn(ctx, func() error { can = e.queue.CanEnqueue(); return nil }); err != nil || !can {
		return false, err
	}
	parent, serial, caughtUp := e.chain.parent()
	if !caughtUp {
		return true, nil // the worker carries out the open tasks first
	}
	block := block{Number: parent.Number + 1, PreRoot: parent.Root, serial: serial}
	block.Body, block.Root, err = e.propose(ctx, block.Number)
	switch interrupted := e.wasInterrupted(); {
	case interrupted:
		return true, nil // an earlier block has failed; the worker calls Undo first
	case err != nil:
		return false, err
	}
	err = e.calls.make(ctx, "Codec", func() (err error) {
		if block.raw, err = e.encode(block.Body); err != nil {
			return fmt.Errorf("builder: encode block %d: %w", block.Number, err)
		}
		return checkSize("block", block.Number, len(block.raw))
	})
	if err != nil {
		return false, err
	}
	commit(&block, parent.commitment)
	e.proposed.Store(&block)
	// The record of this step contains the block, so that a crash cannot separate the
	// block, its operations and its position in the queue.
	enqueue := bundlequeue.Enqueue{
		Number: block.Number, Commitment: block.commitment, Parent: parent.commitment, Bundle: appendBlock(nil, &block),
	}
	err = e.inTurn(ctx, func() error { return e.step(enqueue) })
	if errors.Is(err, bundlequeue.ErrWrongParent) || errors.Is(err, bundlequeue.ErrWrongNumber) || errors.Is(err, bundlequeue.ErrQueueFull) {
		return false, nil // an earlier block has failed, or waits again and fills the queue
	}
	return err == nil, err
}

// checkSize returns an error that wraps ErrTooLarge if a block or a package is larger than
// a quarter of the largest record of a log.
func checkSize(name string, number uint64, size int) error {
	// The record of a block or a package also contains other fields, which have room in the
	// rest.
	const most = journal.MaxRecord / 4
	if size > most {
		return fmt.Errorf("%w: %s %d has %d bytes, want at most %d", ErrTooLarge, name, number, size, most)
	}
	return nil
}

// propose calls Propose, and lets follow cancel the call.
func (e *engine) propose(ctx context.Context, number uint64) (body any, root common.Hash, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	// If an earlier block fails while Propose runs, the proposal is useless. The step that
	// learns of the failure then cancels this context.
	e.interrupt, e.interrupted = cancel, false
	e.mu.Unlock()
	err = e.calls.make(ctx, "Rollup.Propose", func() (err error) {
		body, root, err = e.host.propose(ctx, number)
		return err
	})
	return body, root, err
}

// wasInterrupted reports whether a block has failed since the last call of Propose began.
func (e *engine) wasInterrupted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.interrupted
}
