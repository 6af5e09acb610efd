package kvstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa"
)

// fenced returns ErrFenced unless l is the account's current lease.
func (st *step) fenced(l eoa.Lease) error {
	if st.m.Owner == "" || st.m.Owner != l.Owner || st.m.Epoch != l.Epoch {
		return fmt.Errorf("%w: %v has epoch %d of %q, want %d of %q", eoa.ErrFenced, st.a, st.m.Epoch, st.m.Owner, l.Epoch, l.Owner)
	}
	return nil
}

// clock returns the time that decides when leases begin and end.
func (s *store) clock(ctx context.Context, a eoa.Account, now time.Time) (time.Time, error) {
	// The caller's clock may be wrong. If the database has a clock, all workers use that one.
	if c, ok := s.kv.(Clocked); ok {
		return c.Now(ctx, a)
	}
	return now, nil
}

// Acquire implements eoa.Store. Even if the KV has its own clock, the field Until of
// the returned lease is by the caller's clock, because the caller decides with that
// clock when to renew the lease.
func (s *store) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (l eoa.Lease, err error) {
	at, err := s.clock(ctx, a, now)
	if err != nil {
		return l, err
	}
	err = s.do(ctx, a, func(st *step) error {
		if st.m.Owner != "" && at.Before(st.m.Until) {
			return fmt.Errorf("%w: %v until %v", eoa.ErrHeld, a, st.m.Until)
		}
		st.m.Epoch++
		st.m.Owner, st.m.Until = owner, at.Add(ttl)
		st.dueAt(st.m.Until) // in case the owner dies
		l = eoa.Lease{Account: a, Owner: owner, Epoch: st.m.Epoch, Until: now.Add(ttl)}
		return nil
	})
	return l, err
}

// Renew implements eoa.Store.
func (s *store) Renew(ctx context.Context, l eoa.Lease, now time.Time, ttl time.Duration) (eoa.Lease, error) {
	at, err := s.clock(ctx, l.Account, now)
	if err != nil {
		return l, err
	}
	err = s.do(ctx, l.Account, func(st *step) error {
		if err := st.fenced(l); err != nil {
			return err
		}
		l.Until = now.Add(ttl)
		st.m.Until = at.Add(ttl)
		st.dueAt(st.m.Until)
		return nil
	})
	return l, err
}

// Park implements eoa.Store.
func (s *store) Park(ctx context.Context, l eoa.Lease, wake uint64, due time.Time) error {
	return s.do(ctx, l.Account, func(st *step) error {
		if err := st.fenced(l); err != nil {
			return err
		}
		if st.m.Wake != wake {
			return fmt.Errorf("%w: wake version is %d, want %d", eoa.ErrWoken, st.m.Wake, wake)
		}
		st.m.Owner = ""
		st.dueAt(due)
		return nil
	})
}

// Break implements eoa.Store.
func (s *store) Break(ctx context.Context, a eoa.Account) error {
	return s.do(ctx, a, func(st *step) error {
		if st.m.Owner != "" {
			st.m.Owner = ""
			st.m.Epoch++
			st.dueAt(time.Unix(0, 1))
		}
		return nil
	})
}

// Due implements eoa.Store.
func (s *store) Due(ctx context.Context, now time.Time, limit int) ([]eoa.Account, error) {
	return s.indexed(ctx, dueKey(0, nil), dueKey(nanoseconds(now)+1, nil), limit)
}
