package kvstore

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
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

// Acquire implements eoa.Store.
func (s *Store) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (l eoa.Lease, err error) {
	err = s.do(ctx, a, func(st *step) error {
		if st.m.Owner != "" && now.Before(st.m.Until) {
			return fmt.Errorf("%w: %v until %v", eoa.ErrHeld, a, st.m.Until)
		}
		st.m.Epoch++
		st.m.Owner, st.m.Until = owner, now.Add(ttl)
		st.dueAt(st.m.Until) // in case the owner dies
		l = eoa.Lease{Account: a, Owner: owner, Epoch: st.m.Epoch, Until: st.m.Until}
		return nil
	})
	return l, err
}

// Renew implements eoa.Store.
func (s *Store) Renew(ctx context.Context, l eoa.Lease, now time.Time, ttl time.Duration) (eoa.Lease, error) {
	err := s.do(ctx, l.Account, func(st *step) error {
		if err := st.fenced(l); err != nil {
			return err
		}
		l.Until = now.Add(ttl)
		st.m.Until = l.Until
		st.dueAt(l.Until)
		return nil
	})
	return l, err
}

// Park implements eoa.Store.
func (s *Store) Park(ctx context.Context, l eoa.Lease, wake uint64, due time.Time) error {
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
func (s *Store) Break(ctx context.Context, a eoa.Account) error {
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
func (s *Store) Due(ctx context.Context, now time.Time, limit int) (out []eoa.Account, err error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return nil, err
	}
	_, shared := s.kv.(Shared)
	most := limit
	if shared {
		most = math.MaxInt
	}
	var listed []eoa.Account
	entries := map[eoa.Account][][]byte{}
	err = s.kv.Scan(ctx, dueKey(0, nil), dueKey(uint64(max(now.UnixNano(), 0))+1, nil), most, func(key, _ []byte) bool {
		if a, ok := parseDue(key); ok {
			if entries[a] == nil {
				listed = append(listed, a)
			}
			entries[a] = append(entries[a], bytes.Clone(key))
		}
		return true
	})
	if err != nil || !shared {
		return listed, err
	}
	// The index of a shared store is only a hint: check each account.
	for _, a := range listed {
		is, err := s.tidy(ctx, a, entries[a])
		if err != nil {
			return nil, err
		}
		if is {
			out = append(out, a)
		}
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

// tidy reports whether one of the account's index entries is valid, and deletes
// the others, which processes that lost a race have left. It does so in a step
// of the account, so that no other step can make one of them valid meanwhile.
func (s *Store) tidy(ctx context.Context, a eoa.Account, entries [][]byte) (is bool, err error) {
	st, err := s.begin(ctx, a, nil)
	if err != nil {
		return false, err
	}
	is = slices.ContainsFunc(entries, st.isDue)
	if len(entries) == 1 && is {
		return true, nil
	}
	err = s.do(ctx, a, func(st *step) error {
		is = slices.ContainsFunc(entries, st.isDue)
		for _, entry := range entries {
			if !st.isDue(entry) {
				st.set(entry, nil)
			}
		}
		return nil
	})
	return is, err
}

func (st *step) isDue(entry []byte) bool {
	return st.m.Due != 0 && bytes.Equal(entry, dueKey(st.m.Due, &st.a))
}
