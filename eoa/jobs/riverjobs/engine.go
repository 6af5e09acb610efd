package riverjobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/jobs"
)

// Engine submits requests, and works on the accounts in River's jobs. All methods are safe for concurrent use; any number of processes may have one on
// the same database and store.
type Engine struct {
	cfg    Config
	pool   *pgxpool.Pool
	store  eoa.Store
	client *river.Client[pgx.Tx]
}

// New returns an engine that submits, and does not work before Run. The schema must be there, see [Migrate]. The pool stays the caller's. Errors wrap
// eoa.ErrInvalidConfig, or are River's.
func New(cfg Config, pool *pgxpool.Pool, store eoa.Store, open eoa.Opener) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if pool == nil {
		return nil, fmt.Errorf("%w: want a pool", eoa.ErrInvalidConfig)
	}
	runner, err := jobs.New(cfg.Jobs, store, open)
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: cfg.Schema, Queues: map[string]river.QueueConfig{queue: {MaxWorkers: cfg.Workers}}, Workers: workers, Logger: cfg.log(),
		FetchCooldown: min(cooldown, cfg.Poll), FetchPollInterval: cfg.Poll,
		JobTimeout: cfg.Timeout, RescueStuckJobsAfter: cfg.Timeout + dead, MaxAttempts: attempts,
		CompletedJobRetentionPeriod: kept, SoftStopTimeout: leave,
	})
	if err != nil {
		return nil, fmt.Errorf("riverjobs: %w", err)
	}
	e := &Engine{cfg, pool, store, client}
	return e, river.AddWorkerSafely(workers, &worker{engine: e, runner: runner})
}

// Submit accepts requests of an account as [eoa.Executor.Submit] does, and wakes it. If only the waking failed, the records are returned with the error, and the
// next sweep wakes it.
func (e *Engine) Submit(ctx context.Context, a eoa.Account, requests ...eoa.Request) ([]eoa.Record, error) {
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
	}
	records, err := e.store.Submit(ctx, a, e.now(), requests...)
	if err == nil {
		err = e.Wake(ctx, a)
	}
	return records, err
}

// Wake makes an account's job run now, or once more if it runs. It is for those who have left something in the store by other ways than Submit, orders of an
// [eoa.Executor] for example, and need not be called if that may wait for the next sweep.
func (e *Engine) Wake(ctx context.Context, a eoa.Account) error {
	err := e.transact(ctx, func(tx pgx.Tx) error {
		there, err := e.client.InsertTx(ctx, tx, step{jobs.Step{Account: a}}, nil)
		if err != nil || !there.UniqueSkippedAsDuplicate {
			return err
		}
		switch there.Job.State { // as it is and stays until this transaction ends: the insertion has locked it
		case rivertype.JobStateScheduled, rivertype.JobStateAvailable:
			_, err = e.client.JobRetryTx(ctx, tx, there.Job.ID)
		}
		return err // one that runs looks at the wake version before it ends, and one that failed is run again
	})
	if err != nil {
		return fmt.Errorf("riverjobs: waking %v: %w", a, err)
	}
	return nil
}

// transact runs f in a transaction in which a statement sees what was committed before it, whatever the database's default is.
func (e *Engine) transact(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, e.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

// Run works until ctx ends, and gives all accounts back. It returns ctx's error, or why it could not begin. It is not called twice at once.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.client.Start(ctx); err != nil {
		return fmt.Errorf("riverjobs: %w", errors.Join(ctx.Err(), err))
	}
	defer func() { <-e.client.Stopped() }()
	ticker := time.NewTicker(e.cfg.Sweep)
	defer ticker.Stop()
	for {
		if err := e.sweep(ctx); err != nil && ctx.Err() == nil {
			e.cfg.log().Warn("riverjobs: sweep", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// sweep wakes accounts that are due by what the store says: those whose waker died between the store and the job, and those whose job was given up.
func (e *Engine) sweep(ctx context.Context) error {
	due, err := e.store.Due(ctx, e.now(), page)
	for _, a := range due {
		err = errors.Join(err, e.Wake(ctx, a))
	}
	return err
}

func (e *Engine) now() time.Time {
	if c := e.cfg.Jobs.Executor.Clock; c != nil {
		return c.Now()
	}
	return time.Now()
}
