package builder

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// queueLog is the log as the runner sees it: the records of the queue.
type queueLog[B any] struct {
	*Builder[B]
	ctx context.Context
	// start is the first record of the log, nil if the log begins now.
	start *checkpoint[B]
	// begin are the records with which it begins, before those of the queue.
	begin [][]byte
	// outcomes are those of the operations.
	outcomes outcomes
	// cause is the first error of a record, which the runner wraps.
	cause error
}

// recover opens the runner, which replays the log, and leads the rollup to its
// present state.
func (b *Builder[B]) recover(ctx context.Context) error {
	first, err := b.records.first()
	if err != nil {
		return err
	}
	if first == nil {
		root, err := b.root()
		if err != nil {
			return err
		}
		if err := b.checkUnused(ctx); err != nil {
			return err
		}
		final := genesis[B](b.cfg.Runner.Queue.FirstNumber-1, root)
		b.chain.begin(final, 0)
		if err := b.beginLog(ctx, &checkpoint[B]{final: final}, nil); err != nil {
			return err
		}
	} else if err := b.continueLog(ctx, first); err != nil {
		return err
	}
	if r, ok := b.rollup.(Recorder); ok {
		if err := guard(func() error { return r.Recovered(ctx, b.record) }); err != nil {
			return err
		}
	}
	if b.cfg.NewChain && first != nil {
		if err := b.leaveChain(ctx); err != nil {
			return err
		}
	}
	b.found = b.runner.Recovered()
	b.found.Logger = b.log
	if b.chain.final.Number >= b.chain.first {
		b.trust.earned.Store(true)
	}
	b.trust.lost, b.running = 0, true
	return nil
}

// beginLog begins the log with a checkpoint and a new queue, in place of whatever it
// has.
func (b *Builder[B]) beginLog(ctx context.Context, c *checkpoint[B], state [][]byte) error {
	var root jamq.Block
	if err := guard(func() (err error) { root, err = b.network.Root(ctx); return err }); err != nil {
		return err
	}
	c.first = c.final.Number + 1
	return b.openRunner(root, c.first, &queueLog[B]{Builder: b, ctx: ctx, begin: b.stored.checkpointRecords(c, state)})
}

// continueLog recovers from a log with the given first record.
func (b *Builder[B]) continueLog(ctx context.Context, first []byte) error {
	if first[0] != recordCheckpoint {
		return fmt.Errorf("%w: it begins with a record of kind %q", ErrCorrupt, first[0])
	}
	start, err := b.stored.readCheckpoint(first[1:])
	if err != nil {
		return err
	}
	outcomes, err := b.records.outcomes()
	if err != nil {
		return err
	}
	log := &queueLog[B]{Builder: b, ctx: ctx, start: start, outcomes: outcomes}
	if err := b.openRunner(jamq.Block{}, start.first, log); log.cause != nil {
		return log.cause
	} else if err != nil {
		return err
	}
	return nil
}

// root returns the root of the rollup.
func (b *Builder[B]) root() (root common.Hash, err error) {
	err = b.calls.make(context.Background(), "Rollup.Root", func() error { root = b.rollup.Root(); return nil })
	return root, err
}

// openRunner opens the runner of a queue that begins with the given number.
func (b *Builder[B]) openRunner(root jamq.Block, first uint64, log *queueLog[B]) (err error) {
	cfg := b.cfg.Runner
	cfg.Queue.FirstNumber, b.chain.first = first, first
	observe := cfg.Observe
	cfg.Observe = func(o submit.Observation) {
		if observe == nil {
			return
		}
		o.Effect = shown[B](o.Effect)
		if err := b.calls.make(context.Background(), "Config.Runner.Observe", func() error { observe(o); return nil }); err != nil {
			b.log.Error("builder: Config.Runner.Observe failed", "err", err)
		}
	}
	durable := submit.Durability[bundle[B]]{Journal: log, Codec: b.stored, SnapshotEvery: -1, Follow: b.follow}
	b.runner, err = submit.OpenRunner(cfg, root, durable, sender[B]{b}, sender[B]{b})
	return err
}

// shown returns an effect with the block of its bundle.
func shown[B any](effect bundlequeue.Effect) bundlequeue.Effect {
	switch e := effect.(type) {
	case bundlequeue.Build[bundle[B]]:
		return bundlequeue.Build[Block[B]]{
			Ticket: e.Ticket, Number: e.Number, Version: e.Version, Bundle: e.Bundle.block, Core: e.Core,
			Offset: e.Offset, Anchor: e.Anchor, MinAnchor: e.MinAnchor, Prerequisites: e.Prerequisites,
		}
	case bundlequeue.Send[bundle[B]]:
		return bundlequeue.Send[Block[B]]{
			Ticket: e.Ticket, Number: e.Number, Version: e.Version, Package: e.Package, Bundle: e.Bundle.block, Core: e.Core, Attempt: e.Attempt,
		}
	case bundlequeue.Failed[bundle[B]]:
		return bundlequeue.Failed[Block[B]]{
			Ticket: e.Ticket, Number: e.Number, Commitment: e.Commitment, Bundle: e.Bundle.block, Cause: e.Cause, Lost: e.Lost, Reason: e.Reason,
		}
	}
	return effect
}

// leaveChain undoes all blocks that are not final, because their JAM chain has ended,
// and begins the log again. Open has checked that the rollup is a Checkpointer.
func (b *Builder[B]) leaveChain(ctx context.Context) error {
	c := b.rollup.(Checkpointer)

	b.records.begin() // the records that the rollup appends meanwhile stay
	defer func() { _ = b.records.end(nil) }()
	b.chain.cutAll()
	if err := b.catchUp(ctx); err != nil {
		return err
	}
	var state [][]byte
	if err := guard(func() (err error) { state, err = c.Checkpoint(ctx); return err }); err != nil {
		return err
	}
	start := b.chain.checkpoint()
	start.made, start.records = true, len(state)
	if err := b.beginLog(ctx, start, state); err != nil {
		return err
	}
	b.prune(ctx)
	return nil
}

// Append implements submit.Journal.
func (l *queueLog[B]) Append(records ...[]byte) error {
	return l.records.append(framed(recordQueue, records)...)
}

// Replace implements submit.Journal. The runner calls it to begin a queue and after
// a recovery. In the latter case the records before stay until the next checkpoint: they
// lead to the same state, and those of the rollup are needed.
func (l *queueLog[B]) Replace(records ...[]byte) error {
	all := framed(recordQueue, records)
	if l.begin == nil {
		return l.records.append(all...)
	}
	all, l.begin = append(l.begin, all...), nil
	return l.Builder.records.end(all)
}

// Replay implements submit.Journal. It reads the whole log once: the records of the
// queue go to the runner, which calls follow, and the others to the rollup.
func (l *queueLog[B]) Replay(step func(record []byte) error) error {
	if l.start == nil {
		return nil
	}
	var state [][]byte
	read, restored := 0, false
	each := func(record []byte) error {
		switch read++; {
		case len(record) == 0:
			return fmt.Errorf("%w: an empty record", ErrCorrupt)
		case read == 1:
			return nil // start
		case record[0] == recordState && len(state) < l.start.records:
			state = append(state, bytes.Clone(record[1:]))
			return nil
		}
		if !restored {
			restored = true
			if err := l.restore(l.start, state); err != nil {
				return err
			}
		}
		l.Builder.records.size += weight(record)
		return l.again(record[0], record[1:], step)
	}
	err := l.records.log.Replay(func(record []byte) error {
		l.cause = each(record)
		return l.cause
	})
	switch {
	case l.cause != nil:
	case err != nil:
		l.cause = fmt.Errorf("%w: %w", ErrLog, err)
	case !restored:
		l.cause = fmt.Errorf("%w: it ends after its checkpoint", ErrCorrupt)
	}
	return l.cause
}

// again does what was done with a record before the restart.
func (l *queueLog[B]) again(kind byte, body []byte, step func(record []byte) error) error {
	switch kind {
	case recordOperation:
		return l.admitAgain(body)
	case recordTaken, recordRefused:
		return nil
	case recordRollup:
		r, ok := l.rollup.(Recorder)
		if !ok {
			return fmt.Errorf("%w: the log has records of a Recorder, and the rollup is none", ErrOtherRollup)
		}
		return guard(func() error { return r.Replay(l.ctx, bytes.Clone(body)) })
	case recordQueue:
		if err := step(body); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return l.catchUp(l.ctx)
	}
	return fmt.Errorf("%w: a record of kind %q", ErrCorrupt, kind)
}

// restore sets the chain and the rollup to a checkpoint.
func (l *queueLog[B]) restore(begin *checkpoint[B], state [][]byte) error {
	if len(state) != begin.records {
		return fmt.Errorf("%w: a checkpoint of %d records has %d", ErrCorrupt, begin.records, len(state))
	}
	want := l.chain.restore(begin)
	if begin.made {
		c, ok := l.rollup.(Checkpointer)
		if !ok {
			return fmt.Errorf("%w: the log has a checkpoint, and the rollup is no Checkpointer", ErrOtherRollup)
		}
		if err := guard(func() error { return c.Restore(l.ctx, state) }); err != nil {
			return fmt.Errorf("builder: restore a checkpoint: %w", err)
		}
	}
	have, err := l.root()
	if err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("%w: have root %s, want %s", ErrOtherRollup, have, want)
	}
	return nil
}

// admitAgain gives the rollup an operation of the log. One that has had no answer has an
// effect only if the rollup takes it now.
func (l *queueLog[B]) admitAgain(body []byte) error {
	if len(body) < idSize {
		return fmt.Errorf("%w: an operation of %d bytes", ErrCorrupt, len(body))
	}
	outcome := l.outcomes[[idSize]byte(body)]
	if outcome == recordRefused {
		return nil
	}
	op := bytes.Clone(body[idSize:])
	err := guard(func() error { return l.rollup.Admit(l.ctx, op) })
	switch {
	case err == nil:
		return nil
	case outcome != recordTaken:
		l.log.Info("builder: an operation that has had no answer is refused", "err", err)
		return nil
	}
	return fmt.Errorf("builder: an operation that was accepted, %.64x, is refused now: %w", op, err)
}

// catchUp carries out all tasks.
func (b *Builder[B]) catchUp(ctx context.Context) error {
	for t, some := b.chain.next(); some; t, some = b.chain.next() {
		if err := b.carry(ctx, t); err != nil {
			return fmt.Errorf("builder: block %d: %w", t.block.Number, err)
		}
		b.chain.done()
	}
	for block, some := b.chain.nextFinal(); some; block, some = b.chain.nextFinal() {
		if err := b.callFinal(ctx, block); err != nil {
			return fmt.Errorf("builder: block %d is final: %w", block.Number, err)
		}
		b.chain.finished()
	}
	return nil
}
