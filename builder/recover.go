package builder

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
)

// queueLog is the log as the runner sees it: the records of the queue.
type queueLog struct {
	*engine
	ctx context.Context
	// start is the first record of the log, nil if the log begins now.
	start *checkpoint
	// begin are the records with which it begins, before those of the queue.
	begin [][]byte
	// outcomes are those of the operations.
	outcomes outcomes
	// cause is the first error of a record, which the runner wraps.
	cause error
}

// recover opens the runner, which replays the log, and leads the rollup to its
// present state.
func (e *engine) recover(ctx context.Context) error {
	first, err := e.records.first()
	if err != nil {
		return err
	}
	if first == nil {
		root, err := e.root()
		if err != nil {
			return err
		}
		if err := e.checkUnused(ctx); err != nil {
			return err
		}
		final := genesis(e.cfg.Runner.Queue.FirstNumber-1, root)
		e.chain.begin(final, 0)
		if err := e.beginLog(ctx, &checkpoint{final: final}, nil); err != nil {
			return err
		}
	} else if err := e.continueLog(ctx, first); err != nil {
		return err
	}
	if r, ok := e.host.optional().(Recorder); ok {
		if err := guard(func() error { return r.Recovered(ctx, e.record) }); err != nil {
			return err
		}
	}
	if e.cfg.NewChain && first != nil {
		if err := e.leaveChain(ctx); err != nil {
			return err
		}
	}
	e.found = e.runner.Recovered()
	e.found.Logger = e.log
	if e.chain.final.Number >= e.chain.first {
		e.trust.earned.Store(true)
	}
	e.trust.lost, e.running = 0, true
	return nil
}

// beginLog begins the log with a checkpoint and a new queue, in place of whatever it
// has.
func (e *engine) beginLog(ctx context.Context, c *checkpoint, state [][]byte) error {
	var root jamq.Block
	if err := guard(func() (err error) { root, err = e.network.Root(ctx); return err }); err != nil {
		return err
	}
	c.first = c.final.Number + 1
	return e.openRunner(root, c.first, &queueLog{engine: e, ctx: ctx, begin: checkpointRecords(c, state)})
}

// continueLog recovers from a log with the given first record.
func (e *engine) continueLog(ctx context.Context, first []byte) error {
	if first[0] != recordCheckpoint {
		return fmt.Errorf("%w: it begins with a record of kind %q", ErrCorrupt, first[0])
	}
	start, err := e.readCheckpoint(first[1:])
	if err != nil {
		return err
	}
	outcomes, err := e.records.outcomes()
	if err != nil {
		return err
	}
	log := &queueLog{engine: e, ctx: ctx, start: start, outcomes: outcomes}
	if err := e.openRunner(jamq.Block{}, start.first, log); log.cause != nil {
		return log.cause
	} else if err != nil {
		return err
	}
	return nil
}

// root returns the root of the rollup.
func (e *engine) root() (root common.Hash, err error) {
	err = e.calls.make(context.Background(), "Rollup.Root", func() error { root = e.host.root(); return nil })
	return root, err
}

// openRunner opens the runner of a queue that begins with the given number.
func (e *engine) openRunner(root jamq.Block, first uint64, log *queueLog) (err error) {
	cfg := e.cfg.Runner
	cfg.Queue.FirstNumber, e.chain.first = first, first
	observe := cfg.Observe
	cfg.Observe = func(o submit.Observation) {
		if observe == nil {
			return
		}
		if err := e.calls.make(context.Background(), "Config.Runner.Observe", func() error { observe(o); return nil }); err != nil {
			e.log.Error("builder: Config.Runner.Observe failed", "err", err)
		}
	}
	durable := drive.Durability{Journal: log, SnapshotEvery: -1, Follow: e.follow}
	e.runner, err = drive.OpenRunner(cfg, root, durable, sender{e}, sender{e})
	return err
}

// leaveChain undoes all blocks that are not final, because their JAM chain has ended,
// and begins the log again. Open has checked that the rollup is a Checkpointer.
func (e *engine) leaveChain(ctx context.Context) error {
	c := e.host.optional().(Checkpointer)

	e.records.begin() // the records that the rollup appends meanwhile stay
	defer func() { _ = e.records.end(nil) }()
	e.chain.cutAll()
	if err := e.catchUp(ctx); err != nil {
		return err
	}
	var state [][]byte
	if err := guard(func() (err error) { state, err = c.Checkpoint(ctx); return err }); err != nil {
		return err
	}
	start := e.chain.checkpoint()
	start.made, start.records = true, len(state)
	if err := e.beginLog(ctx, start, state); err != nil {
		return err
	}
	e.prune(ctx)
	return nil
}

// Append implements drive.Journal.
func (l *queueLog) Append(records ...[]byte) error {
	return l.records.append(framed(recordQueue, records)...)
}

// Replace implements drive.Journal. The runner calls it to begin a queue and after
// a recovery. In the latter case the records before stay until the next checkpoint: they
// lead to the same state, and those of the rollup are needed.
func (l *queueLog) Replace(records ...[]byte) error {
	all := framed(recordQueue, records)
	if l.begin == nil {
		return l.records.append(all...)
	}
	all, l.begin = append(l.begin, all...), nil
	return l.engine.records.end(all)
}

// Replay implements drive.Journal. It reads the whole log once: the records of the
// queue go to the runner, which calls follow, and the others to the rollup.
func (l *queueLog) Replay(step func(record []byte) error) error {
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
		l.engine.records.size += weight(record)
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
func (l *queueLog) again(kind byte, body []byte, step func(record []byte) error) error {
	switch kind {
	case recordOperation:
		return l.admitAgain(body)
	case recordTaken, recordRefused:
		return nil
	case recordRollup:
		r, ok := l.host.optional().(Recorder)
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
func (l *queueLog) restore(begin *checkpoint, state [][]byte) error {
	if len(state) != begin.records {
		return fmt.Errorf("%w: a checkpoint of %d records has %d", ErrCorrupt, begin.records, len(state))
	}
	want := l.chain.restore(begin)
	if begin.made {
		c, ok := l.host.optional().(Checkpointer)
		if !ok {
			return fmt.Errorf("%w: the log has a checkpoint, and the rollup is no Checkpointer", ErrOtherRollup)
		}
		if err := guard(func() error { return c.Restore(l.ctx, state) }); err != nil {
			return fmt.Errorf("builder: restore a checkpoint: %w", err)
		}
	}
	have, err := l.root()
	switch {
	case err != nil || have == want:
		return err
	case !begin.made:
		return fmt.Errorf("%w: the genesis has root %s, want %s", ErrOtherRollup, have, want)
	case len(state) == 0:
		return fmt.Errorf("%w: the last checkpoint has no records, because Checkpoint returned none, so the rollup must find the state on its disk: have %s, want %s", ErrDiverged, have, want)
	}
	return fmt.Errorf("%w: Restore of the last checkpoint does not lead to the state that Checkpoint had: have %s, want %s", ErrDiverged, have, want)
}

// admitAgain gives the rollup an operation of the log. One that has had no answer has an
// effect only if the rollup takes it now.
func (l *queueLog) admitAgain(body []byte) error {
	if len(body) < idSize {
		return fmt.Errorf("%w: an operation of %d bytes", ErrCorrupt, len(body))
	}
	outcome := l.outcomes[[idSize]byte(body)]
	if outcome == recordRefused {
		return nil
	}
	op := bytes.Clone(body[idSize:])
	err := guard(func() error { return l.host.admit(l.ctx, op) })
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
func (e *engine) catchUp(ctx context.Context) error {
	for t, some := e.chain.next(); some; t, some = e.chain.next() {
		if err := e.carry(ctx, t); err != nil {
			return fmt.Errorf("builder: block %d: %w", t.block.Number, err)
		}
		e.chain.done()
	}
	for block, some := e.chain.nextFinal(); some; block, some = e.chain.nextFinal() {
		if err := e.callFinal(ctx, block); err != nil {
			return fmt.Errorf("builder: block %d is final: %w", block.Number, err)
		}
		e.chain.finished()
	}
	return nil
}
