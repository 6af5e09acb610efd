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

// Opener returns the chain and the signer of an account. A fleet calls the opener
// in a separate goroutine when the account has work, because connecting to a node
// or a key service may take long. No call of a user waits for the opener. If it
// returns an error or panics, [Fleet.Health] reports the account, and the fleet
// calls the opener again after FleetConfig.Interval.
type Opener func(a Account) (Chain, Signer, error)

// Executor calls the opener and returns an executor for the account. If the opener
// panics, the text of the error contains the stack.
func (o Opener) Executor(cfg Config, a Account, store Store) (e *Executor, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("eoa: opening %v: panic: %v\n%s", a, value, debug.Stack())
		}
	}()
	chain, signer, err := o(a)
	if err != nil {
		return nil, fmt.Errorf("eoa: opening %v: %w", a, err)
	}
	return New(cfg, a, store, chain, signer)
}

// FleetConfig configures a [Fleet]. Start with [DefaultFleetConfig].
type FleetConfig struct {
	// Executor configures the executor of each account.
	Executor Config
	// Workers is how many accounts may take a step at the same time; at least 1. The default
	// is 16.
	Workers int
	// Interval is how often the fleet asks the store which accounts have work, in
	// one call for all accounts; positive. In this way, the fleet finds requests of
	// other processes, and accounts whose worker has died. Requests that are
	// submitted through this fleet do not wait for it. The default is one second.
	Interval time.Duration
	// Target is how many unfinished requests an account may have before
	// [Fleet.Pick] prefers the next account; at least 1. The default is 10.
	Target int
}

// DefaultFleetConfig returns the defaults, which suit some thousands of
// accounts.
func DefaultFleetConfig() FleetConfig {
	return FleetConfig{Executor: DefaultConfig(), Workers: 16, Interval: time.Second, Target: 10}
}

// Validate returns an error that lists each field out of range. The error wraps
// ErrInvalidConfig.
func (c *FleetConfig) Validate() error {
	var wrong fields.Errors
	fields.Positive(&wrong, "Workers", c.Workers)
	fields.Positive(&wrong, "Interval", c.Interval)
	fields.Positive(&wrong, "Target", c.Target)
	wrong.Add(c.Executor.Validate())
	return wrong.Wrap(ErrInvalidConfig)
}

// Fleet runs the executors of many accounts. Any number of fleets may run, on any
// number of machines that share a store. If a machine dies, the others take over
// its accounts when the leases expire. An account without work costs nothing,
// because it has no executor, no goroutine and no lease. All methods are safe for
// concurrent use.
type Fleet struct {
	cfg     FleetConfig
	store   Store
	open    Opener
	slots   *semaphore.Weighted // each running step occupies one slot
	commits *signals            // announces the commits of all accounts
	starts  *signals            // announces that an account has got an executor

	mu      sync.Mutex
	running map[Account]*Executor
	// opening contains the accounts whose opener has not returned yet, with the
	// time of the call.
	opening map[Account]time.Time
	// troubled contains the problems that Health reports, by account. The problems
	// of the whole fleet are under the zero Account.
	troubled map[Account]troubled
	all      sync.WaitGroup
	ctx      context.Context // context of Run; nil before Run is called
	ended    bool            // Run is ending, so start no executor
}

// NewFleet returns a fleet. It does not work on any account before [Fleet.Run] is
// called. The error wraps ErrInvalidConfig.
func NewFleet(cfg FleetConfig, store Store, open Opener) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || open == nil {
		return nil, fmt.Errorf("%w: want a store and an opener", ErrInvalidConfig)
	}
	cfg.Executor = cfg.Executor.withDefaults()
	f := &Fleet{store: store, open: open, slots: semaphore.NewWeighted(int64(cfg.Workers)), commits: newSignals(), starts: newSignals(), running: map[Account]*Executor{}, opening: map[Account]time.Time{}, troubled: map[Account]troubled{}}
	observe := cfg.Executor.Observe
	cfg.Executor.Observe = func(r Report) {
		if f.setProblems(r.Account, r.Problems...); r.Commits > 0 {
			f.commits.announceChange()
		}
		if observe != nil {
			observe(r)
		}
	}
	f.cfg = cfg
	return f, nil
}

// Client returns a client of an account, through which requests are submitted and
// followed. Its calls do not wait for the [Opener], because the store keeps
// requests and orders until this fleet or another process works on the account. The
// client is safe for concurrent use.
func (f *Fleet) Client(a Account) *Client {
	return &Client{a, f.store, f.cfg.Executor.Now, f.cfg.Executor.Confirmations, func() { f.wake(a) }, func() progress {
		if e := f.executor(a); e != nil {
			return e.signals.progress()
		}
		return f.starts.progress()
	}}
}

// Submit submits requests of an account; see [Client.Submit].
func (f *Fleet) Submit(ctx context.Context, a Account, requests ...Request) ([]Record, error) {
	return f.Client(a).Submit(ctx, requests...)
}

// Stats returns the state of an account after the last step of its executor. It
// returns false if this fleet is not working on the account now.
func (f *Fleet) Stats(a Account) (Stats, bool) {
	e := f.executor(a)
	if e == nil {
		return Stats{}, false
	}
	return e.Stats(), true
}

// Undelivered returns the accounts that have unacknowledged events. It returns up
// to limit accounts above after, in ascending order of chain id and address; begin
// with the zero Account. It asks the store, so it also finds accounts of other
// fleets.
func (f *Fleet) Undelivered(ctx context.Context, after Account, limit int) ([]Account, error) {
	return f.store.Undelivered(ctx, after, limit)
}

// executor returns the account's executor, or nil if this fleet has none.
func (f *Fleet) executor(a Account) *Executor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[a]
}

// Pick chooses the account that should get the next request, for hosts that do not
// care which account sends it. It returns the first account that has fewer
// unfinished requests than FleetConfig.Target, so that only few accounts are busy
// at a time. If there is no such account, it returns the account with the fewest.
//
// A request's key is known only to the account that it was submitted to. Therefore,
// store the choice together with the key, and use the same account when you submit
// the request again.
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

// wake makes the account's executor read the store, or starts the executor.
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
		// The opener may take long, so it is called in another goroutine.
		f.all.Go(func() { f.start(a) })
	}
}

// start opens an account and runs its executor until it has no work left.
func (f *Fleet) start(a Account) {
	e, err := f.open.Executor(f.cfg.Executor, a, f.store)
	if err != nil {
		f.setProblems(a, Problem{Account: a, Kind: ProblemOpener, Err: err})
		f.cfg.Executor.Logger.Warn("eoa: fleet", "what", "starting "+a.String(), "err", err)
	}
	f.mu.Lock()
	delete(f.opening, a)
	works := err == nil && !f.ended
	if works {
		f.running[a] = e
	}
	f.mu.Unlock()
	if works {
		f.starts.announceChange()
		f.work(f.ctx, a, e)
	}
}

// work runs an account's executor until it has no work left.
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

// NewHead tells the fleet that a chain has a new block, so that the executors of
// that chain read it without waiting for Config.Poll.
func (f *Fleet) NewHead(chainID uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a, e := range f.running {
		if a.ChainID == chainID {
			e.NewHead()
		}
	}
}

// Busy returns the number of accounts that this fleet is working on now.
func (f *Fleet) Busy() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.running)
}

// Run works on the accounts until ctx ends. It then releases all of them, so that
// other fleets can go on at once, and returns ctx's error. Run must be called only
// once.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.ctx != nil {
		f.mu.Unlock()
		return errors.New("eoa: Fleet.Run called twice")
	}
	f.ctx = ctx
	f.mu.Unlock()
	defer func() { // wait until all executors have released their accounts
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
		f.all.Wait()
	}()
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

// duePage is how many new accounts takeDue asks for at once.
const duePage = 256

// takeDue asks the store which accounts have work, and starts executors for them.
func (f *Fleet) takeDue(ctx context.Context) {
	f.mu.Lock()
	// Leave room for the accounts that this fleet already knows. Otherwise,
	// accounts that cannot be opened could fill the answer and starve the others.
	limit := duePage + len(f.running) + len(f.opening) + len(f.troubled)
	f.mu.Unlock()
	due, err := f.store.Due(ctx, f.cfg.Executor.Now(), limit)
	if err != nil {
		if ctx.Err() == nil {
			f.setProblems(Account{}, Problem{Kind: ProblemStore, Err: err})
		}
		f.cfg.Executor.Logger.Warn("eoa: fleet", "what", "fetching due accounts", "err", err)
		return
	}
	f.setProblems(Account{})
	for _, a := range due {
		f.wake(a)
	}
}
