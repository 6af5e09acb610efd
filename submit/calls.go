package submit

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
)

// do runs f on the loop's goroutine and waits for it.
func (r *Runner[B]) do(ctx context.Context, f func() error) error {
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
	// The loop took it, so it will run it: an accepted call is never left without an answer.
	return <-result
}

// Step feeds the queue any event, such as bundlequeue.Reserve, Release, Rekey, GiveUp, Resize,
// Cores, Retry, Told or Continue. The effects go to Config.Observe. Errors are those of the queue,
// ErrStopped, or ctx's if the runner did not take the event in time; then it had no effect.
//
// If Step returns ErrJournal, the runner has stopped and it is unknown whether the step was
// recorded.
func (r *Runner[B]) Step(ctx context.Context, ev bundlequeue.Event) error {
	return r.do(ctx, func() error { return r.feed(ev) })
}

// feed takes an event from the host.
func (r *Runner[B]) feed(ev bundlequeue.Event) error {
	if err := r.step(ev); err != nil {
		return err
	}
	switch ev := ev.(type) {
	case bundlequeue.Imported:
		r.noteImport(ev.Block.Slot)
		if r.recent(r.queue.Best().Slot) {
			r.release()
		}
	case bundlequeue.Cores: // a fatal error may have been about the cores
		r.unpause()
	}
	return nil
}

// Enqueue adds a bundle: see bundlequeue.Enqueue. If it returns ErrJournal, the runner has stopped
// and it is unknown whether the bundle was recorded. Do not reuse its transactions until
// [Runner.Recovered] of the next runner shows whether its commitment is in the queue.
func (r *Runner[B]) Enqueue(ctx context.Context, bundle bundlequeue.Enqueue[B]) error {
	return r.Step(ctx, bundle)
}

// EnqueueNext adds a bundle with the next number, and returns the number. Errors are those of
// Enqueue.
func (r *Runner[B]) EnqueueNext(ctx context.Context, commitment common.Hash, bundle B) (number uint64, err error) {
	err = r.do(ctx, func() error {
		number = r.queue.Next()
		return r.feed(bundlequeue.Enqueue[B]{Number: number, Commitment: commitment, Bundle: bundle})
	})
	return number, err
}

// Next returns the number that the next bundle must have.
func (r *Runner[B]) Next(ctx context.Context) (number uint64, err error) {
	err = r.do(ctx, func() error {
		number = r.queue.Next()
		return nil
	})
	return number, err
}

// Import feeds one imported JAM block and the head of the best chain after it: see
// bundlequeue.Imported. A block that finality has overtaken is ignored.
func (r *Runner[B]) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	return ignoreOld(r.Step(ctx, bundlequeue.Imported{Block: block, Best: best}))
}

// Finalize feeds a finalized JAM block: see bundlequeue.FinalizedBlock. An ancestor of a block that
// was finalized before is ignored.
func (r *Runner[B]) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return ignoreOld(r.Step(ctx, bundlequeue.FinalizedBlock{Hash: hash}))
}

func ignoreOld(err error) error {
	if errors.Is(err, chainview.ErrOld) {
		return nil
	}
	return err
}

// Resume makes a runner act that has recovered and waits for newer blocks (see [OpenRunner]), or
// that a fatal error has paused (see [Fatal]). Otherwise it does nothing.
func (r *Runner[B]) Resume(ctx context.Context) error {
	return r.do(ctx, func() error {
		r.release()
		r.unpause()
		return nil
	})
}

// recent reports whether a block of that slot shows the chain as it is now.
func (r *Runner[B]) recent(slot jamq.Slot) bool {
	const slots = 3
	return slot+slots >= r.cfg.Window.Clock.SlotAt(time.Now())
}

// CanEnqueue reports whether the queue would take another bundle now.
func (r *Runner[B]) CanEnqueue(ctx context.Context) (can bool, err error) {
	err = r.do(ctx, func() error {
		can = r.queue.CanEnqueue()
		return nil
	})
	return can, err
}

// Info describes one bundle: see bundlequeue.Queue.Info.
func (r *Runner[B]) Info(ctx context.Context, number uint64) (info bundlequeue.Info, found bool, err error) {
	err = r.do(ctx, func() error {
		info, found = r.queue.Info(number)
		return nil
	})
	return info, found, err
}

// Infos describes all bundles that the queue holds, by number.
func (r *Runner[B]) Infos(ctx context.Context) (infos []bundlequeue.Info, err error) {
	err = r.do(ctx, func() error {
		infos = r.queue.Infos()
		return nil
	})
	return infos, err
}

// Stats summarizes the queue.
func (r *Runner[B]) Stats(ctx context.Context) (stats bundlequeue.Stats, err error) {
	err = r.do(ctx, func() error {
		stats = r.queue.Stats()
		return nil
	})
	return stats, err
}

// Drain waits until every bundle is final, or ctx ends. The host goes on feeding blocks meanwhile.
func (r *Runner[B]) Drain(ctx context.Context) error {
	var idle chan struct{}
	err := r.do(ctx, func() error {
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle = r.idle // shared by all callers, so that one that gives up leaves nothing behind
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

// wakeIdle wakes the callers of Drain once every bundle is final.
func (r *Runner[B]) wakeIdle() {
	if r.idle == nil || r.queue.Pending() > 0 {
		return
	}
	close(r.idle)
	r.idle = nil
}
