package lives

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// Life is one run of a simulated process. It implements eoa.Store on top of
// Store, and [Life.Wire] returns an eoa.Chain on top of Chain. The process can
// be made to die before or after any call. The executor may call it
// concurrently; all other use of a Life must not be concurrent.
type Life struct {
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

// ErrDied is returned by every call after the process has died.
var ErrDied = errors.New("lives: the process died")

// Wire returns the chain as the process sees it.
func (l *Life) Wire() eoa.Chain { return wire{l} }

// Dead reports whether the process has died.
func (l *Life) Dead() bool { return l.Then == nil && l.DiesAt > 0 && l.Moments >= l.DiesAt }

// moment calls f with a moment before and after it.
func (l *Life) moment(f func() error) error {
	if err := l.pass(); err != nil {
		return err
	}
	err := f()
	if died := l.pass(); died != nil {
		return died
	}
	return err
}

func (l *Life) pass() error {
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
		return ErrDied
	}
	return nil
}

// Submit implements eoa.Store.
func (l *Life) Submit(ctx context.Context, a eoa.Account, now time.Time, q ...eoa.Request) (out []eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.Store.Submit(ctx, a, now, q...); return err })
	return out, err
}

// Order implements eoa.Store.
func (l *Life) Order(ctx context.Context, a eoa.Account, now time.Time, o eoa.Order) error {
	return l.moment(func() error { return l.Store.Order(ctx, a, now, o) })
}

// Get implements eoa.Store.
func (l *Life) Get(ctx context.Context, a eoa.Account, key string) (out eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.Store.Get(ctx, a, key); return err })
	return out, err
}

// ByHash implements eoa.Store.
func (l *Life) ByHash(ctx context.Context, a eoa.Account, tx common.Hash) (out eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.Store.ByHash(ctx, a, tx); return err })
	return out, err
}

// List implements eoa.Store.
func (l *Life) List(ctx context.Context, a eoa.Account, after uint64, limit int) (out []eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.Store.List(ctx, a, after, limit); return err })
	return out, err
}

// Backlog implements eoa.Store.
func (l *Life) Backlog(ctx context.Context, a eoa.Account, limit int) (out eoa.Backlog, err error) {
	err = l.moment(func() error { out, err = l.Store.Backlog(ctx, a, limit); return err })
	return out, err
}

// Events implements eoa.Store.
func (l *Life) Events(ctx context.Context, a eoa.Account, after uint64, limit int) (out []eoa.Event, err error) {
	err = l.moment(func() error { out, err = l.Store.Events(ctx, a, after, limit); return err })
	return out, err
}

// Acknowledge implements eoa.Store.
func (l *Life) Acknowledge(ctx context.Context, a eoa.Account, through uint64) error {
	return l.moment(func() error { return l.Store.Acknowledge(ctx, a, through) })
}

// Undelivered implements eoa.Store.
func (l *Life) Undelivered(ctx context.Context, after eoa.Account, limit int) (out []eoa.Account, err error) {
	err = l.moment(func() error { out, err = l.Store.Undelivered(ctx, after, limit); return err })
	return out, err
}

// Acquire implements eoa.Store.
func (l *Life) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (out eoa.Lease, err error) {
	err = l.moment(func() error { out, err = l.Store.Acquire(ctx, a, owner, now, ttl); return err })
	return out, err
}

// Renew implements eoa.Store.
func (l *Life) Renew(ctx context.Context, lease eoa.Lease, now time.Time, ttl time.Duration) (out eoa.Lease, err error) {
	err = l.moment(func() error { out, err = l.Store.Renew(ctx, lease, now, ttl); return err })
	return out, err
}

// Park implements eoa.Store.
func (l *Life) Park(ctx context.Context, lease eoa.Lease, wake uint64, due time.Time) error {
	return l.moment(func() error { return l.Store.Park(ctx, lease, wake, due) })
}

// Break implements eoa.Store.
func (l *Life) Break(ctx context.Context, a eoa.Account) error {
	return l.moment(func() error { return l.Store.Break(ctx, a) })
}

// Due implements eoa.Store.
func (l *Life) Due(ctx context.Context, now time.Time, limit int) (out []eoa.Account, err error) {
	err = l.moment(func() error { out, err = l.Store.Due(ctx, now, limit); return err })
	return out, err
}

// Load implements eoa.Store.
func (l *Life) Load(ctx context.Context, lease eoa.Lease) (out eoa.Loaded, err error) {
	err = l.moment(func() error { out, err = l.Store.Load(ctx, lease); return err })
	return out, err
}

// Inbox implements eoa.Store.
func (l *Life) Inbox(ctx context.Context, a eoa.Account, after eoa.Rank, limit int) (out eoa.Inbox, err error) {
	err = l.moment(func() error { out, err = l.Store.Inbox(ctx, a, after, limit); return err })
	return out, err
}

// Commit implements eoa.Store.
func (l *Life) Commit(ctx context.Context, lease eoa.Lease, now time.Time, b eoa.Batch) (wake uint64, err error) {
	err = l.moment(func() error { wake, err = l.Store.Commit(ctx, lease, now, b); return err })
	return wake, err
}

// wire is the chain as the process of a Life sees it.
type wire struct{ *Life }

// Look implements eoa.Chain.
func (l wire) Look(ctx context.Context, a common.Address) (out eoa.Look, err error) {
	err = l.moment(func() error { out, err = l.Chain.Look(ctx, a); return err })
	return out, err
}

// LookBlobs implements eoa.BlobChain.
func (l wire) LookBlobs(ctx context.Context, a common.Address) (out eoa.Look, err error) {
	chain, knows := l.Chain.(eoa.BlobChain)
	if !knows {
		return l.Look(ctx, a)
	}
	err = l.moment(func() error { out, err = chain.LookBlobs(ctx, a); return err })
	return out, err
}

// Ask implements eoa.Chain.
func (l wire) Ask(ctx context.Context, q eoa.Questions) (out eoa.Answers, err error) {
	err = l.moment(func() error { out, err = l.Chain.Ask(ctx, q); return err })
	return out, err
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
