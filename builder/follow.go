package builder

import (
	"context"
	"errors"
	"fmt"
)

// SharedLog is a Log that several processes have open, on one machine or on many, so that the
// rollup survives the loss of one. One process leads: it writes to the log, takes operations, and
// sends packages. The builders of the others follow: they apply the records of the log to their
// rollups, so that their heads and blocks can be read, and one of them leads next. Package
// builder/pglog has such a log in PostgreSQL, and journal.Shared is one in memory, for tests.
//
// If a process that leads calls Append or Replace after another one has taken the lead, the call
// writes nothing and returns an error, with which Run ends. Which process leads is the decision of
// the log; the safety of the rollup needs only that refusal.
type SharedLog interface {
	Log
	// Lead waits until this process leads. Meanwhile it passes on the records that other
	// processes write, beginning after the last record that Replay or Lead has passed on: Lead
	// calls record with each of them, and replaced after the records that the leader has
	// replaced. The records that have taken their place are not passed on, because they lead to
	// the same state. The process leads only when it has passed on everything.
	//
	// The error is that of record, replaced or ctx, or tells why this process can never lead: for
	// example, it was left so far behind that records which it lacks are gone. Then open the log
	// again with a rollup that has not begun.
	Lead(ctx context.Context, record func(record []byte) error, replaced func() error) error
	// Promoted reports, after Lead has returned nil, whether the log may have lost acknowledged
	// records since the last write: for example, a standby of the database was promoted that did
	// not have them. The builder then makes no package until those that only a lost record had
	// are accumulated or dead on the finalized JAM chain, and recognizes the accumulated ones if
	// the network is an Explainer. Promoted may also be true if nothing was lost.
	Promoted() bool
}

// errBegun stops Lead when the log is no longer empty.
var errBegun = errors.New("builder: the log has begun")

// firstRecord returns the first record of the log. It returns nil if the log is empty and this
// process may begin it.
func (e *engine) firstRecord(ctx context.Context) ([]byte, error) {
	for {
		first, err := e.records.first()
		if err != nil || first != nil || e.shared == nil {
			return first, err
		}
		begun := func() error { return errBegun }
		switch err := e.shared.Lead(ctx, func([]byte) error { return errBegun }, begun); {
		case err == nil:
			return nil, nil
		case !errors.Is(err, errBegun):
			return nil, fmt.Errorf("%w: %w", ErrLog, err)
		}
	}
}

// followLeader returns when this process leads the log. Until then it repeats the consequences of
// the records that another process writes.
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

// mark lets the rollup make the checkpoint that the leader makes at this place of the log, because
// the log may begin with that checkpoint at the next start, and a rollup may keep a part of it on
// its own disk. The records are those of the leader, so these ones are not needed.
func (r *replay) mark() error {
	c, ok := r.host.optional().(Checkpointer)
	if !ok || r.shared == nil {
		return nil
	}
	var made [][]byte
	err := r.calls.make(r.ctx, "Rollup.Checkpoint", func() (err error) { made, err = c.Checkpoint(r.ctx); return err })
	r.records.covered = weight(made...)
	return err
}

// replaced notes that the log begins with a checkpoint that covers all that was read.
func (r *replay) replaced() error {
	r.records.size = 0
	r.prune(r.ctx)
	return nil
}
