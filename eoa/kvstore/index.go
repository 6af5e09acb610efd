package kvstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa"
)

// indexed returns accounts with an entry of an index in the range [from, to).
func (s *store) indexed(ctx context.Context, from, to []byte, limit int) (out []eoa.Account, err error) {
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
	err = s.kv.Scan(ctx, from, to, most, func(key, _ []byte) bool {
		if a, ok := parseIndexed(key); ok {
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
	// In a shared store, an entry may be outdated, so check each account.
	for _, a := range listed {
		is, err := s.tidy(ctx, a, entries[a])
		if errors.Is(err, eoa.ErrStoreRolledBack) {
			is, err = true, nil // the worker of this account reports it
		}
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

// tidy reports whether one of the account's entries in an index is valid. It deletes the
// entries that are not.
func (s *store) tidy(ctx context.Context, a eoa.Account, entries [][]byte) (is bool, err error) {
	st, err := s.begin(ctx, a, nil)
	if err != nil {
		return false, err
	}
	is = slices.ContainsFunc(entries, st.indexes)
	if len(entries) == 1 && is {
		return true, nil
	}
	// Two processes that change an account at the same time can leave an entry in the index
	// that is no longer right. It is deleted in a step of the account, so that no other
	// process can make the entry right again at the same moment.
	err = s.do(ctx, a, func(st *step) error {
		is = slices.ContainsFunc(entries, st.indexes)
		for _, entry := range entries {
			if !st.indexes(entry) {
				st.set(entry, nil)
			}
		}
		return nil
	})
	return is, err
}

// indexes reports whether an index entry of the account is valid.
func (st *step) indexes(entry []byte) bool {
	return st.m.Due != 0 && bytes.Equal(entry, dueKey(st.m.Due, &st.a)) ||
		st.m.Undelivered != 0 && bytes.Equal(entry, undeliveredKey(st.a, st.m.Undelivered))
}

// IndexEntries returns the index entries that an account must have, given the value
// of its key "meta". A KV that has lost the indexes can rebuild them from all
// accounts with this function. A malformed value gives no entries.
func IndexEntries(a eoa.Account, raw []byte) (entries [][]byte) {
	var m meta
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	if m.Due != 0 {
		entries = append(entries, dueKey(m.Due, &a))
	}
	if m.Undelivered != 0 {
		entries = append(entries, undeliveredKey(a, m.Undelivered))
	}
	return entries
}

// nanoseconds converts a time to Unix nanoseconds for the due index.
func nanoseconds(t time.Time) uint64 {
	first, last := time.Unix(0, 1), time.Unix(0, math.MaxInt64)
	// A time outside the range from 1 to 2^63-1 counts as the nearest time inside.
	switch {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	return uint64(t.UnixNano())
}

// dueAt sets the time from which the account is due; zero means never.
func (st *step) dueAt(at time.Time) {
	if st.m.Due != 0 {
		st.set(dueKey(st.m.Due, &st.a), nil)
	}
	st.m.Due = 0
	if !at.IsZero() {
		st.m.Due = nanoseconds(at)
		st.set(dueKey(st.m.Due, &st.a), []byte{1})
	}
}

// undelivered adds the account to the index of undelivered events, or removes it.
func (st *step) undelivered(has bool) {
	switch before := st.m.Undelivered; {
	case has && before == 0:
		// Each entry has a different name, with the number of the newest event. A slow process
		// that deletes an old entry of this account therefore cannot delete the new one.
		st.m.Undelivered = st.m.Seqs
		st.set(undeliveredKey(st.a, st.m.Seqs), []byte{1})
	case !has && before != 0:
		st.m.Undelivered = 0
		st.set(undeliveredKey(st.a, before), nil)
	}
}
