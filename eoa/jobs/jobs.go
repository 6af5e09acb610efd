package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/internal/fields"
)

// Step is the payload of a job: it names the account to work on. The engine must keep at most
// one unfinished job with the same payload.
type Step struct {
	// Account is the account to work on.
	Account eoa.Account `json:"account"`
}

// Suspend is how an engine ends a run of a job and schedules the next run. The
// engine runs the job again at next, or earlier if the job is woken. If next is
// zero, only a wake-up runs the job again.
//
// The engine must call unchanged before it suspends the job. This function checks
// that nothing has arrived since the last step, so that no wake-up is lost. From
// before that call until the job is suspended, a wake-up must wait, and must not
// be refused because of this run. If unchanged returns an error, Suspend changes
// nothing and returns that error. If the error wraps [eoa.ErrWoken], something has
// arrived and the run goes on. After any other error, the engine runs the job
// again.
type Suspend func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error

// Config configures a [Runner]. Start with [DefaultConfig].
type Config struct {
	// Executor configures the executor of each account. Poll should be positive, because a
	// suspended job gets no notice of new blocks.
	Executor eoa.Config
	// Linger is how long a job keeps running to wait for its next step; at least 0.
	// If the next step is due later than that, the job is suspended. The default is
	// 500 milliseconds.
	Linger time.Duration
	// Slice is how long a job runs if it always has work; positive. After that time
	// it is suspended and made due at once, so that other jobs get a turn. The
	// default is 10 seconds.
	Slice time.Duration
}

// DefaultConfig returns the defaults. They suit a job engine that starts a scheduled job
// within about a second of its time.
func DefaultConfig() Config {
	return Config{Executor: eoa.DefaultConfig(), Linger: 500 * time.Millisecond, Slice: 10 * time.Second}
}

// Validate returns an error that lists each field out of range. The error wraps
// eoa.ErrInvalidConfig.
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.Want(c.Linger >= 0, "Linger", c.Linger, "at least 0")
	fields.Positive(&wrong, "Slice", c.Slice)
	wrong.Add(c.Executor.Validate())
	return wrong.Wrap(eoa.ErrInvalidConfig)
}

// Runner works on accounts in the jobs of an engine. It is safe for concurrent use.
// Between two runs of a job, the Runner keeps nothing except the [eoa.Witness].
type Runner struct {
	cfg   Config
	store eoa.Store
	open  eoa.Opener
}

// New returns a runner. The error wraps eoa.ErrInvalidConfig.
func New(cfg Config, store eoa.Store, open eoa.Opener) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || open == nil {
		return nil, fmt.Errorf("%w: want a store and an opener", eoa.ErrInvalidConfig)
	}
	cfg.Executor.Witness = cmp.Or(cfg.Executor.Witness, eoa.NewWitness())
	if cfg.Executor.Now == nil {
		cfg.Executor.Now = time.Now
	}
	return &Runner{cfg, store, open}, nil
}

// Run is the body of a job: it works on the account until no step is due for a while, and
// then calls suspend, which ends the job in the engine and schedules the next one. Run
// returns nil only if suspend has returned nil. After any other result the engine should
// run the job again; Run has then tried to release the account, so that another process
// can work on it.
func (r *Runner) Run(ctx context.Context, s Step, suspend Suspend) error {
	e, err := r.open.Executor(r.cfg.Executor, s.Account, r.store)
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err = r.run(ctx, s.Account, e, suspend); err != nil {
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Executor.LeaseFor)
		defer cancel()
		err = errors.Join(err, e.Release(rest))
	}
	return err
}

func (r *Runner) run(ctx context.Context, a eoa.Account, e *eoa.Executor, suspend Suspend) error {
	ends := r.cfg.Executor.Now().Add(r.cfg.Slice)
	for {
		e.Wake() // each step also reads the store
		next, err := e.Step(ctx)
		if errors.Is(err, eoa.ErrHeld) {
			return suspend(ctx, r.cfg.Executor.Now().Add(r.cfg.Executor.LeaseFor/4), anyway)
		} else if errors.Is(err, eoa.ErrStopped) {
			next = r.cfg.Executor.Now().Add(stopped) // an operator's order also wakes it
		} else if err != nil {
			return err
		}
		if now := r.cfg.Executor.Now(); now.After(ends) {
			if err := e.Release(ctx); err != nil {
				return err
			}
			return suspend(ctx, now, anyway)
		} else if wait := next.Sub(now); !next.IsZero() && wait <= r.cfg.Linger {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		wake, err := e.Suspend(ctx, next)
		if err == nil {
			err = suspend(ctx, next, func(ctx context.Context) error { return r.unchanged(ctx, a, wake) })
		}
		if !errors.Is(err, eoa.ErrWoken) {
			return err
		}
	}
}

// stopped is how often a job checks whether a stopped account has been resumed.
const stopped = time.Minute

// anyway replaces unchanged if the job runs again soon in any case.
func anyway(context.Context) error { return nil }

func (r *Runner) unchanged(ctx context.Context, a eoa.Account, wake uint64) error {
	inbox, err := r.store.Inbox(ctx, a, 1)
	if err == nil && inbox.Wake != wake {
		err = fmt.Errorf("%w: wake version is %d, want %d", eoa.ErrWoken, inbox.Wake, wake)
	}
	return err
}
