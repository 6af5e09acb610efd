package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa"
)

// Step is the payload of a job: take steps for one account. An engine keeps at most one job with the same payload that has not ended.
type Step struct {
	// Account is the sender.
	Account eoa.Account `json:"account"`
}

// Suspend ends a run of a job: the engine runs it again at next, or not at all if next is zero, and in both cases at once when it is woken.
//
// still tells whether nothing came since the last step; its error wraps [eoa.ErrWoken] if something did. The engine calls it at the one point where that
// counts: from before that call until the job is suspended, nobody else may be refused a wake-up because of this run. A Suspend whose still fails changes
// nothing and returns that error, and the run goes on.
//
// A Suspend that fails in any other way leaves the job to the engine, which runs it again.
type Suspend func(ctx context.Context, next time.Time, still func(context.Context) error) error

// Config sets a Runner. Begin with [DefaultConfig].
type Config struct {
	// Executor sets each account's executor. Its Poll should not be 0: a job that does not run hears of no new head.
	Executor eoa.Config
	// Linger is how near the next due time must be for the job to wait for it rather than be suspended: what the engine cannot time well, or what is
	// cheaper than to give the account back and take it again. From 0.
	Linger time.Duration
	// Slice is after how long a job that always has something to do is suspended all the same, due at once, so that others get its place; positive.
	Slice time.Duration
}

// DefaultConfig is for an engine that times to about a second.
func DefaultConfig() Config {
	return Config{Executor: eoa.DefaultConfig(), Linger: 500 * time.Millisecond, Slice: 10 * time.Second}
}

// Validate names the first field that is out of range. The error wraps eoa.ErrInvalidConfig.
func (c *Config) Validate() error {
	if c.Linger < 0 || c.Slice <= 0 {
		return fmt.Errorf("%w: Linger %v and Slice %v, want Linger from 0 and Slice positive", eoa.ErrInvalidConfig, c.Linger, c.Slice)
	}
	return c.Executor.Validate()
}

// Runner takes the steps of accounts in an engine's jobs. It is safe for concurrent use, and keeps nothing from one run to the next.
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
	return &Runner{cfg, store, open}, nil
}

// Run takes an account's steps until it can be suspended, and suspends the job. It returns nil only if suspend did. After an error the account is given back as far
// as that is possible, and the job should be run again.
func (r *Runner) Run(ctx context.Context, s Step, suspend Suspend) error {
	chain, signer, err := r.open(s.Account)
	if err != nil {
		return fmt.Errorf("jobs: opening %v: %w", s.Account, err)
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
		e.Wake() // what other processes submitted is read in each step
		next, err := e.Step(ctx)
		if errors.Is(err, eoa.ErrHeld) {
			return suspend(ctx, r.now().Add(r.cfg.Executor.LeaseFor/4), anyway)
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
			err = suspend(ctx, next, func(ctx context.Context) error { return r.still(ctx, a, wake) })
		}
		if !errors.Is(err, eoa.ErrWoken) {
			return err
		}
	}
}

// anyway is for a job that will run again soon whatever came: there it looks.
func anyway(context.Context) error { return nil }

func (r *Runner) still(ctx context.Context, a eoa.Account, wake uint64) error {
	inbox, err := r.store.Inbox(ctx, a, eoa.Rank{}, 1)
	if err == nil && inbox.Wake != wake {
		err = fmt.Errorf("%w: wake version %d, not %d", eoa.ErrWoken, inbox.Wake, wake)
	}
	return err
}

func (r *Runner) now() time.Time {
	if r.cfg.Executor.Clock != nil {
		return r.cfg.Executor.Clock.Now()
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
