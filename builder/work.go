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

// work is the worker: the goroutine of Run that makes all calls of the rollup
// except Admit, TakeChanges and Payload. It first makes the rollup follow the log;
// when the rollup has caught up, the worker lets it propose blocks. If a call
// fails, the worker repeats it after Config.Retry. work returns when ctx ends, or
// with an error that wraps ErrLog or ErrDiverged.
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

// workOnce does one piece of work. If a block must still be applied or undone, it makes
// that call. Otherwise it calls Final, makes a checkpoint if one is due, and produces a
// new block. It reports whether it should be called again at once.
//
// Failures of Final, Propose, Codec and Checkpoint are logged and not returned. If
// workOnce returns an error, the worker must not do anything else first: Apply, Undo or
// Root has failed, the log has failed, or the builder stops.
func (e *engine) workOnce(ctx context.Context) (more bool, err error) {
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
	if errors.Is(err, ErrIdle) {
		e.chain.idle()
	} else {
		e.log.Error("builder: no block was made", "err", err)
		e.proposeAt = time.Now().Add(e.cfg.Retry)
	}
	return false, nil
}

// carry calls Apply or Undo for a task, and compares the root of the rollup with the root
// in the log. If the roots differ, the error wraps ErrDiverged and the builder stops.
// After any other error the worker calls carry again. If Apply or Undo had already
// succeeded by then, because only Root panicked, the second call does not repeat it.
func (e *engine) carry(ctx context.Context, t task) error {
	want := t.block.Root
	if t.kind == undo {
		want = t.block.PreRoot
	}
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

// finish calls Final for the blocks that have become final, in order. If a call
// fails, it is repeated after Config.Retry. In the meantime the next final blocks
// and the next checkpoint have to wait, but new blocks do not.
func (e *engine) finish(ctx context.Context) {
	for block, some := e.chain.nextFinal(); some && !time.Now().Before(e.finalAt); block, some = e.chain.nextFinal() {
		if err := e.callFinal(ctx, block); err != nil {
			e.log.Error("builder: Final failed; it is called again", "block", block.Number, "err", err)
			e.finalAt = time.Now().Add(e.cfg.Retry)
			return
		}
		e.chain.finished()
	}
}

// produce lets the rollup propose a block and puts the block into the queue. The
// record of this step contains the block, so that a crash cannot separate the
// block, its operations and its position in the queue. If an earlier block has
// failed in the meantime, produce discards the proposal.
//
// It reports whether the worker should continue at once, either because there is a
// new block or because the rollup must first follow the log.
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
	enqueue := bundlequeue.Enqueue{
		Number: block.Number, Commitment: block.commitment, Parent: parent.commitment, Bundle: appendBlock(nil, &block),
	}
	err = e.inTurn(ctx, func() error { return e.step(enqueue) })
	if errors.Is(err, bundlequeue.ErrWrongParent) || errors.Is(err, bundlequeue.ErrWrongNumber) || errors.Is(err, bundlequeue.ErrQueueFull) {
		return false, nil // an earlier block has failed, or waits again and fills the queue
	}
	return err == nil, err
}

// checkSize returns an error that wraps ErrTooLarge if a block or a package is
// larger than a quarter of the maximum size of a record, which leaves enough room
// for the other fields of the record.
func checkSize(name string, number uint64, size int) error {
	const most = journal.MaxRecord / 4
	if size > most {
		return fmt.Errorf("%w: %s %d has %d bytes, want at most %d", ErrTooLarge, name, number, size, most)
	}
	return nil
}

// propose calls Propose. If an earlier block fails during the call, the proposal is
// worthless, so follow cancels the context of the call.
func (e *engine) propose(ctx context.Context, number uint64) (body any, root common.Hash, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
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
