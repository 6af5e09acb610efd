package kvstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// KV is an ordered key-value store. It is safe for concurrent use.
type KV interface {
	// Get returns a copy of the value of a key, or nil.
	Get(key []byte) ([]byte, error)
	// Scan calls f with keys from (included) to (not included) and their values, ascending, until f returns false. f keeps neither.
	Scan(from, to []byte, f func(key, value []byte) bool) error
	// Write writes all entries or none, and returns once they survive a crash. A nil value deletes.
	Write(entries []Entry) error
}

// Entry is a key and its new value.
type Entry struct{ Key, Value []byte }

// Store implements eoa.Store on a KV. Make one with New; one process, and one Store, at a time uses a KV.
type Store struct {
	kv KV

	mu    sync.Mutex
	locks map[eoa.Account]*sync.Mutex
}

var _ eoa.Store = (*Store)(nil)

// New returns the store in a KV.
func New(kv KV) *Store { return &Store{kv: kv, locks: map[eoa.Account]*sync.Mutex{}} }

// meta is what steps of an account check and change.
type meta struct {
	Head  eoa.Head  `json:"head"`
	Wake  uint64    `json:"wake,omitempty"`
	Epoch uint64    `json:"epoch,omitempty"` // of the last lease
	Owner string    `json:"owner,omitempty"` // empty: nobody holds it
	Until time.Time `json:"until,omitzero"`
	Due   uint64    `json:"due,omitempty"` // the entry in the index, 0 for none
	IDs   uint64    `json:"ids,omitempty"` // the last ones given
	Seqs  uint64    `json:"seqs,omitempty"`
	Order uint64    `json:"order,omitempty"`
}

// step is one atomic step: what it read of meta, and what it writes.
type step struct {
	s   *Store
	a   eoa.Account
	m   meta
	out []Entry
}

// do runs a step under the account's lock and writes what it wrote, and meta.
func (s *Store) do(ctx context.Context, a eoa.Account, f func(*step) error) error {
	return s.read(ctx, a, func(st *step) error {
		if err := f(st); err != nil {
			return err
		}
		if err := st.put(prefix(a, kindMeta), st.m); err != nil {
			return err
		}
		return s.kv.Write(st.out)
	})
}

// read runs a step that writes nothing.
func (s *Store) read(ctx context.Context, a eoa.Account, f func(*step) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	lock := s.locks[a]
	if lock == nil {
		lock = new(sync.Mutex)
		s.locks[a] = lock
	}
	s.mu.Unlock()
	lock.Lock()
	defer lock.Unlock()
	m, err := s.meta(a)
	if err != nil {
		return err
	}
	return f(&step{s: s, a: a, m: m})
}

func (s *Store) meta(a eoa.Account) (m meta, err error) {
	raw, err := s.kv.Get(prefix(a, kindMeta))
	if err != nil || raw == nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: meta of %v: %w", eoa.ErrMalformed, a, err)
	}
	return m, nil
}

func (st *step) set(key, value []byte) { st.out = append(st.out, Entry{key, value}) }

func (st *step) put(key []byte, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		st.set(key, raw)
	}
	return err
}

// dueAt moves the account in the index of what is due; the zero time takes it out.
func (st *step) dueAt(at time.Time) {
	if st.m.Due != 0 {
		st.set(dueKey(st.m.Due, &st.a), nil)
	}
	st.m.Due = 0
	if !at.IsZero() {
		st.m.Due = uint64(max(at.UnixNano(), 1))
		st.set(dueKey(st.m.Due, &st.a), []byte{1})
	}
}

// woken counts a wake-up. The account is due at once if nobody holds it, and else as it was: when the lease ends.
func (st *step) woken(now time.Time) {
	st.m.Wake++
	if st.m.Owner == "" {
		st.dueAt(now)
	}
}

// fenced checks that the lease is the account's.
func (st *step) fenced(l eoa.Lease) error {
	if st.m.Owner == "" || st.m.Owner != l.Owner || st.m.Epoch != l.Epoch {
		return fmt.Errorf("%w: %v is at epoch %d of %q, not %d of %q", eoa.ErrFenced, st.a, st.m.Epoch, st.m.Owner, l.Epoch, l.Owner)
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
		st.dueAt(st.m.Until) // if the owner dies
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
			return fmt.Errorf("%w: wake version %d, not %d", eoa.ErrWoken, st.m.Wake, wake)
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
	err = s.kv.Scan(dueKey(0, nil), dueKey(uint64(max(now.UnixNano(), 0))+1, nil), func(key, _ []byte) bool {
		if a, ok := parseDue(key); ok {
			out = append(out, a)
		}
		return len(out) < limit
	})
	return out, err
}

// Submit implements eoa.Store.
func (s *Store) Submit(ctx context.Context, a eoa.Account, now time.Time, requests ...eoa.Request) (out []eoa.Record, err error) {
	err = s.do(ctx, a, func(st *step) error {
		var accepted bool
		out, accepted, err = st.accept(now, requests, false)
		if accepted {
			st.woken(now)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// accept adds requests that are not there. What is there must be equal, or is left as it is if lenient.
func (st *step) accept(now time.Time, requests []eoa.Request, lenient bool) (out []eoa.Record, accepted bool, err error) {
	batch := map[string]eoa.Record{}
	for i := range requests {
		q := &requests[i]
		digest := q.Digest()
		r, there := batch[q.Key]
		if there {
			if first := r.Request; first.Digest() != digest {
				return nil, false, fmt.Errorf("%w: %q twice in one call", eoa.ErrKeyReused, q.Key)
			}
		} else if r, there, err = st.find(q.Key, digest[:], lenient); err != nil {
			return nil, false, err
		}
		if !there {
			st.m.IDs++
			r = eoa.Record{Request: *q, ID: st.m.IDs, QueuedAt: now}
			if err := st.write(&r, nil); err != nil {
				return nil, false, err
			}
			st.set(named(st.a, kindKey, []byte(q.Key)), binary.BigEndian.AppendUint64(nil, r.ID))
			st.set(numbered(st.a, kindDigest, r.ID), digest[:])
			accepted = true
		}
		batch[q.Key] = r
		out = append(out, r)
	}
	return out, accepted, nil
}

// find returns the record with a key, if there is one. It must have been accepted with the digest, unless lenient.
func (st *step) find(key string, digest []byte, lenient bool) (r eoa.Record, there bool, err error) {
	r, err = st.s.Get(context.Background(), st.a, key)
	if errors.Is(err, eoa.ErrUnknownRequest) {
		return r, false, nil
	}
	if err != nil || lenient {
		return r, err == nil, err
	}
	accepted, err := st.s.kv.Get(numbered(st.a, kindDigest, r.ID))
	if err == nil && string(accepted) != string(digest) {
		err = fmt.Errorf("%w: %q is record %d with another payload", eoa.ErrKeyReused, key, r.ID)
	}
	return r, err == nil, err
}

// write stores a record and its marks. old is the one before, nil for none.
func (st *step) write(r, old *eoa.Record) error {
	raw, err := eoa.EncodeRecord(r)
	if err != nil {
		return err
	}
	st.set(numbered(st.a, kindRecord, r.ID), raw)
	known := 0
	if old != nil {
		known = len(old.Attempts)
		if old.State == eoa.Pending {
			st.set(ranked(st.a, eoa.RankOf(&old.Request, old.ID)), nil)
		}
	}
	if r.State == eoa.Pending {
		st.set(ranked(st.a, eoa.RankOf(&r.Request, r.ID)), []byte{1})
	}
	open := numbered(st.a, kindOpen, r.ID)
	switch was := old != nil && old.Open(); {
	case r.Open() && !was:
		st.set(open, []byte{1})
	case !r.Open() && was:
		st.set(open, nil)
	}
	for _, a := range r.Attempts[min(known, len(r.Attempts)):] {
		st.set(named(st.a, kindHash, a.Hash[:]), binary.BigEndian.AppendUint64(nil, r.ID))
	}
	return nil
}

// Order implements eoa.Store.
func (s *Store) Order(ctx context.Context, a eoa.Account, now time.Time, o eoa.Order) error {
	return s.do(ctx, a, func(st *step) error {
		st.m.Order++
		o.Seq = st.m.Order
		st.woken(now)
		return st.put(numbered(a, kindOrder, o.Seq), o)
	})
}

// Commit implements eoa.Store.
func (s *Store) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (wake uint64, err error) {
	err = s.do(ctx, l.Account, func(st *step) error {
		if err := st.fenced(l); err != nil {
			return err
		}
		if st.m.Head.Version != b.Head.Version {
			return fmt.Errorf("%w: version %d, not %d", eoa.ErrConflict, st.m.Head.Version, b.Head.Version)
		}
		st.m.Head = b.Head
		st.m.Head.Version++
		if err := st.change(now, &b); err != nil {
			return err
		}
		wake = st.m.Wake
		return nil
	})
	return wake, err
}

// change writes what a batch says besides the head.
func (st *step) change(now time.Time, b *eoa.Batch) error {
	for i := range b.Records {
		old, err := st.s.record(st.a, b.Records[i].ID)
		if err != nil {
			return err
		}
		if err := st.write(&b.Records[i], &old); err != nil {
			return err
		}
	}
	for _, e := range b.Events {
		st.m.Seqs++
		e.Seq = st.m.Seqs
		if err := st.put(numbered(st.a, kindEvent, e.Seq), e); err != nil {
			return err
		}
	}
	for _, seq := range b.Done {
		st.set(numbered(st.a, kindOrder, seq), nil)
	}
	_, accepted, err := st.accept(now, b.Add, true)
	if accepted {
		st.m.Wake++
	}
	return err
}

// record returns the record with an id.
func (s *Store) record(a eoa.Account, id uint64) (eoa.Record, error) {
	raw, err := s.kv.Get(numbered(a, kindRecord, id))
	if err != nil {
		return eoa.Record{}, err
	}
	if raw == nil {
		return eoa.Record{}, fmt.Errorf("%w: id %d of %v", eoa.ErrUnknownRequest, id, a)
	}
	return eoa.DecodeRecord(raw)
}

// by returns the record that an index leads to.
func (s *Store) by(a eoa.Account, key []byte, what string) (eoa.Record, error) {
	raw, err := s.kv.Get(key)
	if err != nil {
		return eoa.Record{}, err
	}
	if len(raw) != 8 {
		return eoa.Record{}, fmt.Errorf("%w: %s of %v", eoa.ErrUnknownRequest, what, a)
	}
	return s.record(a, binary.BigEndian.Uint64(raw))
}

// Get implements eoa.Store.
func (s *Store) Get(ctx context.Context, a eoa.Account, key string) (eoa.Record, error) {
	if err := ctx.Err(); err != nil {
		return eoa.Record{}, err
	}
	return s.by(a, named(a, kindKey, []byte(key)), fmt.Sprintf("key %q", key))
}

// ByHash implements eoa.Store.
func (s *Store) ByHash(ctx context.Context, a eoa.Account, tx common.Hash) (eoa.Record, error) {
	if err := ctx.Err(); err != nil {
		return eoa.Record{}, err
	}
	return s.by(a, named(a, kindHash, tx[:]), tx.Hex())
}
