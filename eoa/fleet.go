package eoa

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Opener returns the node and the signer for an account that has something to do.
type Opener func(a Account) (Chain, Signer, error)

// FleetConfig sets a fleet. Begin with [DefaultFleetConfig].
type FleetConfig struct {
	// Executor sets each account's executor.
	Executor Config
	// Workers is how many accounts take a step at once, from 1.
	Workers int
	// Interval is how often the store is asked which accounts are due, for all of them in one call; positive. Requests submitted through this
	// fleet do not wait for it.
	Interval time.Duration
	// Page is how many due accounts are taken at once, from 1.
	Page int
	// Target is how much an account should have to do before [Fleet.Pick] turns to another one, from 1.
	Target int
}

// DefaultFleetConfig is for some thousands of accounts.
func DefaultFleetConfig() FleetConfig {
	return FleetConfig{Executor: DefaultConfig(), Workers: 16, Interval: time.Second, Page: 256, Target: 10}
}

// Validate names the first field that is out of range. The error wraps ErrInvalidConfig.
func (c *FleetConfig) Validate() error {
	if c.Workers < 1 || c.Interval <= 0 || c.Page < 1 || c.Target < 1 {
		return fmt.Errorf("%w: Workers %d, Interval %v, Page %d, Target %d, want all positive", ErrInvalidConfig, c.Workers, c.Interval, c.Page, c.Target)
	}
	return c.Executor.Validate()
}

// Fleet runs the executors of many accounts. Any number of fleets, on any number of machines that share a store, take the accounts from each other's
// dead. An account without anything to do has no executor, no goroutine and no lease. All methods are safe for concurrent use.
type Fleet struct {
	cfg   FleetConfig
	store Store
	open  Opener
	slots chan struct{} // one token per step that runs

	mu      sync.Mutex
	running map[Account]*Executor
	all     sync.WaitGroup
	ctx     context.Context // of Run; nil before
	ended   bool            // Run waits for the last ones: nobody starts any more
}

// NewFleet returns a fleet that does nothing before Run. The error wraps ErrInvalidConfig.
func NewFleet(cfg FleetConfig, store Store, open Opener) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || open == nil {
		return nil, fmt.Errorf("%w: want a store and an opener", ErrInvalidConfig)
	}
	if cfg.Executor.Clock == nil {
		cfg.Executor.Clock = machineClock{}
	}
	return &Fleet{cfg: cfg, store: store, open: open, slots: make(chan struct{}, cfg.Workers), running: map[Account]*Executor{}}, nil
}

// Submit accepts requests of an account as [Executor.Submit] does.
func (f *Fleet) Submit(ctx context.Context, a Account, requests ...Request) ([]Record, error) {
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
	}
	records, err := f.store.Submit(ctx, a, f.cfg.Executor.Clock.Now(), requests...)
	if err == nil {
		err = f.wake(a)
	}
	return records, err
}

// Pick returns which of some accounts should get the next request: the first that has less to do than FleetConfig.Target, whichever machine works on it, or
// else the one that has least, so that as few accounts are busy as can be. The caller keeps the choice with the request's key and submits it there again
// after an error: a key is known only to the account that it was submitted to.
func (f *Fleet) Pick(ctx context.Context, accounts ...Account) (Account, error) {
	if len(accounts) == 0 {
		return Account{}, fmt.Errorf("%w: no accounts to pick from", ErrInvalidRequest)
	}
	best, least := accounts[0], math.MaxInt
	for _, a := range accounts {
		b, err := f.store.Backlog(ctx, a, min(least, 1<<20))
		if err != nil {
			return Account{}, err
		}
		load := b.Pending + b.InFlight
		if load < least {
			best, least = a, load
		}
		if load < f.cfg.Target {
			break
		}
	}
	return best, nil
}

// wake makes the account's executor look at the store, and starts one if there is none.
func (f *Fleet) wake(a Account) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.running[a]; e != nil {
		e.Wake()
		return nil
	}
	if f.ctx == nil || f.ended {
		return nil // it is in the store: whoever runs finds it
	}
	return f.start(a)
}

// start runs an account until it is idle. f.mu is held.
func (f *Fleet) start(a Account) error {
	chain, signer, err := f.open(a)
	if err != nil {
		return fmt.Errorf("eoa: opening %v: %w", a, err)
	}
	e, err := New(f.cfg.Executor, a, f.store, chain, signer)
	if err != nil {
		return err
	}
	f.running[a] = e
	f.all.Add(1)
	go f.work(f.ctx, a, e)
	return nil
}

func (f *Fleet) work(ctx context.Context, a Account, e *Executor) {
	defer f.all.Done()
	for {
		err := e.run(ctx, true, f.slots)
		f.mu.Lock()
		select {
		case <-e.woke: // between its last step and now: it must not be lost
			if err == nil && ctx.Err() == nil {
				f.mu.Unlock()
				e.Wake()
				continue
			}
		default:
		}
		delete(f.running, a)
		f.mu.Unlock()
		return
	}
}

// NewHead says that a chain has a new block: the accounts with something open look at it.
func (f *Fleet) NewHead(chainID uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a, e := range f.running {
		if a.ChainID == chainID {
			e.NewHead()
		}
	}
}

// Busy returns how many accounts have something to do here.
func (f *Fleet) Busy() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.running)
}

// Run works until ctx ends, gives all accounts back, and returns ctx's error. It is called once.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.ctx != nil {
		f.mu.Unlock()
		return errors.New("eoa: the fleet runs already, or has run")
	}
	f.ctx = ctx
	f.mu.Unlock()
	defer f.end()
	ticker := time.NewTicker(f.cfg.Interval)
	defer ticker.Stop()
	for {
		f.takeDue(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// end waits for all executors to give their accounts back.
func (f *Fleet) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.all.Wait()
}

// takeDue starts executors of accounts that are due.
func (f *Fleet) takeDue(ctx context.Context) {
	due, err := f.store.Due(ctx, f.cfg.Executor.Clock.Now(), f.cfg.Page)
	if err != nil {
		f.warn("due", err)
		return
	}
	for _, a := range due {
		if err := f.wake(a); err != nil {
			f.warn(a.String(), err)
		}
	}
}

func (f *Fleet) warn(what string, err error) {
	if f.cfg.Executor.Log != nil {
		f.cfg.Executor.Log.Warn("eoa: fleet", "what", what, "err", err)
	}
}
