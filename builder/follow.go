package builder

import (
	"context"
	"errors"
	"fmt"
)

// SharedLog is a Log that several processes have open, on one machine or on many,
// so that the rollup survives the loss of a process. One process leads: it writes
// to the log, accepts operations, and sends packages. The builders of the other
// processes follow: they apply the records of the log to their rollups, so that
// users can read their heads and blocks. If the leader ends, another process leads.
// Package builder/pglog has such a log in PostgreSQL, and journal.Shared is one in
// memory, for tests.
//
// After another process has taken the lead, a call of Append or Replace by the old
// leader must write nothing and return an error, with which Run ends. The log
// decides which process leads; the safety of the rollup depends only on this
// refusal.
type SharedLog interface {
	Log
	// Lead waits until this process leads. In the meantime it calls record with each record
	// that another process writes, beginning after the last record that Replay or Lead has
	// passed on. When the leader has replaced records by a checkpoint, Lead calls replaced
	// after these records. It does not pass on the records of the checkpoint itself, because
	// they lead to the same state. The process leads only when Lead has passed on everything.
	//
	// Lead returns the error of record, replaced or ctx, or the reason why this process can
	// never lead. For example, the process may have been so far behind that records which it
	// lacks are gone. The host must then open the log again with a rollup in its genesis state.
	Lead(ctx context.Context, record func(record []byte) error, replaced func() error) error
	// Promoted reports, after Lead has returned nil, whether the log may have lost
	// acknowledged records since the last write. This happens, for example, if a standby
	// of the database that did not have them was promoted. Promoted may also be true if
	// nothing was lost.
	//
	// If Promoted returns true, the builder makes no package until every package whose
	// record may be lost is accumulated or dead on the finalized JAM chain. If the network
	// is an Explainer, the builder finds out which of these packages were accumulated.
	Promoted() bool
}

// errBegun ends a call of Lead early. The callbacks of Lead return it when another process
// has written the first record of the log, because this process then reads that record
// instead of writing one.
var errBegun = errors.New("builder: the log has begun")

// firstRecord returns the log's first record, or nil if this process may begin the log.
func (e *engine) firstRecord(ctx context.Context) ([]byte, error) {
	for {
		first, err := e.records.first()
		if err != nil || first != nil || e.shared == nil {
			return first, err
		}
		// The log is shared and still empty. Either another process begins it, or Lead returns
		// nil and this process may begin it.
		begun := func() error { return errBegun }
		switch err := e.shared.Lead(ctx, func([]byte) error { return errBegun }, begun); {
		case err == nil:
			return nil, nil
		case !errors.Is(err, errBegun):
			return nil, fmt.Errorf("%w: %w", ErrLog, err)
		}
	}
}

// followLeader applies another process's records until this process leads.
func (e *engine) followLeader() error {
	if isClosed(e.leads) {
		return nil
	}
	e.tail.ctx = e.ctx
	e.note(func(h *Health) { h.Running = true })
	var cause error // kept here because the log may wrap the error of its callback
	err := e.shared.Lead(e.ctx, func(record []byte) error {
		cause = e.tail.again(record)
		return cause
	}, func() error {
		cause = e.tail.replaced()
		return cause
	})
	switch {
	case cause != nil:
		return cause
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	e.log.Info("builder: this process leads", "block", e.Heads().Pending.Number)
	return e.takeLead(e.ctx)
}

// whyFollows returns ErrFollows while another process may lead the log.
func (e *engine) whyFollows() error {
	if isClosed(e.leads) {
		return nil
	}
	return ErrFollows
}

// mark is called when a follower reads that the leader has begun a checkpoint. The
// follower's rollup then makes its own checkpoint of the same state, in case it keeps a
// part of it on its own disk.
func (r *replay) mark() error {
	c, ok := r.host.optional().(Checkpointer)
	if !ok || r.shared == nil {
		return nil
	}
	// The records that Checkpoint returns are not needed, because the log gets those of the
	// leader. Only the part that the rollup keeps on its own disk matters: this process reads
	// it at its next start.
	var made [][]byte
	err := r.calls.make(r.ctx, "Rollup.Checkpoint", func() (err error) { made, err = c.Checkpoint(r.ctx); return err })
	r.records.covered = weight(made...)
	return err
}

// replaced is called when the leader has replaced the log by a checkpoint.
func (r *replay) replaced() error {
	r.records.size = 0
	// The log now begins with a checkpoint that this process has already made too. Its rollup
	// may remove data that only earlier checkpoints needed.
	r.prune(r.ctx)
	return nil
}
