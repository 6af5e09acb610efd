package builder

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"
)

// This file contains the path of a user's operation into the log. From there,
// work.go makes blocks of operations, and engine.go makes the steps of the queue.
// The common rule is that users and the network see a consequence only when the log
// has the cause:
//
//	when is an operation safe?       when Submit has returned nil
//	when may the RPC answer?         then, and not before
//	can a block have an operation    no: each write to the log begins with all changes that
//	that the log does not have?      the rollup has made until then (records.write)
//	when may a package leave?        when the step of the queue that sends it is in
//	                                 the log (engine.step)
//	when is an operation executed    never: a block and its operations are one record,
//	twice?                           and come back only when the queue has recorded
//	                                 that no version can be accumulated (chain.follow)

// Submit passes an operation of a user to the rollup. It can be called also before
// Run. It returns nil when the rollup has admitted the operation and the log has
// the change. From then on, the operation is executed exactly once, unless the
// rollup drops it and records that. The errors are:
//
//   - ErrTooLarge, wrapped: no work package can contain the operation
//   - the error of Rollup.Admit, if Admit has refused the operation
//   - ErrFollows, wrapped: another process leads the log and must get the operation
//   - ErrBusy, wrapped: the log does not answer, see Busy
//   - ErrLog or ErrStopped, wrapped: the operation may be executed after a restart
//   - ErrPanic, wrapped: Admit has panicked, and the operation may be executed
//
// If a user gets ErrLog, ErrStopped, ErrPanic or no answer, it is unknown whether
// the operation will be executed. The user should submit it again: it is executed
// only once, because Admit recognizes it. After any other error, the operation has
// no effect.
func (e *engine) Submit(ctx context.Context, op []byte) error {
	if isClosed(e.stopped) {
		return cmp.Or(e.records.failure(), ErrStopped)
	}
	if err := e.whyFollows(); err != nil {
		return err
	}
	if err := e.Busy(); err != nil {
		return err
	}
	if most := e.cfg.Queue.Spec.MaxBundleSize; len(op) > most {
		return fmt.Errorf("%w: an operation has %d bytes, want at most %d, as no package has more", ErrTooLarge, len(op), most)
	}
	op = bytes.Clone(op) // the rollup may keep it
	if err := e.calls.judge(ctx, "Rollup.Admit", func() error { return e.host.admit(ctx, op) }); err != nil {
		return err
	}
	return e.save()
}

// slowWrite is how long a write may take before Submit refuses operations.
const slowWrite = 5 * time.Second

// Busy returns an error that wraps ErrBusy if a write to the log has been running
// for more than five seconds. Further operations would only wait in memory, without
// a limit, so Submit refuses them. A host that accepts operations in another way,
// as builder/mempool does, must call Busy before.
func (e *engine) Busy() error {
	for _, write := range []string{logAppend, logReplace} {
		if _, began := e.calls.running(write); !began.IsZero() && time.Since(began) > slowWrite {
			return fmt.Errorf("%w for %v; try again later", ErrBusy, time.Since(began).Round(time.Second))
		}
	}
	return nil
}

// save makes all earlier changes of the rollup durable, by writing them to the log.
func (e *engine) save() error {
	e.wake() // a block can be made of the changes meanwhile
	return e.records.append()
}
