package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/internal/fields"
)

// Step is the payload of a job: take steps for one account. An engine keeps at
// most one unfinished job with the same payload.
type Step struct {
	// Account is the account to work on.
	Account eoa.Account `json:"account"`
}

// Suspend ends a run of a job. The engine runs the job again at next, and at
// once if it is woken before. If next is zero, only a wake-up runs it again.
//
// The engine must call unchanged, which checks that nothing has arrived since
// the last step. From before that call until the job is suspended, the engine
// must not refuse a wake-up because of this run. If unchanged returns an error,
// which wraps [eoa.ErrWoken] if something has arrived, Suspend changes nothing
// and returns that error, and the run goes on. After any other error the engine
// runs the job again.
type Suspend func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error

// Config configures a [Runner]. Start with [DefaultConfig].
type Config struct {
	// Executor configures the executor of each account. Its Poll should be
	// positive, because a suspended job is not notified of new heads.
	Executor eoa.Config
	// Linger is the longest wait for the next due time that a job spends
	// running. For longer waits it is suspended. At least 0; the default is 500
	// milliseconds.
	Linger time.Duration
	// Slice is the longest time that a job runs if it always has work. It is
	// then suspended and due at once, so that other jobs get its place.
	// Positive; the default is 10 seconds.
	Slice time.Duration
}

// DefaultConfig returns the defaults, which suit an engine that is accurate to
// about a second.
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

// Runner takes the steps of accounts in jobs of an engine. It is safe for
// concurrent use. Between runs it keeps only the [eoa.Witness].
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
	if cfg.Executor.Witness == nil {
		cfg.Executor.Witness = eoa.NewWitness()
	}
	return &Runner{cfg, store, open}, nil
}

// Run takes steps of an account until it can be suspended, and suspends the
// job. It returns nil only if suspend returned nil. After an error Run tries to
// release the account, and the engine should run the job again.
func (r *Runner) Run(ctx context.Context, s Step, suspend Suspend) error {
	chain, signer, err := r.open.Open(s.Account)
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	e, err := eoa.New(r.cfg.Executor, s.Account, r.store, chain, signer)
	if err != nil {
		return err
	}
	if err = r.run(ctx, s.Account, e, suspend); err != nil {
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Executor.LeaseFor)
		defer cancel()
		err = errors.Join(err, e.Release(rest))
	}
	return err
}

func (r *Runner) run(ctx context.Context, a eoa.Account, e *eoa.Executor, suspend Suspend) error {
	ends := r.now().Add(r.cfg.Slice)
	for {
		e.Wake() // each step also reads the store
		next, err := e.Step(ctx)
		if errors.Is(err, eoa.ErrHeld) {
			return suspend(ctx, r.now().Add(r.cfg.Executor.LeaseFor/4), anyway)
		} else if errors.Is(err, eoa.ErrStopped) {
			next = r.now().Add(stopped) // an operator's order also wakes it
		} else if err != nil {
			return err
		}
		if now := r.now(); now.After(ends) {
			if err := e.Release(ctx); err != nil {
				return err
			}
			return suspend(ctx, now, anyway)
		} else if wait := next.Sub(now); !next.IsZero() && wait <= r.cfg.Linger {
			if err := pause(ctx, wait); err != nil {
				return err
			}
			continue
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

// stopped is how often a job looks whether a stopped account may go on.
const stopped = time.Minute

// anyway is the check of a job that runs again soon in any case.
func anyway(context.Context) error { return nil }

func (r *Runner) unchanged(ctx context.Context, a eoa.Account, wake uint64) error {
	inbox, err := r.store.Inbox(ctx, a, eoa.Rank{}, 1)
	if err == nil && inbox.Wake != wake {
		err = fmt.Errorf("%w: wake version is %d, want %d", eoa.ErrWoken, inbox.Wake, wake)
	}
	return err
}

func (r *Runner) now() time.Time {
	if r.cfg.Executor.Now != nil {
		return r.cfg.Executor.Now()
	}
	return time.Now()
}

func pause(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(max(wait, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
