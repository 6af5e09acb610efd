package eoa

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Executor sends the requests of one account. All methods are safe for concurrent use; any number of executors may run for one account, on any
// number of machines that share a store: one of them works.
type Executor struct {
	cfg     Config
	account Account
	store   Store
	chain   patience
	signer  Signer
	owner   string

	woke chan struct{} // holds a token when there may be something to do

	signal  sync.Mutex
	look    bool          // a new head is there
	busy    bool          // the account is ours: new heads matter
	changed chan struct{} // closed at the next commit

	mu      sync.Mutex // held by a step
	lease   Lease      // zero Epoch: none
	view    *View      // nil: to be loaded
	staged  *Batch     // of the view, and not written yet; nil: none
	adrift  bool       // a commit failed, and may yet be carried out
	wake    uint64     // wake version that pending and orders are of
	seen    uint64     // wake version that the store told last
	pending []Record   // best requests without a nonce
	more    bool       // there are more of them
	low     int        // how few of them are left when those are read
	window  int        // how many of them are read
	lookAt  time.Time  // of the last look that worked
	priced  bool       // it asked for the price of blobs
	failed  int        // looks that failed since
	report  Report
}

// Report is what one step did.
type Report struct {
	// Account is whose step it was.
	Account Account
	// Sent and Recovered count transactions given to a node for the first time and again, Accepted those it has; Signed new ones, Bumped
	// replacements; Mined, Ended and Failed records by what they came to; Commits and Reads round trips to the store.
	Sent, Recovered, Accepted, Signed, Bumped, Mined, Ended, Failed, Commits, Reads int
	// ToSubmitted and ToConfirmed are how long each request took from its acceptance until a node had it, and until it was confirmed: for histograms.
	ToSubmitted, ToConfirmed []time.Duration
}

// Stats is where an account stands, as its executor last saw it.
type Stats struct {
	// Pending counts requests without a nonce, as far as they were read. Prepared, Broadcast and Mined count open records; Mined those in blocks that are
	// not final.
	Pending, Prepared, Broadcast, Mined int
	// Next is the next new nonce, Latest the chain's count, Free how many nonces below Next must be filled.
	Next, Latest uint64
	Free         int
	// Balance in wei, as a decimal number; empty if not known. Stalled is for how long the count has not moved although something is in flight.
	Balance string
	Stalled time.Duration
	// Failures counts looks at the chain that failed since the last good one. Held: the account is ours.
	Failures int
	Held     bool
	Resets   []Reset
}

// New returns an executor that does nothing yet. It is run by [Executor.Run], or step by step by the host. The error wraps ErrInvalidConfig.
func New(cfg Config, a Account, store Store, chain Chain, signer Signer) (*Executor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || chain == nil || signer == nil || a.ChainID == 0 {
		return nil, fmt.Errorf("%w: want a store, a chain, a signer and a chain id above 0", ErrInvalidConfig)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = machineClock{}
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	patient := patience{chain, signer, cfg.Timeout}
	return &Executor{cfg: cfg, account: a, store: store, chain: patient, signer: patient, owner: hex.EncodeToString(id[:]),
		woke: make(chan struct{}, 1), changed: make(chan struct{}), look: true}, nil
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

// Submit accepts requests, all or none: once it returns without an error they are durable. A request may be submitted again with the same key, for
// example after an error that leaves its fate open. Errors wrap ErrInvalidRequest, ErrKeyReused or ErrTooManyBlobs, or are the
// store's.
func (e *Executor) Submit(ctx context.Context, requests ...Request) ([]Record, error) {
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
	}
	records, err := e.store.Submit(ctx, e.account, e.cfg.Clock.Now(), requests...)
	if err == nil {
		e.Wake()
	}
	return records, err
}

// Get returns the record with a key, or ErrUnknownRequest; ByHash the one with a transaction; List those with ids above after, at most limit.
func (e *Executor) Get(ctx context.Context, key string) (Record, error) {
	return e.store.Get(ctx, e.account, key)
}

// ByHash returns the record that one of its transactions has the hash of, or ErrUnknownRequest.
func (e *Executor) ByHash(ctx context.Context, tx common.Hash) (Record, error) {
	return e.store.ByHash(ctx, e.account, tx)
}

// List returns records with ids above after, ascending, at most limit.
func (e *Executor) List(ctx context.Context, after uint64, limit int) ([]Record, error) {
	return e.store.List(ctx, e.account, after, limit)
}

// Cancel orders that a request be withdrawn. One that may be out is replaced by a transaction that does nothing: what is mined counts, so the record
// says in the end whether it was cancelled.
func (e *Executor) Cancel(ctx context.Context, key string) error {
	return e.order(ctx, Order{Kind: OrderCancel, Key: key})
}

// Replace orders that a request get another payload, or other limits, at the same nonce. Its key, group and priority stay. What is mined counts.
// A payload with blobs takes the place of one with blobs only, and one without that of one without.
func (e *Executor) Replace(ctx context.Context, key string, payload Request) error {
	if err := payload.validatePayload(); err != nil {
		return err
	}
	r, err := e.store.Get(ctx, e.account, key)
	if err != nil {
		return err
	}
	if err := r.canReplace(&payload); err != nil {
		return err
	}
	return e.order(ctx, Order{Kind: OrderReplace, Key: key, Payload: &payload})
}

// ResetNonce orders that the next nonce be the least that the chain has not used and no record holds. With force, requests in flight are given up
// first: whoever orders that knows that they can never be mined, or they may be sent twice.
func (e *Executor) ResetNonce(ctx context.Context, force bool) error {
	return e.order(ctx, Order{Kind: OrderReset, Force: force})
}

func (e *Executor) order(ctx context.Context, o Order) error {
	if o.Key != "" {
		if _, err := e.store.Get(ctx, e.account, o.Key); err != nil {
			return err
		}
	}
	if err := e.store.Order(ctx, e.account, e.cfg.Clock.Now(), o); err != nil {
		return err
	}
	e.Wake()
	return nil
}

// Wake says that there may be something to do: requests that came to the store through another process, for example.
func (e *Executor) Wake() {
	select {
	case e.woke <- struct{}{}:
	default:
	}
}

// NewHead says that the chain has a new block.
func (e *Executor) NewHead() {
	e.signal.Lock()
	e.look = true
	busy := e.busy
	e.signal.Unlock()
	if busy {
		e.Wake()
	}
}

// Wait returns the record with a key once it is in a state of the given rank or later: Mined, Confirmed or Final, or over in any way.
func (e *Executor) Wait(ctx context.Context, key string, state State) (Record, error) {
	for {
		e.signal.Lock()
		changed := e.changed
		e.signal.Unlock()
		r, err := e.store.Get(ctx, e.account, key)
		if err != nil || r.State >= state {
			return r, err
		}
		again := time.NewTimer(e.cfg.Rebroadcast) // another process may do the work
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return r, ctx.Err()
		}
		again.Stop()
	}
}

// Stats returns where the account stands, as of the last step.
func (e *Executor) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Stats{Pending: len(e.pending), Failures: e.failed, Held: e.lease.Epoch != 0}
	v := e.view
	if v == nil {
		return s
	}
	for i := range v.Open {
		switch v.Open[i].State {
		case Prepared:
			s.Prepared++
		case Broadcast:
			s.Broadcast++
		default:
			s.Mined++
		}
	}
	s.Next, s.Latest, s.Free, s.Resets = v.Head.Next, v.latest(), len(v.Head.Recycled)+len(v.Head.Holes), v.Head.Resets
	if v.look != nil && v.look.Balance != nil {
		s.Balance = v.look.Balance.Dec()
	}
	if s.Prepared+s.Broadcast > 0 {
		s.Stalled = e.cfg.Clock.Now().Sub(v.Head.Since)
	}
	return s
}

// Run works until ctx ends, and then gives the account back. It returns ctx's error. Failures of store, chain and signer are logged and tried
// again.
func (e *Executor) Run(ctx context.Context) error { return e.run(ctx, false, nil) }

// run works until ctx ends, or, where it is to end when idle, until nothing is left to do or somebody else holds the account. Each step takes a slot,
// if there are any.
func (e *Executor) run(ctx context.Context, endIdle bool, slots chan struct{}) error {
	failures := 0
	for ctx.Err() == nil {
		next, err := e.slotted(ctx, slots)
		if endIdle && (err == nil && next.IsZero() || errors.Is(err, ErrHeld)) {
			return nil
		}
		var wait time.Duration
		switch {
		case errors.Is(err, ErrHeld):
			wait = e.cfg.LeaseFor / 4
		case err != nil && ctx.Err() == nil:
			failures++
			wait = backOff(e.cfg.Retry, failures)
			e.cfg.Log.Warn("eoa: step failed", "account", e.account.String(), "err", err)
		default:
			failures = 0
			wait = next.Sub(e.cfg.Clock.Now())
		}
		e.pause(ctx, wait, err == nil, err == nil && next.IsZero())
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.LeaseFor)
	defer cancel()
	return errors.Join(ctx.Err(), e.Release(rest))
}

// slotted takes a step, in a slot.
func (e *Executor) slotted(ctx context.Context, slots chan struct{}) (time.Time, error) {
	if slots != nil {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
	return e.Step(ctx)
}

// pause waits for a time, or without end, or until it is woken, which does not hurry what has failed.
func (e *Executor) pause(ctx context.Context, wait time.Duration, wakes, forever bool) {
	var timer <-chan time.Time
	if !forever {
		t := time.NewTimer(max(wait, 0))
		defer t.Stop()
		timer = t.C
	}
	woke := e.woke
	if !wakes {
		woke = nil
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-woke:
		e.Wake() // for the step, which reads the store then
	}
}

// Release gives the account back, due at once if anything is left to do. Another worker may then take it without waiting for the lease to end.
func (e *Executor) Release(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Epoch == 0 {
		return nil
	}
	const tries = 5
	err := ErrWoken
	for range tries {
		inbox, failed := e.store.Inbox(ctx, e.account, Rank{}, 1)
		if err = failed; err == nil {
			err = e.store.Park(ctx, e.lease, inbox.Wake, e.cfg.Clock.Now())
		}
		if !errors.Is(err, ErrWoken) {
			break
		}
	}
	if errors.Is(err, ErrWoken) || errors.Is(err, ErrFenced) {
		err = nil // the lease ends by itself, and Due tells of the account then
	}
	e.drop()
	return err
}

// Suspend gives the account back between two steps, due at a time, zero for never, and returns the wake version that the last step knew: for a
// host that lets another one take the next step, see package eoa/jobs. It fails with ErrWoken if requests or orders came since; the account stays ours then,
// and there is a step to take. An account that the last step gave back is left as it is.
func (e *Executor) Suspend(ctx context.Context, due time.Time) (wake uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Epoch == 0 {
		return e.wake, nil
	}
	err = e.store.Park(ctx, e.lease, e.wake, due)
	switch {
	case err == nil, errors.Is(err, ErrFenced):
		e.drop()
	case errors.Is(err, ErrWoken):
		e.Wake()
	}
	return e.wake, err
}

// drop forgets the lease.
func (e *Executor) drop() {
	e.lease, e.view = Lease{}, nil
	e.signal.Lock()
	e.busy = false
	e.signal.Unlock()
}
