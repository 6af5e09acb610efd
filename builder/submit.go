package builder

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// This file has the way of a user's operation into the log; work.go makes blocks of operations, and
// engine.go takes the steps of the queue. Each of them appends to the log first and acts
// afterwards:
//
//	when is an operation safe?       when Submit has returned nil
//	when may the RPC answer?         then, and not before
//	when may a package leave?        when the step of the queue that sends it is in
//	                                 the log (engine.step)
//	when is an operation executed    never: a block and its operations are one record,
//	twice?                           and come back only when the queue has recorded
//	                                 that no version can be accumulated (chain.follow)
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
	if most := e.cfg.Queue.Spec.MaxBundleSize; len(op) > most {
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
