package builder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// checkpointIfDue makes a checkpoint and replaces the records of the log by it, if the log
// has grown enough since the last one.
func (e *engine) checkpointIfDue(ctx context.Context) error {
	c, ok := e.host.optional().(Checkpointer)
	_, finals := e.chain.nextFinal()
	if !ok || finals || !e.records.grew(e.cfg.CheckpointEvery, e.postponed) {
		return nil
	}
	e.postponed += e.cfg.CheckpointEvery      // until it succeeds
	defer func() { _ = e.records.end(nil) }() // after an error the records stay
	begin, queue, tasks, err := e.beginCheckpoint(ctx)
	switch {
	case errors.Is(err, errNewFinal):
		e.postponed -= e.cfg.CheckpointEvery // the worker calls Final and then this again
		return nil
	case err != nil:
		return err
	}
	for range tasks { // those of the checkpoint, and no later ones
		t, _ := e.chain.next()
		if err := e.carry(ctx, t); err != nil {
			return err
		}
		e.chain.done()
	}
	// Operations and steps continue during this call. Their records come after the
	// checkpoint in the log.
	var state [][]byte
	if err := e.calls.make(ctx, "Rollup.Checkpoint", func() (err error) { state, err = c.Checkpoint(ctx); return err }); err != nil {
		return fmt.Errorf("%w: %w", errPostponed, err)
	}
	begin.made = true
	all := checkpointRecords(begin, state, queue)
	e.log.Debug("builder: checkpoint", "block", begin.final.Number+uint64(len(begin.blocks)), "records", len(all))
	switch err := e.records.end(all); {
	case errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%w: %w", errPostponed, err)
	case err != nil:
		return err
	}
	e.postponed = 0
	e.prune(ctx)
	return nil
}

// prune lets the rollup remove data that only earlier checkpoints needed.
func (e *engine) prune(ctx context.Context) {
	if p, ok := e.host.optional().(Pruner); ok {
		if err := e.calls.make(ctx, "Rollup.Prune", func() error { return p.Prune(ctx) }); err != nil {
			e.log.Error("builder: Prune failed; it is called again after the next checkpoint", "err", err)
		}
	}
}

// errPostponed is wrapped by an error if no checkpoint can be made now, because the rollup
// or the log refuses it. The builder continues without the checkpoint. It tries again when
// Config.CheckpointEvery more records are in the log.
var errPostponed = errors.New("builder: the checkpoint is postponed")

// errNewFinal is returned if a block became final just before the checkpoint began. It
// is no failure: the worker calls Final for the block and begins the checkpoint again.
var errNewFinal = errors.New("builder: a block has just become final")

// beginCheckpoint copies the chain and the queue, and counts the rollup's open tasks.
func (e *engine) beginCheckpoint(ctx context.Context) (begin *checkpoint, queue []byte, tasks int, err error) {
	err = e.inTurn(ctx, func() error {
		if _, finals := e.chain.nextFinal(); finals { // a restart would not call Final for them
			return errNewFinal
		}
		if err := e.records.append([]byte{recordMark}); err != nil {
			return err
		}
		// Every change is in the rollup before it is in the log. The state of the rollup
		// therefore covers all changes that the log has at this moment.
		e.chain.mu.Lock()
		defer e.chain.mu.Unlock()
		begin, tasks, queue = e.chain.checkpoint(), len(e.chain.todo), e.queue.AppendSnapshot(nil)
		begin.config, begin.doubted = encodeConfig(&e.cfg.Queue), e.doubt.lost
		e.records.begin()
		return nil
	})
	return begin, queue, tasks, err
}

// checkpoint returns the chain's state for the first record of a log. The caller holds
// c.mu, or no other goroutine uses the chain.
func (c *chain) checkpoint() *checkpoint {
	return &checkpoint{serial: c.serial, noted: c.noted, first: c.first, final: c.final, blocks: slices.Clone(c.blocks)}
}

// restore sets the chain to a checkpoint, and returns the root of its newest block.
func (c *chain) restore(from *checkpoint) (root common.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(from.final, from.serial)
	c.first, c.noted = from.first, from.noted
	for _, b := range from.blocks {
		to := b.Progress
		b.Progress = Progress{}
		c.blocks = append(c.blocks, b)
		c.report(c.tracker.Executed(headOf(&b)))
		c.progress(len(c.blocks)-1, to)
		c.applied = headOf(&b)
	}
	return c.head().Root
}
