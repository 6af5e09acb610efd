package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// queueLog is the log as the runner sees it: the records of the queue.
type queueLog[B any] struct {
	*Builder[B]
	ctx   context.Context
	empty bool
}

// recover opens the runner, which replays the log, and leads the rollup to its
// present state.
func (b *Builder[B]) recover(ctx context.Context) error {
	log := &queueLog[B]{Builder: b, ctx: ctx, empty: true}
	some := errors.New("not empty")
	if err := b.records.log.Replay(func([]byte) error { return some }); errors.Is(err, some) {
		log.empty = false
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	var root jamq.Block
	if log.empty {
		var err error
		if err = guard(func() (err error) { root, err = b.network.Root(ctx); return err }); err != nil {
			return err
		}
		b.chain.begin(genesis[B](b.rollup.Root()), 0)
	}
	cfg := b.cfg.Runner
	cfg.Queue.FirstNumber = 1
	if cfg.Observe == nil {
		cfg.Observe = func(submit.Observation) {}
	}
	durable := submit.Durability[bundle[B]]{Journal: log, Codec: b.stored, SnapshotEvery: -1, Follow: b.follow}
	var err error
	if b.runner, err = submit.OpenRunner(cfg, root, durable, sender[B]{b}, sender[B]{b}); err != nil {
		return err
	}
	b.found = b.runner.Recovered()
	return nil
}

// Append implements submit.Journal.
func (l *queueLog[B]) Append(records ...[]byte) error {
	return l.records.append(framed(recordQueue, records)...)
}

// Replace implements submit.Journal. The runner calls it to begin a queue and after
// a recovery. The records before stay until the next checkpoint: they lead to the
// same state, and those of the rollup are needed.
func (l *queueLog[B]) Replace(records ...[]byte) error {
	all := framed(recordQueue, records)
	if l.empty {
		l.empty = false
		begin := append([]byte{recordCheckpoint}, l.stored.appendCheckpoint(nil, l.chain.checkpoint())...)
		all = append([][]byte{begin}, all...)
	}
	return l.records.append(all...)
}

// Replay implements submit.Journal. It reads the whole log once: the records of the
// queue go to the runner, which calls follow, and the others to the rollup.
func (l *queueLog[B]) Replay(step func(record []byte) error) error {
	var begin *checkpoint[B]
	var state [][]byte
	restored := false
	err := l.records.log.Replay(func(record []byte) error {
		if len(record) == 0 {
			return fmt.Errorf("%w: an empty record", ErrCorrupt)
		}
		kind, body := record[0], record[1:]
		switch {
		case kind == recordCheckpoint && begin == nil:
			var err error
			begin, err = l.stored.readCheckpoint(body)
			return err
		case begin == nil:
			return fmt.Errorf("%w: it begins with a record of kind %q", ErrCorrupt, kind)
		case kind == recordState && len(state) < begin.records:
			state = append(state, bytes.Clone(body))
			return nil
		}
		if !restored {
			restored = true
			if err := l.restore(begin, state); err != nil {
				return err
			}
		}
		l.Builder.records.size++
		switch kind {
		case recordOperation:
			return l.admitAgain(body)
		case recordQueue:
			if err := step(body); err != nil {
				return err
			}
			return l.catchUp()
		}
		return fmt.Errorf("%w: a record of kind %q", ErrCorrupt, kind)
	})
	if err == nil && begin != nil && !restored {
		return fmt.Errorf("%w: it ends after its checkpoint", ErrCorrupt)
	}
	return err
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
	if have := l.rollup.Root(); have != want {
		return fmt.Errorf("%w: have root %s, want %s", ErrOtherRollup, have, want)
	}
	return nil
}

// admitAgain gives the rollup an operation of the log. One that it refuses now, it
// refused before. After another error the builder cannot be opened, because the next
// checkpoint would be without the operation.
func (l *queueLog[B]) admitAgain(op []byte) error {
	err := guard(func() error { return l.rollup.Admit(l.ctx, bytes.Clone(op)) })
	if errors.Is(err, ErrRefused) {
		return nil
	}
	return err
}

// catchUp carries out all tasks.
func (l *queueLog[B]) catchUp() error {
	for t, some := l.chain.next(); some; t, some = l.chain.next() {
		if err := l.carry(l.ctx, t); err != nil {
			return fmt.Errorf("builder: block %d: %w", t.block.Number, err)
		}
		l.chain.done()
	}
	for t, some := l.chain.nextFinal(); some; t, some = l.chain.nextFinal() {
		if err := l.carry(l.ctx, t); err != nil {
			return fmt.Errorf("builder: block %d is final: %w", t.block.Number, err)
		}
		l.chain.finished()
	}
	return nil
}
