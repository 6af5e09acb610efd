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
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
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
// submits it again, and it is executed once, because Admit recognizes it or Check refuses
// it. If the rollup is a Recorder, the error is that of Admit.
func (e *engine) Submit(ctx context.Context, op []byte) error {
	select {
	case <-e.stopped:
		if err := e.records.failure(); err != nil {
			return err
		}
		return ErrStopped
	default:
	}
	if most := e.cfg.Runner.Queue.Spec.MaxBundleSize; len(op) > most {
		return fmt.Errorf("%w: an operation has %d bytes, want at most %d, as no package has more", ErrTooLarge, len(op), most)
	}
	if c, ok := e.host.optional().(Checker); ok {
		if err := e.calls.judge(ctx, "Rollup.Check", func() error { return c.Check(ctx, op) }); err != nil {
			return err
		}
	}
	// No checkpoint begins between a change of the rollup and its record.
	if err := e.admitting.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.admitting.Release(1)
	if _, ok := e.host.optional().(Recorder); ok {
		defer e.wake()
		return e.calls.judge(ctx, "Rollup.Admit", func() error { return e.host.admit(ctx, op) })
	}
	id := newID()
	if err := e.records.append(slices.Concat([]byte{recordOperation}, id[:], op)); err != nil {
		return err
	}
	op = bytes.Clone(op)
	ctx = context.WithoutCancel(ctx) // the operation is in the log, although the user has gone
	outcome := byte(recordTaken)
	refusal := e.calls.judge(ctx, "Rollup.Admit", func() error { return e.host.admit(ctx, op) })
	if refusal != nil {
		outcome = recordRefused
	}
	e.wake()
	if err := e.records.append(append([]byte{outcome}, id[:]...)); err != nil {
		return err
	}
	return refusal
}

// record appends records of the rollup: see Recorder.
func (e *engine) record(records ...[]byte) error {
	defer e.wake()
	return e.records.append(framed(recordRollup, records)...)
}

// produce lets the rollup propose a block and puts it into the queue. The step of
// the queue has the block, so that the block, its operations and its place are one
// record. produce reports whether there is a new block.
func (e *engine) produce(ctx context.Context) (made bool, err error) {
	if can, err := e.runner.CanEnqueue(ctx); err != nil || !can {
		return false, err
	}
	parent, serial, caughtUp := e.chain.parent()
	if !caughtUp {
		return true, nil // follow first
	}
	block := block{Number: parent.Number + 1, PreRoot: parent.Root, serial: serial}
	block.Body, block.Root, err = e.propose(ctx, block.Number)
	switch interrupted := e.wasInterrupted(); {
	case interrupted:
		return true, nil // follow first
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
	err = e.runner.Enqueue(ctx, bundlequeue.Enqueue{
		Number: block.Number, Commitment: block.commitment, Parent: parent.commitment, Bundle: appendBlock(nil, &block),
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
// log is read again. The error is that of a block in the log that cannot be read.
func (e *engine) follow(ev bundlequeue.Event, effects []bundlequeue.Effect) error {
	var enqueued *block
	if ev, ok := ev.(bundlequeue.Enqueue); ok {
		var err error
		if enqueued, err = e.enqueued(&ev); err != nil {
			return err
		}
	}
	if undone := e.chain.follow(enqueued, effects); undone {
		e.mu.Lock()
		e.interrupted = true // the proposal has no pre-state any more
		e.interrupt()
		e.mu.Unlock()
	}
	if err := e.trust.follow(effects); err != nil && e.running {
		select {
		case e.doubted <- err:
		default: // it stops already
		}
	}
	e.wake()
	return nil
}

// enqueued returns the block that a step has enqueued: the proposal, or a block of the
// log. No code of the host runs for the proposal, because the queue waits meanwhile.
func (e *engine) enqueued(ev *bundlequeue.Enqueue) (*block, error) {
	if b := e.proposed.Load(); b != nil && b.commitment == ev.Commitment {
		return b, nil
	}
	b, err := readBlock(ev.Bundle)
	if err == nil {
		err = e.decode(&b)
	}
	return &b, err
}

// carry lets the rollup follow the log by one task, and checks the root. After an error it is
// called again for the same task. If only the root is unknown, because Root has panicked, the
// next call does not repeat Apply or Undo.
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

// call makes the call of a task.
func (e *engine) call(ctx context.Context, t task) error {
	if t.kind == undo {
		return e.calls.make(ctx, "Rollup.Undo", func() error { return e.host.undo(ctx, t.block) })
	}
	return e.calls.make(ctx, "Rollup.Apply", func() error { return e.host.apply(ctx, t.block) })
}

// callFinal tells the rollup that a block is final.
func (e *engine) callFinal(ctx context.Context, block block) error {
	return e.calls.make(ctx, "Rollup.Final", func() error { return e.host.final(ctx, block) })
}

// work makes all calls of the rollup except Check, Admit and Payload. It follows the log
// first, and produces blocks when the rollup has caught up.
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
		case errors.Is(err, ErrDiverged), isOver(err):
			return err
		case err != nil:
			e.log.Error("builder: a call of the rollup failed; it is repeated", "err", err)
			woken = nil // not before its time
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

// isOver reports whether an error means that the runner has stopped.
func isOver(err error) bool {
	return errors.Is(err, drive.ErrJournal) || errors.Is(err, drive.ErrStopped)
}

// workOnce does the next thing, and reports whether there may be another one. An error
// means that Apply or Undo has failed, and that nothing else can be done before.
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
	if err == nil || isOver(err) || ctx.Err() != nil {
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

// finish calls Final for the blocks that have become final. A failure holds up only the
// next checkpoint.
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

// propose calls Propose. The call ends early if a block fails meanwhile.
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

// wasInterrupted reports whether a block has failed during the last proposal.
func (e *engine) wasInterrupted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.interrupted
}

// Import passes on a JAM block: see submit.ChainSink. The step is in the log before
// its consequences are carried out.
func (e *engine) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	defer e.wake() // a slot has begun
	err := e.runner.Import(ctx, block, best)
	if errors.Is(err, chainview.ErrMissingParent) {
		return fmt.Errorf("builder: the network is on another chain than the log, or it left out a block after the log's last final one: %w", err)
	}
	return err
}

// Finalize passes on a final JAM block: see submit.ChainSink.
func (e *engine) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return e.runner.Finalize(ctx, hash)
}

// sender builds and sends packages when the queue asks for it. The request is in the
// log by then.
type sender struct{ *engine }

// Build implements drive.Builder.
func (s sender) Build(ctx context.Context, r bundlequeue.Build) (built drive.Package, err error) {
	header, err := readBlock(r.Bundle)
	if err != nil {
		return built, err
	}
	b, err := s.awaitApplied(ctx, &header)
	if err != nil {
		return built, err
	}
	payload, err := await(ctx, s.calls, "Rollup.Payload", func() ([]byte, error) { return s.host.payload(ctx, b) })
	if err != nil {
		return built, err
	}
	pkg, err := await(ctx, s.calls, "Network.Pack", func() (Package, error) { return s.network.Pack(ctx, anchorOf(&r), payload) })
	if err != nil {
		return built, err
	}
	err = checkSize("the package of block", r.Number, len(pkg.Data))
	return drive.Package{Hash: pkg.Hash, Context: pkg.Context, Bundle: appendPackage(nil, &pkg)}, err
}

// awaitApplied waits until the rollup has applied a block, so that no package leaves
// with a root that a second execution does not have. It returns the block with its body.
func (s sender) awaitApplied(ctx context.Context, header *block) (block, error) {
	for {
		b, there, applied, moved := s.chain.find(header.commitment)
		switch {
		case !there:
			return block{}, fmt.Errorf("builder: block %d was undone", header.Number)
		case applied:
			return b, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return block{}, ctx.Err()
		}
	}
}

// Submit implements drive.Submitter.
func (s sender) Submit(ctx context.Context, r bundlequeue.Send) error {
	pkg, err := readPackage(r.Bundle)
	if err != nil {
		return err
	}
	return s.calls.make(ctx, "Network.Send", func() error { return s.network.Send(ctx, pkg, r.Core, r.Attempt) })
}
