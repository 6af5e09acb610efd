package eoa

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/internal/fields"
)

// Opener returns the chain and the signer for an account that has work. It may
// take long, for example to connect to a node: a fleet starts a goroutine for each
// account, so that no call of a user waits for the opener. After an error or a
// panic, [Fleet.Health] has the account, and the opener is called again after
// FleetConfig.Interval.
type Opener func(a Account) (Chain, Signer, error)

// Open calls the opener. A panic counts as an error, with the stack in its text.
func (o Opener) Open(a Account) (c Chain, s Signer, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("eoa: opening %v: panic: %v\n%s", a, value, debug.Stack())
		}
	}()
	if c, s, err = o(a); err != nil {
		err = fmt.Errorf("eoa: opening %v: %w", a, err)
	}
	return c, s, err
}

// FleetConfig configures a [Fleet]. Start with [DefaultFleetConfig].
type FleetConfig struct {
	// Executor configures the executor of each account.
	Executor Config
	// Workers is the maximum number of accounts that take a step at the same
	// time; at least 1. The default is 16.
	Workers int
	// Interval is how often the store is queried for due accounts, in one call
	// for all; positive. Requests submitted through this fleet do not wait for
	// it. The default is one second.
	Interval time.Duration
	// Page is the maximum number of due accounts fetched at once; at least 1.
	// The default is 256.
	Page int
	// Target is the number of unfinished requests at which [Fleet.Pick] moves
	// on to another account; at least 1. The default is 10.
	Target int
}

// DefaultFleetConfig returns the defaults, which suit some thousands of
// accounts.
func DefaultFleetConfig() FleetConfig {
	return FleetConfig{Executor: DefaultConfig(), Workers: 16, Interval: time.Second, Page: 256, Target: 10}
}

// Validate returns an error that lists each field out of range. The error wraps
// ErrInvalidConfig.
func (c *FleetConfig) Validate() error {
	var wrong fields.Errors
	fields.Positive(&wrong, "Workers", c.Workers)
	fields.Positive(&wrong, "Interval", c.Interval)
	fields.Positive(&wrong, "Page", c.Page)
	fields.Positive(&wrong, "Target", c.Target)
	wrong.Add(c.Executor.Validate())
	return wrong.Wrap(ErrInvalidConfig)
}

// Fleet runs the executors of many accounts. Any number of fleets may run, on
// any number of machines that share a store. If one dies, the others take its
// accounts over when the leases expire. An account without work has no
// executor, no goroutine and no lease. All methods are safe for concurrent use.
type Fleet struct {
	cfg     FleetConfig
	store   Store
	open    Opener
	slots   *semaphore.Weighted // a weight of one for each running step
	commits *signals            // changes at the commits of all accounts
	starts  *signals            // changes when an account gets an executor

	mu      sync.Mutex
	running map[Account]*Executor
	// opening has the accounts whose opener has not returned, with the time when
	// its call began.
	opening map[Account]time.Time
	// troubled has the accounts with problems. The zero Account is the fleet.
	troubled map[Account]troubled
	all      sync.WaitGroup
	ctx      context.Context // context of Run; nil before
	ended    bool            // Run is ending: start nothing
}

// NewFleet returns a fleet. It does nothing until [Fleet.Run] is called. The
// error wraps ErrInvalidConfig.
func NewFleet(cfg FleetConfig, store Store, open Opener) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || open == nil {
		return nil, fmt.Errorf("%w: want a store and an opener", ErrInvalidConfig)
	}
	if cfg.Executor.Now == nil {
		cfg.Executor.Now = time.Now
	}
	if cfg.Executor.Witness == nil {
		cfg.Executor.Witness = NewWitness()
	}
	f := &Fleet{store: store, open: open, slots: semaphore.NewWeighted(int64(cfg.Workers)), commits: newSignals(), starts: newSignals(), running: map[Account]*Executor{}, opening: map[Account]time.Time{}, troubled: map[Account]troubled{}}
	observe := cfg.Executor.Observe
	cfg.Executor.Observe = func(r Report) {
		if f.hear(r.Account, r.Problems...); r.Commits > 0 {
			f.commits.tell()
		}
		if observe != nil {
			observe(r)
		}
	}
	f.cfg = cfg
	return f, nil
}

// Client returns a client of an account. Its calls never wait for the [Opener]: the
// store keeps the requests and orders until this fleet or another process works on
// the account. It is safe for concurrent use.
func (f *Fleet) Client(a Account) *Client {
	return &Client{a, f.store, f.cfg.Executor.Now, f.cfg.Executor.Confirmations, func() { f.wake(a) }, func() progress {
		if e := f.executor(a); e != nil {
			return e.signals.progress()
		}
		return f.starts.progress()
	}}
}

// Submit is Submit of the account's client.
func (f *Fleet) Submit(ctx context.Context, a Account, requests ...Request) ([]Record, error) {
	return f.Client(a).Submit(ctx, requests...)
}

// Stats returns the state of an account, and whether this fleet is working on it.
func (f *Fleet) Stats(a Account) (Stats, bool) {
	e := f.executor(a)
	if e == nil {
		return Stats{}, false
	}
	return e.Stats(), true
}

// Undelivered returns the accounts above after that have events which [Deliver]
// has not taken, ascending by chain id and address, at most limit. Begin with the
// zero Account. It asks the store, so that it finds the accounts of all fleets.
func (f *Fleet) Undelivered(ctx context.Context, after Account, limit int) ([]Account, error) {
	return f.store.Undelivered(ctx, after, limit)
}

// executor returns the executor of an account, or nil if this fleet is not working on
// it.
func (f *Fleet) executor(a Account) *Executor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[a]
}

// Pick returns the account that should get the next request. This is the first
// one with fewer unfinished requests than FleetConfig.Target, or the one with
// the fewest if all have more. Few accounts are busy this way. A key is known
// only to the account that it was submitted to, so the caller must store the
// choice with the key and use the same account for retries.
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

// wake makes the account's executor look at the store. If there is none, it opens
// the account in another goroutine, because that may take long.
func (f *Fleet) wake(a Account) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.running[a]
	_, opening := f.opening[a]
	switch {
	case e != nil:
		e.Wake()
	case f.ctx != nil && !f.ended && !opening:
		f.opening[a] = f.cfg.Executor.Now()
		f.all.Go(func() { f.start(a) })
	}
}

// start opens an account and works on it until no work is left.
func (f *Fleet) start(a Account) {
	chain, signer, err := f.open.Open(a)
	var e *Executor
	if err == nil {
		e, err = New(f.cfg.Executor, a, f.store, chain, signer)
	}
	if err != nil {
		f.hear(a, Problem{Account: a, Kind: ProblemOpener, Err: err})
		f.warn("starting "+a.String(), err)
	}
	f.mu.Lock()
	delete(f.opening, a)
	works := err == nil && !f.ended
	if works {
		f.running[a] = e
	}
	f.mu.Unlock()
	if works {
		f.starts.tell()
		f.work(f.ctx, a, e)
	}
}

// work runs an account's executor until no work is left.
func (f *Fleet) work(ctx context.Context, a Account, e *Executor) {
	for {
		err := e.run(ctx, true, f.slots)
		f.mu.Lock()
		select {
		case <-e.signals.woke: // wake-up after its last step
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

// NewHead tells the fleet that a chain has a new block. The executors of that
// chain then look at it.
func (f *Fleet) NewHead(chainID uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a, e := range f.running {
		if a.ChainID == chainID {
			e.NewHead()
		}
	}
}

// Busy returns the number of accounts that this fleet is working on.
func (f *Fleet) Busy() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.running)
}

// Run works until ctx ends, then releases all accounts and returns ctx's error.
// It must be called only once.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.ctx != nil {
		f.mu.Unlock()
		return errors.New("eoa: Fleet.Run called twice")
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

// end waits until all executors have released their accounts.
func (f *Fleet) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.all.Wait()
}

// takeDue starts executors for the accounts that are due.
func (f *Fleet) takeDue(ctx context.Context) {
	due, err := f.store.Due(ctx, f.cfg.Executor.Now(), f.cfg.Page)
	if err != nil {
		if ctx.Err() == nil {
			f.hear(Account{}, Problem{Kind: ProblemStore, Err: err})
		}
		f.warn("fetching due accounts", err)
		return
	}
	f.hear(Account{})
	for _, a := range due {
		f.wake(a)
	}
}

func (f *Fleet) warn(what string, err error) {
	if f.cfg.Executor.Logger != nil {
		f.cfg.Executor.Logger.Warn("eoa: fleet", "what", what, "err", err)
	}
}
