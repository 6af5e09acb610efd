package riverjobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/jamq/jamq/eoa/jobs"
	"github.com/jamq/jamq/internal/backoff"
)

// step is a job's payload in the form that River requires.
type step struct{ jobs.Step }

// Kind implements river.JobArgs.
func (step) Kind() string { return kind }

// InsertOpts implements river.JobArgsWithInsertOpts. It allows one unfinished
// job per payload.
func (step) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}}
}

// worker runs the jobs. It implements river.Worker.
type worker struct {
	river.WorkerDefaults[step]
	engine *Engine
	runner *jobs.Runner
}

// Work works on the account of a job until nothing is due.
func (w *worker) Work(ctx context.Context, job *river.Job[step]) error {
	return w.runner.Run(ctx, job.Args.Step, func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
		// River ends a job when Work returns nil. The job must therefore end in this
		// transaction, which also checks whether new work has arrived.
		return w.engine.transact(ctx, func(tx pgx.Tx) error { return w.suspend(ctx, tx, job, next, unchanged) })
	})
}

// suspend ends the job and inserts the account's next job in one transaction.
func (w *worker) suspend(ctx context.Context, tx pgx.Tx, job *river.Job[step], next time.Time, unchanged func(context.Context) error) error {
	// This locks the job, so that a concurrent Engine.Wake waits for the end of the
	// transaction, and then wakes or inserts the next job.
	ended, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
	if err != nil {
		return fmt.Errorf("riverjobs: ending job %d: %w", job.ID, err)
	}
	if ended.State != rivertype.JobStateCompleted || ended.Attempt != job.Attempt {
		return fmt.Errorf("riverjobs: job %d is %s in attempt %d, no longer running in attempt %d", job.ID, ended.State, ended.Attempt, job.Attempt)
	}
	if err := unchanged(ctx); err != nil || next.IsZero() {
		return err
	}
	opts := &river.InsertOpts{ScheduledAt: next}
	if !next.After(w.engine.cfg.Jobs.Executor.Now()) {
		// River starts a job with a time only when its scheduler runs, even if that time has
		// passed. Without a time, the job starts at once.
		opts = nil
	}
	if _, err := w.engine.client.InsertTx(ctx, tx, job.Args, opts); err != nil {
		return fmt.Errorf("riverjobs: next job after %d: %w", job.ID, err)
	}
	return nil
}

// NextRetry implements river.Worker.
func (w *worker) NextRetry(job *river.Job[step]) time.Time {
	return time.Now().Add(backoff.Wait(w.engine.cfg.Jobs.Executor.Retry, maxRetry, job.Attempt))
}
