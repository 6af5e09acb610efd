package eoa_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// life is one run of a simulated process. It implements eoa.Store on top of
// Store, and [life.Wire] returns an eoa.Chain on top of Chain. The process can
// be made to die before or after any call. The executor may call it
// concurrently; all other use of a life must not be concurrent.
type life struct {
	// Store is the store, which outlives the process.
	Store eoa.Store
	// Chain is the chain, which outlives the process.
	Chain eoa.Chain
	// Moments counts the moments passed so far: one before and one after each
	// call.
	Moments int
	// DiesAt is the moment at which the process dies; 0 means never.
	DiesAt int
	// Then, if not nil, is called at DiesAt, and the process lives on.
	Then func()

	mu sync.Mutex // for Moments
}

// errDied is returned by every call after the process has died.
var errDied = errors.New("the process died")

// Wire returns the chain as the process sees it.
func (l *life) Wire() eoa.Chain { return wire{l} }

// Dead reports whether the process has died.
func (l *life) Dead() bool { return l.Then == nil && l.DiesAt > 0 && l.Moments >= l.DiesAt }

// moment calls f with a moment before and after it.
func (l *life) moment(f func() error) error {
	if err := l.pass(); err != nil {
		return err
	}
	err := f()
	if died := l.pass(); died != nil {
		return died
	}
	return err
}

// during is moment for a call that also returns a value.
func during[T any](l *life, f func() (T, error)) (out T, err error) {
	err = l.moment(func() error { out, err = f(); return err })
	return out, err
}

func (l *life) pass() error {
	l.mu.Lock()
	l.Moments++
	now, dead := l.Moments, l.Dead()
	l.mu.Unlock()
	if l.Then != nil {
		if now == l.DiesAt {
			l.Then()
		}
		return nil
	}
	if dead {
		return errDied
	}
	return nil
}

// Submit implements eoa.Store.
func (l *life) Submit(ctx context.Context, a eoa.Account, now time.Time, q ...eoa.Request) ([]eoa.Record, error) {
	return during(l, func() ([]eoa.Record, error) { return l.Store.Submit(ctx, a, now, q...) })
}

// Order implements eoa.Store.
func (l *life) Order(ctx context.Context, a eoa.Account, now time.Time, o eoa.Order) error {
	return l.moment(func() error { return l.Store.Order(ctx, a, now, o) })
}

// Get implements eoa.Store.
func (l *life) Get(ctx context.Context, a eoa.Account, key string) (eoa.Record, error) {
	return during(l, func() (eoa.Record, error) { return l.Store.Get(ctx, a, key) })
}

// ByHash implements eoa.Store.
func (l *life) ByHash(ctx context.Context, a eoa.Account, tx common.Hash) (eoa.Record, error) {
	return during(l, func() (eoa.Record, error) { return l.Store.ByHash(ctx, a, tx) })
}

// List implements eoa.Store.
func (l *life) List(ctx context.Context, a eoa.Account, after uint64, limit int) ([]eoa.Record, error) {
	return during(l, func() ([]eoa.Record, error) { return l.Store.List(ctx, a, after, limit) })
}

// Backlog implements eoa.Store.
func (l *life) Backlog(ctx context.Context, a eoa.Account, limit int) (eoa.Backlog, error) {
	return during(l, func() (eoa.Backlog, error) { return l.Store.Backlog(ctx, a, limit) })
}

// Events implements eoa.Store.
func (l *life) Events(ctx context.Context, a eoa.Account, after uint64, limit int) ([]eoa.Event, error) {
	return during(l, func() ([]eoa.Event, error) { return l.Store.Events(ctx, a, after, limit) })
}

// Acknowledge implements eoa.Store.
func (l *life) Acknowledge(ctx context.Context, a eoa.Account, through uint64) error {
	return l.moment(func() error { return l.Store.Acknowledge(ctx, a, through) })
}

// Undelivered implements eoa.Store.
func (l *life) Undelivered(ctx context.Context, after eoa.Account, limit int) ([]eoa.Account, error) {
	return during(l, func() ([]eoa.Account, error) { return l.Store.Undelivered(ctx, after, limit) })
}

// Acquire implements eoa.Store.
func (l *life) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (eoa.Lease, error) {
	return during(l, func() (eoa.Lease, error) { return l.Store.Acquire(ctx, a, owner, now, ttl) })
}

// Renew implements eoa.Store.
func (l *life) Renew(ctx context.Context, lease eoa.Lease, now time.Time, ttl time.Duration) (eoa.Lease, error) {
	return during(l, func() (eoa.Lease, error) { return l.Store.Renew(ctx, lease, now, ttl) })
}

// Park implements eoa.Store.
func (l *life) Park(ctx context.Context, lease eoa.Lease, wake uint64, due time.Time) error {
	return l.moment(func() error { return l.Store.Park(ctx, lease, wake, due) })
}

// Break implements eoa.Store.
func (l *life) Break(ctx context.Context, a eoa.Account) error {
	return l.moment(func() error { return l.Store.Break(ctx, a) })
}

// Due implements eoa.Store.
func (l *life) Due(ctx context.Context, now time.Time, limit int) ([]eoa.Account, error) {
	return during(l, func() ([]eoa.Account, error) { return l.Store.Due(ctx, now, limit) })
}

// Load implements eoa.Store.
func (l *life) Load(ctx context.Context, lease eoa.Lease) (eoa.Loaded, error) {
	return during(l, func() (eoa.Loaded, error) { return l.Store.Load(ctx, lease) })
}

// Inbox implements eoa.Store.
func (l *life) Inbox(ctx context.Context, a eoa.Account, limit int) (eoa.Inbox, error) {
	return during(l, func() (eoa.Inbox, error) { return l.Store.Inbox(ctx, a, limit) })
}

// Commit implements eoa.Store.
func (l *life) Commit(ctx context.Context, lease eoa.Lease, now time.Time, b eoa.Batch) (uint64, error) {
	return during(l, func() (uint64, error) { return l.Store.Commit(ctx, lease, now, b) })
}

// wire is the chain as the process of a life sees it.
type wire struct{ *life }

// Look implements eoa.Chain.
func (l wire) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	return during(l.life, func() (eoa.Look, error) { return l.Chain.Look(ctx, a) })
}

// Ask implements eoa.Chain.
func (l wire) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	return during(l.life, func() (eoa.Answers, error) { return l.Chain.Ask(ctx, q) })
}

// Estimate implements eoa.Chain.
func (l wire) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) (out []eoa.Estimated) {
	if err := l.moment(func() error { out = l.Chain.Estimate(ctx, a, requests); return nil }); err != nil {
		out = make([]eoa.Estimated, len(requests))
		for i := range out {
			out[i].Err = err
		}
	}
	return out
}

// Send implements eoa.Chain.
func (l wire) Send(ctx context.Context, raws [][]byte) (out []eoa.Sent) {
	if err := l.moment(func() error { out = l.Chain.Send(ctx, raws); return nil }); err != nil {
		return make([]eoa.Sent, len(raws))
	}
	return out
}
