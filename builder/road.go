package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// This file has the order of writes, from a user's operation to JAM and back. Each
// step appends to the log first and acts afterwards. A reader finds here:
//
//	when is an operation safe?       when Submit has returned nil
//	when may the RPC answer?         then, and not before
//	when may a package leave?        when the step of the queue that sends it is in
//	                                 the log (send)
//	when is an operation executed    never: a block and its operations are one record,
//	twice?                           and come back only when the queue has recorded
//	                                 that no version can be accumulated (follow)
//
// A rollup that decides itself which operations wait (Recorder) makes the change, appends
// its record with record, and answers. A block can have the operation before the record is
// in the log; see Recorder.Replay.

// Submit accepts an operation, also before Run. It returns when the operation is durable,
// waits, and the log has the answer: from then on the operation is executed once, or dropped
// by Propose. The error is that of Check, Admit or ctx, or wraps ErrTooLarge; the operation has
// no effect then, also after a restart. If the error wraps ErrLog or ErrStopped, or if there is no
// answer because the process has died, the operation may be executed after a restart: a user
// submits it again, and it is executed once, because Admit recognizes it. If the rollup is a
// Recorder, the error is that of Admit.
func (b *Builder[B]) Submit(ctx context.Context, op []byte) error {
	select {
	case <-b.stopped:
		if err := b.records.failure(); err != nil {
			return err
		}
		return ErrStopped
	default:
	}
	if most := b.cfg.Runner.Queue.Spec.MaxBundleSize; len(op) > most {
		return fmt.Errorf("%w: an operation has %d bytes, want at most %d, as no package has more", ErrTooLarge, len(op), most)
	}
	if c, ok := b.rollup.(Checker); ok {
		if err := b.calls.judge(ctx, "Rollup.Check", func() error { return c.Check(ctx, op) }); err != nil {
			return err
		}
	}
	// No checkpoint begins between a change of the rollup and its record.
	if err := b.admitting.Acquire(ctx, 1); err != nil {
		return err
	}
	defer b.admitting.Release(1)
	if _, ok := b.rollup.(Recorder); ok {
		defer b.wake()
		return b.calls.judge(ctx, "Rollup.Admit", func() error { return b.rollup.Admit(ctx, op) })
	}
	id := newID()
	if err := b.records.append(slices.Concat([]byte{recordOperation}, id[:], op)); err != nil {
		return err
	}
	op = bytes.Clone(op)
	ctx = context.WithoutCancel(ctx) // the operation is in the log, although the user has gone
	outcome := byte(recordTaken)
	refusal := b.calls.judge(ctx, "Rollup.Admit", func() error { return b.rollup.Admit(ctx, op) })
	if refusal != nil {
		outcome = recordRefused
	}
	b.wake()
	if err := b.records.append(append([]byte{outcome}, id[:]...)); err != nil {
		return err
	}
	return refusal
}

// record appends records of the rollup: see Recorder.
func (b *Builder[B]) record(records ...[]byte) error {
	defer b.wake()
	return b.records.append(framed(recordRollup, records)...)
}

// produce lets the rollup propose a block and puts it into the queue. The step of
// the queue has the block, so that the block, its operations and its place are one
// record. produce reports whether there is a new block.
func (b *Builder[B]) produce(ctx context.Context) (made bool, err error) {
	if can, err := b.runner.CanEnqueue(ctx); err != nil || !can {
		return false, err
	}
	parent, serial, caughtUp := b.chain.parent()
	if !caughtUp {
		return true, nil // follow first
	}
	block := Block[B]{Number: parent.Number + 1, PreRoot: parent.Root, serial: serial}
	block.Body, block.Root, err = b.propose(ctx, block.Number)
	switch interrupted := b.wasInterrupted(); {
	case interrupted:
		return true, nil // follow first
	case err != nil:
		return false, err
	}
	err = b.calls.make(ctx, "Codec", func() (err error) {
		if block.raw, err = b.stored.encode(block.Body); err != nil {
			return fmt.Errorf("builder: encode block %d: %w", block.Number, err)
		}
		return checkSize("block", block.Number, len(block.raw))
	})
	if err != nil {
		return false, err
	}
	block.commit(parent.commitment, block.raw)
	err = b.runner.Enqueue(ctx, bundlequeue.Enqueue[bundle[B]]{
		Number: block.Number, Commitment: block.commitment, Parent: parent.commitment, Bundle: bundle[B]{block: block},
	})
	if errors.Is(err, bundlequeue.ErrWrongParent) || errors.Is(err, bundlequeue.ErrWrongNumber) || errors.Is(err, bundlequeue.ErrQueueFull) {
		return false, nil // an earlier block has failed meanwhile, or waits again
	}
	return err == nil, err
}

// checkSize returns an error if a block or a package does not fit into a record, which has
// both.
func checkSize(name string, number uint64, size int) error {
	const most = journal.MaxRecord / 4
	if size > most {
		return fmt.Errorf("%w: %s %d has %d bytes, want at most %d", ErrTooLarge, name, number, size, most)
	}
	return nil
}

// follow is called with each step of the queue when the step is in the log, and
// before the queue's requests are carried out. It is called in the same way when the
// log is read again.
func (b *Builder[B]) follow(ev bundlequeue.Event, effects []bundlequeue.Effect) {
	if undone := b.chain.follow(ev, effects); undone {
		b.mu.Lock()
		b.interrupted = true // the proposal has no pre-state any more
		b.interrupt()
		b.mu.Unlock()
	}
	if err := b.trust.follow(effects, lostBlock[B]); err != nil && b.running {
		select {
		case b.doubted <- err:
		default: // it stops already
		}
	}
	b.wake()
}

// lostBlock returns the number of a block that has failed because its packages were
// lost, and how many.
func lostBlock[B any](effect bundlequeue.Effect) (number uint64, lost int) {
	if f, ok := effect.(bundlequeue.Failed[bundle[B]]); ok && f.Number == f.Cause {
		return f.Number, f.Lost
	}
	return 0, 0
}

// carry lets the rollup follow the log by one task, and checks the root. After an error it is
// called again for the same task. If only the root is unknown, because Root has panicked, the
// next call does not repeat Apply or Undo.
func (b *Builder[B]) carry(ctx context.Context, t task[B]) error {
	want := t.block.Root
	if t.kind == undo {
		want = t.block.PreRoot
	}
	if !b.carried {
		if err := b.call(ctx, t); err != nil {
			return err
		}
		b.carried = true
	}
	have, err := b.root()
	if err != nil {
		return err
	}
	b.carried = false
	if have != want {
		verb := [...]string{apply: "applied", undo: "undone"}[t.kind]
		return fmt.Errorf("%w: block %d was %s: have %s, want %s", ErrDiverged, t.block.Number, verb, have, want)
	}
	return nil
}

// call makes the call of a task.
func (b *Builder[B]) call(ctx context.Context, t task[B]) error {
	if t.kind == undo {
		return b.calls.make(ctx, "Rollup.Undo", func() error { return b.rollup.Undo(ctx, t.block) })
	}
	return b.calls.make(ctx, "Rollup.Apply", func() error { return b.rollup.Apply(ctx, t.block) })
}

// callFinal tells the rollup that a block is final.
func (b *Builder[B]) callFinal(ctx context.Context, block Block[B]) error {
	f, ok := b.rollup.(Finalizer[B])
	if !ok {
		return nil
	}
	return b.calls.make(ctx, "Rollup.Final", func() error { return f.Final(ctx, block) })
}

// work makes all calls of the rollup except Check, Admit and Payload. It follows the log
// first, and produces blocks when the rollup has caught up.
func (b *Builder[B]) work(ctx context.Context) error {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		more, err := b.workOnce(ctx)
		woken := b.woken
		switch failure := b.records.failure(); {
		case ctx.Err() != nil:
			return ctx.Err()
		case failure != nil:
			return failure
		case errors.Is(err, ErrDiverged), isOver(err):
			return err
		case err != nil:
			b.log.Error("builder: a call of the rollup failed; it is repeated", "err", err)
			woken = nil // not before its time
		case more:
			continue
		}
		retry.Reset(b.cfg.Retry)
		select {
		case <-woken:
		case <-retry.C:
		case <-b.records.broken:
		case <-ctx.Done():
		}
	}
}

// isOver reports whether an error means that the runner has stopped.
func isOver(err error) bool {
	return errors.Is(err, submit.ErrJournal) || errors.Is(err, submit.ErrStopped)
}

// workOnce does the next thing, and reports whether there may be another one. An error
// means that Apply or Undo has failed, and that nothing else can be done before.
func (b *Builder[B]) workOnce(ctx context.Context) (more bool, err error) {
	if t, some := b.chain.next(); some {
		if err := b.carry(ctx, t); err != nil {
			return false, err
		}
		b.chain.done()
		return true, nil
	}
	b.finish(ctx)
	if err := b.checkpointIfDue(ctx); errors.Is(err, errPostponed) {
		b.log.Error("builder: no checkpoint was made; the log grows", "err", err)
	} else if err != nil {
		return false, err
	}
	if time.Now().Before(b.proposeAt) {
		return false, nil
	}
	more, err = b.produce(ctx)
	if err == nil || isOver(err) || ctx.Err() != nil {
		return more, err
	}
	if errors.Is(err, ErrIdle) {
		b.chain.idle()
	} else {
		b.log.Error("builder: no block was made", "err", err)
		b.proposeAt = time.Now().Add(b.cfg.Retry)
	}
	return false, nil
}

// finish calls Final for the blocks that have become final. A failure holds up only the
// next checkpoint.
func (b *Builder[B]) finish(ctx context.Context) {
	for block, some := b.chain.nextFinal(); some && !time.Now().Before(b.finalAt); block, some = b.chain.nextFinal() {
		if err := b.callFinal(ctx, block); err != nil {
			b.log.Error("builder: Final failed; it is called again", "block", block.Number, "err", err)
			b.finalAt = time.Now().Add(b.cfg.Retry)
			return
		}
		b.chain.finished()
	}
}

// propose calls Propose. The call ends early if a block fails meanwhile.
func (b *Builder[B]) propose(ctx context.Context, number uint64) (body B, root common.Hash, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	b.interrupt, b.interrupted = cancel, false
	b.mu.Unlock()
	err = b.calls.make(ctx, "Rollup.Propose", func() (err error) {
		body, root, err = b.rollup.Propose(ctx, number)
		return err
	})
	return body, root, err
}

// wasInterrupted reports whether a block has failed during the last proposal.
func (b *Builder[B]) wasInterrupted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.interrupted
}

// Import passes on a JAM block: see submit.ChainSink. The step is in the log before
// its consequences are carried out.
func (b *Builder[B]) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	defer b.wake() // a slot has begun
	return b.runner.Import(ctx, block, best)
}

// Finalize passes on a final JAM block: see submit.ChainSink.
func (b *Builder[B]) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return b.runner.Finalize(ctx, hash)
}

// sender builds and sends packages when the queue asks for it. The request is in the
// log by then.
type sender[B any] struct{ *Builder[B] }

// Build implements submit.Builder.
func (s sender[B]) Build(ctx context.Context, r bundlequeue.Build[bundle[B]]) (built submit.Package[bundle[B]], err error) {
	if err := s.awaitApplied(ctx, &r.Bundle.block); err != nil {
		return built, err
	}
	var pkg Package
	payload, err := await(ctx, s.calls, "Rollup.Payload", func() ([]byte, error) { return s.rollup.Payload(ctx, r.Bundle.block) })
	if err == nil {
		pkg, err = await(ctx, s.calls, "Network.Pack", func() (Package, error) { return s.network.Pack(ctx, anchorOf(&r), payload) })
	}
	if err == nil {
		err = checkSize("the package of block", r.Number, len(pkg.Data))
	}
	return submit.Package[bundle[B]]{Hash: pkg.Hash, Context: pkg.Context, Bundle: bundle[B]{r.Bundle.block, &pkg}}, err
}

// awaitApplied waits until the rollup has applied a block, so that no package leaves
// with a root that a second execution does not have.
func (s sender[B]) awaitApplied(ctx context.Context, b *Block[B]) error {
	for {
		there, applied, moved := s.chain.has(b)
		switch {
		case !there:
			return fmt.Errorf("builder: block %d was undone", b.Number)
		case applied:
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Submit implements submit.Submitter.
func (s sender[B]) Submit(ctx context.Context, r bundlequeue.Send[bundle[B]]) error {
	return s.calls.make(ctx, "Network.Send", func() error { return s.network.Send(ctx, *r.Bundle.pkg, r.Core, r.Attempt) })
}
