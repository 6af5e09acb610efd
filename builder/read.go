package builder

import (
	"context"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
)

// Heads returns the heads of the rollup. Pending is the newest block that the
// rollup has applied; a failed block leaves the heads only after Undo has returned.
// Hash and Commitment of a head are those of the builder, which are different for
// each execution of a block.
func (e *engine) Heads() canonical.Heads {
	e.chain.mu.Lock()
	defer e.chain.mu.Unlock()
	return e.chain.heads()
}

// Await waits until wanted returns true for the heads of the rollup. It returns the error of ctx,
// or the error of Run if the builder stops first.
func (e *engine) Await(ctx context.Context, wanted func(canonical.Heads) bool) error {
	for {
		e.chain.mu.Lock()
		heads, moved := e.chain.heads(), e.chain.moved
		e.chain.mu.Unlock()
		if wanted(heads) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.stopped:
			return e.cause
		}
	}
}

// Drain waits until every block is final and no operation waits, for example before
// a program stops. The host passes the function waiting, which reports whether the
// rollup has operations that can run. Drain calls it when the heads have moved and
// when Propose has returned ErrIdle. The errors are those of Await.
func (e *engine) Drain(ctx context.Context, waiting func() bool) error {
	return e.Await(ctx, func(canonical.Heads) bool {
		// An operation moves from the waiting ones into a block, and back if the block fails.
		// Checking the blocks before and after waiting ensures that no operation is missed in
		// between.
		return e.chain.settled() && !waiting() && e.chain.settled()
	})
}

// block does the work of Builder.Block.
func (e *engine) block(number uint64) (block, bool) {
	e.chain.mu.Lock()
	defer e.chain.mu.Unlock()
	for _, blocks := range [][]block{e.chain.finals, e.chain.blocks} {
		for _, block := range blocks {
			if block.Number == number {
				return block, true
			}
		}
	}
	return block{}, false
}

// Stats returns a summary of the queue. The error wraps ErrStopped if the builder
// does not run.
func (e *engine) Stats(ctx context.Context) (stats bundlequeue.Stats, err error) {
	err = e.inTurn(ctx, func() error { stats = e.queue.Stats(); return nil })
	return stats, err
}

// Info describes the bundle of a block, if the queue has it. The error wraps ErrStopped if the
// builder does not run.
func (e *engine) Info(ctx context.Context, number uint64) (info bundlequeue.Info, found bool, err error) {
	err = e.inTurn(ctx, func() error { info, found = e.queue.Info(number); return nil })
	return info, found, err
}

// GiveUp orders the builder to make no more packages for a block that is not final. If JAM
// accumulates none of the packages already sent, the block is undone together with all later
// blocks, and their operations wait again. The error wraps bundlequeue.ErrWrongNumber or
// ErrStopped.
func (e *engine) GiveUp(ctx context.Context, number uint64, reason string) error {
	return e.inTurn(ctx, func() error { return e.step(bundlequeue.GiveUp{Number: number, Reason: reason}) })
}

// SetCores changes the set of JAM cores that packages are sent to. Packages that are on
// their way stay on their cores. The list must have at least one core of the chain, and
// no core twice. The change survives a restart.
//
// From Gray Paper 0.8.0 on, only the cores below a third of the number of active
// validators are active. A package for another core is never reported, which costs a
// retry. The error wraps bundlequeue.ErrUnknownEvent or ErrStopped.
func (e *engine) SetCores(ctx context.Context, cores []jamq.CoreIndex) error {
	return e.inTurn(ctx, func() error {
		if err := e.step(bundlequeue.Cores{Cores: cores}); err != nil {
			return err
		}
		e.unpause() // the fatal error may have been about the cores
		return nil
	})
}

// Resume makes a builder that makes and sends no packages continue at once. It ends
// three states:
//
//   - the wait for newer blocks after a restart (see Config.HoldTimeout)
//   - the wait after a loss of records (see Health.Doubted)
//   - the pause after a fatal error (see submit.Fatal)
//
// In any other state, Resume does nothing. The error wraps ErrLog or ErrStopped.
func (e *engine) Resume(ctx context.Context) error {
	return e.inTurn(ctx, func() error {
		if err := e.trustLog(); err != nil {
			return err
		}
		e.release()
		e.unpause()
		return nil
	})
}
