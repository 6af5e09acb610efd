package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
)

// do runs f on the loop's goroutine and waits for it.
func (r *Runner) do(ctx context.Context, f func() error) error {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if !started {
		return ErrStopped
	}
	result := make(chan error, 1)
	select {
	case r.calls <- func() { result <- f() }:
	case <-r.done:
		return r.stopped()
	case <-ctx.Done():
		return ctx.Err()
	}
	// The loop has taken the call and always runs it to its end.
	return <-result
}

// Step feeds one event to the queue, such as bundlequeue.Reserve, Release,
// Rekey, GiveUp, Resize, Cores, Retry, Told or Continue. The effects go to
// Config.Observe.
//
// Step returns the queue's error if the queue refuses the event, ErrStopped if
// the runner does not run, and ctx's error if the runner did not take the event
// in time. In these cases the event had no effect.
//
// If Step returns ErrJournal, the runner has stopped and it is unknown whether
// the step was recorded.
func (r *Runner) Step(ctx context.Context, ev bundlequeue.Event) error {
	return r.do(ctx, func() error { return r.feed(ev) })
}

// feed processes an event from the host.
func (r *Runner) feed(ev bundlequeue.Event) error {
	if imported, ok := ev.(bundlequeue.Imported); ok && r.repeating {
		if r.repeating = r.queue.Knows(imported.Block.Hash); r.repeating {
			imported.Best = r.queue.Best().Hash
			ev = imported
		}
	}
	if err := r.step(ev); err != nil {
		return err
	}
	switch ev := ev.(type) {
	case bundlequeue.Imported:
		r.noteImport(ev.Block.Slot)
		if r.recent(r.queue.Best().Slot) {
			r.release()
		}
	case bundlequeue.Cores:
		// The fatal error may have been about the cores.
		r.unpause()
	}
	return nil
}

// Enqueue adds a bundle: see bundlequeue.Enqueue. Errors are those of
// [Runner.Step].
//
// If Enqueue returns ErrJournal, the runner has stopped and it is unknown
// whether the bundle was recorded. Do not reuse its transactions until
// [Runner.Recovered] of the next runner shows whether its commitment is in the
// queue.
func (r *Runner) Enqueue(ctx context.Context, bundle bundlequeue.Enqueue) error {
	return r.Step(ctx, bundle)
}

// EnqueueNext adds a bundle with the next free number and returns that number.
// parent is the commitment of the bundle on which it was executed, and
// commitment is its own: see bundlequeue.Enqueue. Neither may be zero.
//
// If an earlier bundle failed while this one was executed, parent is not the
// last bundle any more, and EnqueueNext returns bundlequeue.ErrWrongParent. The
// number would fit, but the pre-state does not exist. The host then takes the
// failed bundles back and executes the transactions again. Other errors are
// those of [Runner.Enqueue].
func (r *Runner) EnqueueNext(ctx context.Context, parent, commitment common.Hash, bundle []byte) (number uint64, err error) {
	if none := (common.Hash{}); parent == none || commitment == none {
		return 0, fmt.Errorf("%w: parent %s and commitment %s, want both not zero", bundlequeue.ErrWrongParent, parent, commitment)
	}
	err = r.do(ctx, func() error {
		number = r.queue.Next()
		return r.feed(bundlequeue.Enqueue{Number: number, Commitment: commitment, Parent: parent, Bundle: bundle})
	})
	return number, err
}

// Next returns the number that the next bundle must have.
func (r *Runner) Next(ctx context.Context) (number uint64, err error) {
	err = r.do(ctx, func() error {
		number = r.queue.Next()
		return nil
	})
	return number, err
}

// Import feeds one imported JAM block and the head of the best chain after it:
// see bundlequeue.Imported.
//
// A feed may repeat blocks after a restart, each as the best one. The best block
// therefore stays until the feed delivers a block that the recovered queue did
// not know.
func (r *Runner) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	return r.Step(ctx, bundlequeue.Imported{Block: block, Best: best})
}

// Finalize feeds a finalized JAM block: see bundlequeue.FinalizedBlock. If the
// block is an ancestor of the finalized block, Finalize ignores it and returns
// nil.
func (r *Runner) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	err := r.Step(ctx, bundlequeue.FinalizedBlock{Hash: hash})
	if errors.Is(err, chainview.ErrOld) {
		return nil
	}
	return err
}

// Resume ends two states in which a runner does not build or send: the wait for
// newer blocks after a recovery (see [OpenRunner]) and the pause after a fatal
// error (see [Fatal]). In any other state it does nothing.
func (r *Runner) Resume(ctx context.Context) error {
	return r.do(ctx, func() error {
		r.release()
		r.unpause()
		return nil
	})
}

// recent reports whether slot is at most three slots old.
func (r *Runner) recent(slot jamq.Slot) bool {
	const slots = 3
	return slot+slots >= r.cfg.Window.Clock.SlotAt(time.Now())
}

// CanEnqueue reports whether the queue would accept another bundle now.
func (r *Runner) CanEnqueue(ctx context.Context) (can bool, err error) {
	err = r.do(ctx, func() error {
		can = r.queue.CanEnqueue()
		return nil
	})
	return can, err
}

// Info describes one bundle: see bundlequeue.Queue.Info. found is false if the
// queue does not hold it.
func (r *Runner) Info(ctx context.Context, number uint64) (info bundlequeue.Info, found bool, err error) {
	err = r.do(ctx, func() error {
		info, found = r.queue.Info(number)
		return nil
	})
	return info, found, err
}

// Infos describes all bundles in the queue, sorted by number.
func (r *Runner) Infos(ctx context.Context) (infos []bundlequeue.Info, err error) {
	err = r.do(ctx, func() error {
		infos = r.queue.Infos()
		return nil
	})
	return infos, err
}

// Stats summarizes the queue.
func (r *Runner) Stats(ctx context.Context) (stats bundlequeue.Stats, err error) {
	err = r.do(ctx, func() error {
		stats = r.queue.Stats()
		return nil
	})
	return stats, err
}

// Drain waits until every bundle is final. The host must continue to feed
// blocks meanwhile. Drain returns ctx's error if ctx ends first, and ErrStopped
// if the runner stops.
func (r *Runner) Drain(ctx context.Context) error {
	var idle chan struct{}
	err := r.do(ctx, func() error {
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle = r.idle // shared by all callers
		r.wakeIdle()
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-idle:
		return nil
	case <-r.done:
		return r.stopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wakeIdle wakes the callers of Drain if every bundle is final.
func (r *Runner) wakeIdle() {
	if r.idle == nil || r.queue.Pending() > 0 {
		return
	}
	close(r.idle)
	r.idle = nil
}
