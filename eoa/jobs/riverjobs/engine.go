package riverjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/jobs"
)

// Engine submits requests, and works on accounts in River's jobs. All methods are
// safe for concurrent use. Any number of processes may have an Engine on the same
// database and store.
type Engine struct {
	cfg    Config
	pool   *pgxpool.Pool
	store  eoa.Store
	client *river.Client[pgx.Tx]
}

// New returns an engine. It can submit at once, but works on accounts only while
// [Engine.Run] is running. The schema must exist; see [Migrate]. The caller closes
// the pool after Run has returned. Errors wrap eoa.ErrInvalidConfig or come from
// River.
func New(cfg Config, pool *pgxpool.Pool, store eoa.Store, open eoa.Opener) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if pool == nil {
		return nil, fmt.Errorf("%w: want a pool", eoa.ErrInvalidConfig)
	}
	if cfg.Jobs.Executor.Now == nil {
		cfg.Jobs.Executor.Now = time.Now
	}
	cfg.Jobs.Executor.Logger = cmp.Or(cfg.Jobs.Executor.Logger, slog.New(slog.DiscardHandler))
	runner, err := jobs.New(cfg.Jobs, store, open)
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: cfg.Schema, Queues: map[string]river.QueueConfig{queue: {MaxWorkers: cfg.Workers}}, Workers: workers, Logger: cfg.Jobs.Executor.Logger,
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

// Submit accepts requests of an account as [eoa.Client.Submit] does, and wakes the
// account. If only the wake-up failed, Submit returns the records and the error.
// The requests are then accepted and durable, and the next sweep wakes the account.
func (e *Engine) Submit(ctx context.Context, a eoa.Account, requests ...eoa.Request) ([]eoa.Record, error) {
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
	}
	records, err := e.store.Submit(ctx, a, e.cfg.Jobs.Executor.Now(), requests...)
	if err == nil {
		err = e.Wake(ctx, a)
	}
	return records, err
}

// Wake makes an account's job run now, or once more if it is already running. Call
// it after a change to the store that did not go through Submit, such as an order
// of an [eoa.Executor]. Without the call, the next sweep wakes the account.
func (e *Engine) Wake(ctx context.Context, a eoa.Account) error {
	err := e.transact(ctx, func(tx pgx.Tx) error {
		there, err := e.client.InsertTx(ctx, tx, step{jobs.Step{Account: a}}, nil)
		if err != nil || !there.UniqueSkippedAsDuplicate {
			return err
		}
		// The insert has found a job of this account and has locked it, so the job cannot
		// change its state before this transaction ends.
		if state := there.Job.State; state == rivertype.JobStateScheduled || state == rivertype.JobStateAvailable {
			_, err = e.client.JobRetryTx(ctx, tx, there.Job.ID)
		}
		// A running job looks for new work before it ends, and a failed job is tried again, so
		// neither needs to be woken.
		return err
	})
	if err != nil {
		return fmt.Errorf("riverjobs: waking %v: %w", a, err)
	}
	return nil
}

// transact runs f in a transaction at isolation level Read Committed.
func (e *Engine) transact(ctx context.Context, f func(pgx.Tx) error) error {
	// Each statement must see all earlier commits, whatever the database's default
	// is.
	return pgx.BeginTxFunc(ctx, e.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

// Run works until ctx ends, and then releases all accounts. It returns ctx's
// error, or the error that prevented the start. Only one Run may be active at a
// time.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.client.Start(ctx); err != nil {
		return fmt.Errorf("riverjobs: %w", errors.Join(ctx.Err(), err))
	}
	defer func() { <-e.client.Stopped() }()
	ticker := time.NewTicker(e.cfg.Sweep)
	defer ticker.Stop()
	for {
		if err := e.sweep(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Jobs.Executor.Logger.Warn("riverjobs: sweep failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// sweep wakes the accounts that the store reports as due.
func (e *Engine) sweep(ctx context.Context) error {
	due, err := e.store.Due(ctx, e.cfg.Jobs.Executor.Now(), page)
	// These include accounts whose wake-up is missing or whose job was discarded.
	for _, a := range due {
		err = errors.Join(err, e.Wake(ctx, a))
	}
	return err
}
