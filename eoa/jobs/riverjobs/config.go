package riverjobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/jobs"
)

// Config sets an Engine. Begin with [DefaultConfig].
type Config struct {
	// Jobs sets the executors and when they are suspended. Its executor's Log is the engine's too.
	Jobs jobs.Config
	// Schema is the PostgreSQL schema of River's tables. It is for this package alone: River's upkeep throws away jobs that it does not know.
	Schema string
	// Workers is how many accounts a process works on at once, from 1 to 10,000. Each needs a connection for a moment when it ends.
	Workers int
	// Poll is how often a process asks PostgreSQL for jobs to run, at least a millisecond. Most wake-ups are notified and do not wait for it; of several
	// within a tenth of a second only the first one is.
	Poll time.Duration
	// Sweep is how often a process asks the store which accounts are due, and wakes them: those that were suspended until now, which River by itself would resume
	// up to five seconds late, and those that nobody woke. Positive.
	Sweep time.Duration
	// Timeout is how long a run may take, longer than Jobs.Slice. One that takes longer is cut off, and tried again.
	Timeout time.Duration
}

// Limits that are not settings.
const (
	// queue is River's name for where the jobs are; kind for what they are.
	queue, kind = "eoa", "eoa_step"
	// attempts is after how many failures in a row a job is given up, for a look by its operator; the sweep makes a new one.
	attempts = 25
	// maxRetry bounds the doubling of the executor's Retry between them.
	maxRetry = time.Minute
	// dead is by how much a run exceeds its time-out when it is taken for dead.
	dead = 5 * time.Second
	// kept is for how long the row of a run that ended stays.
	kept = time.Minute
	// page is how many due accounts a sweep wakes.
	page = 1024
	// cooldown is how soon after one another two looks for jobs may be; River's default.
	cooldown = 100 * time.Millisecond
	// leave is how long a run may go on when its process is asked to stop.
	leave = time.Second
)

// DefaultConfig is for some thousands of accounts.
func DefaultConfig() Config {
	return Config{Jobs: jobs.DefaultConfig(), Schema: "jamq", Workers: 16, Poll: 250 * time.Millisecond, Sweep: time.Second, Timeout: 30 * time.Second}
}

// Validate names the first field that is out of range. The error wraps eoa.ErrInvalidConfig.
func (c *Config) Validate() error {
	const maxWorkers = 10_000
	switch {
	case c.Schema == "":
		return fmt.Errorf("%w: Schema is empty", eoa.ErrInvalidConfig)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("%w: Workers is %d, want 1 to %d", eoa.ErrInvalidConfig, c.Workers, maxWorkers)
	case c.Poll < time.Millisecond || c.Sweep <= 0:
		return fmt.Errorf("%w: Poll %v and Sweep %v, want at least a millisecond and positive", eoa.ErrInvalidConfig, c.Poll, c.Sweep)
	case c.Timeout <= c.Jobs.Slice:
		return fmt.Errorf("%w: Timeout is %v, want more than Jobs.Slice, %v", eoa.ErrInvalidConfig, c.Timeout, c.Jobs.Slice)
	}
	return c.Jobs.Validate()
}

func (c *Config) log() *slog.Logger {
	if c.Jobs.Executor.Log != nil {
		return c.Jobs.Executor.Log
	}
	return slog.New(slog.DiscardHandler)
}

// Migrate makes the schema and River's tables in it, or brings them up to date. It may be called again, and while engines run.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if _, err := pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return fmt.Errorf("riverjobs: schema %q: %w", schema, err)
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("riverjobs: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("riverjobs: schema %q: %w", schema, err)
	}
	return nil
}
