package kvstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/internal/account"
)

// KV is an ordered key-value store. It is all that a host must provide to get an
// [eoa.Store]. It must be safe for concurrent use.
type KV interface {
	// Get returns copies of the values of keys, in the same order. The value of a missing key
	// is nil.
	Get(ctx context.Context, keys ...[]byte) ([][]byte, error)
	// Scan calls f with the keys in [from, to) and their values, in ascending
	// order. It ends when f returns false or after limit keys; limit is positive. f
	// does not keep its arguments.
	Scan(ctx context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error
	// Write writes all entries or none, and returns when they are durable. A
	// nil value deletes the key.
	Write(ctx context.Context, entries []Entry) error
}

// Shared is a KV that several processes use at the same time.
type Shared interface {
	KV
	// WriteIf writes like Write if the value of guard.Key is still guard.Value,
	// where nil means that the key is missing. Otherwise it writes nothing and
	// returns ErrChanged. All entries belong to the guard's account, except index
	// entries; see [Indexed].
	WriteIf(ctx context.Context, guard Entry, entries []Entry) error
}

// Clocked is a KV with its own clock, which then decides when leases begin and end.
// A worker whose clock is wrong therefore cannot hold an account for too long. For
// a KV without a clock, the times that callers pass decide.
type Clocked interface {
	// Now returns the time on the server that keeps the account.
	Now(ctx context.Context, a eoa.Account) (time.Time, error)
}

// Lossy is a KV that may lose writes after it has acknowledged them. The accounts
// in it are treated as exclusive; see [eoa.Rules.Exclusive].
type Lossy interface {
	// MayLose reports whether acknowledged writes can be lost.
	MayLose() bool
}

// ErrChanged is returned by [Shared.WriteIf] if the value of the guard has changed.
var ErrChanged = errors.New("kvstore: account was changed by another process")

// Entry is a key with its value.
type Entry struct {
	// Key is the key.
	Key []byte
	// Value is the value; nil deletes the key.
	Value []byte
}

// store implements eoa.Store on top of a KV.
type store struct {
	kv KV

	mu    sync.Mutex
	locks map[eoa.Account]*lock
}

var _ eoa.Store = (*store)(nil)

// New returns a store on a KV. If the KV is not Shared, only one store may use it at a time.
// All methods of the store are safe for concurrent use.
func New(kv KV) eoa.Store { return &store{kv: kv, locks: map[eoa.Account]*lock{}} }

// lock is held by this process during a step of an account.
type lock struct {
	sync.Mutex
	// meta is the value of the account's key "meta" as this process last wrote it, which saves
	// a read; nil means unknown. If another process has changed the key since, WriteIf fails,
	// and the step is tried again with the stored value.
	meta []byte
	// readFirst is how many of the next steps read meta from the store, because
	// other processes are writing to the account now.
	readFirst int
}

// afterConflict is the value of lock.readFirst after another process made a write
// fail.
const afterConflict = 16

// meta is the part of an account that every step checks and changes.
type meta struct {
	Head  account.Head `json:"head"`
	Wake  uint64       `json:"wake,omitempty"`
	Epoch uint64       `json:"epoch,omitempty"` // epoch of the last lease
	Owner string       `json:"owner,omitempty"` // empty: no lease
	Until time.Time    `json:"until,omitzero"`
	Due   uint64       `json:"due,omitempty"` // time of the entry in the due index; 0: none
	IDs   uint64       `json:"ids,omitempty"` // id of the last record
	Seqs  uint64       `json:"seqs,omitempty"`
	Order uint64       `json:"order,omitempty"`
	// Undelivered is a number that names the account's entry in the index of accounts with
	// unacknowledged events. 0 means that the account has no entry.
	Undelivered uint64 `json:"undelivered,omitempty"`
	// Steps has the random names of the last steps of the account, oldest first, if several
	// processes share the store. If the answer to a write was lost, the name of the step shows
	// whether it was written; see do.
	Steps [][]byte `json:"steps,omitempty"`
}

// step is one atomic change of an account: the meta value that was read before,
// and the entries to write.
type step struct {
	s    *store
	ctx  context.Context
	a    eoa.Account
	m    meta
	name []byte // random; the same for all tries of the step
	raw  []byte // meta as read
	out  []Entry
}

const (
	// remembered is how many of the last steps of an account are stored by name. If the answer
	// to a write is lost, the step is tried again, and its name shows whether the first try
	// was written. If more steps than this came in between, the name is gone; most methods
	// then fail, or find that their work is already done.
	remembered = 4
	// rememberedOrders is how many of the last steps that stored a user's order are remembered
	// by name. It is larger than remembered, because an order that is stored twice would be
	// carried out twice.
	rememberedOrders = 256
	nameSize         = 12
)

// do runs a step under the account's lock, and writes its entries and meta.
func (s *store) do(ctx context.Context, a eoa.Account, f func(*step) error) error {
	shared, isShared := s.kv.(Shared)
	name := make([]byte, nameSize)
	_, _ = rand.Read(name) // never fails
	return s.locked(ctx, a, func(l *lock) error {
		known := l.meta != nil
		st, err := s.begin(ctx, a, l.meta)
		if l.meta = nil; err != nil {
			return err
		}
		st.name = name
		// An earlier try of this step was written, but its answer was lost.
		if slices.ContainsFunc(st.m.Steps, func(n []byte) bool { return bytes.Equal(n, name) }) {
			return nil
		}
		if err := f(st); err != nil {
			if known {
				return ErrChanged // retry with fresh meta
			}
			return err
		}
		// The name of the step is stored with it. If the answer of the database is lost, the
		// next try finds the name and knows that the step was written.
		if isShared {
			st.m.Steps = append(st.m.Steps[max(0, len(st.m.Steps)-remembered+1):], name)
		}
		if err := st.put(single(a, kindMeta), st.m); err != nil {
			return err
		}
		if !isShared {
			return s.kv.Write(ctx, st.out)
		}
		err = shared.WriteIf(ctx, Entry{single(a, kindMeta), st.raw}, st.out)
		if l.readFirst = max(0, l.readFirst-1); known && errors.Is(err, ErrChanged) {
			l.readFirst = afterConflict
		}
		if err == nil && l.readFirst == 0 {
			l.meta = st.out[len(st.out)-1].Value
		}
		return err
	})
}

// read runs a step that writes nothing.
func (s *store) read(ctx context.Context, a eoa.Account, f func(*step) error) error {
	return s.locked(ctx, a, func(*lock) error {
		st, err := s.begin(ctx, a, nil)
		if err == nil {
			err = f(st)
		}
		if _, shared := s.kv.(Shared); !shared || err != nil {
			return err
		}
		// A step may read several keys one after the other. If meta is still the same
		// afterwards, no other process has written in between, so the values belong together.
		now, err := s.kv.Get(ctx, single(a, kindMeta))
		if err == nil && !bytes.Equal(now[0], st.raw) {
			err = ErrChanged
		}
		return err
	})
}

const (
	// tries is how often a step is tried if other processes keep changing the account.
	tries = 200
	// maxWait limits the wait between tries.
	maxWait = 5 * time.Millisecond
)

// locked runs f under the account's lock, and again if f returns ErrChanged.
func (s *store) locked(ctx context.Context, a eoa.Account, f func(*lock) error) error {
	s.mu.Lock()
	l := s.locks[a]
	if l == nil {
		l = new(lock)
		s.locks[a] = l
	}
	s.mu.Unlock()
	l.Lock()
	defer l.Unlock()
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := f(l)
		if !errors.Is(err, ErrChanged) || try == tries {
			return err
		}
		// Another process has changed the account, so wait for a short time.
		time.Sleep(mrand.N(min(time.Duration(try)*100*time.Microsecond, maxWait)))
	}
}

// begin starts a step, an atomic change of an account. raw is the stored value of the
// account's key "meta"; if raw is nil, begin reads that value from the store.
func (s *store) begin(ctx context.Context, a eoa.Account, raw []byte) (_ *step, err error) {
	if raw == nil {
		raw, err = s.one(ctx, single(a, kindMeta))
	}
	st := &step{s: s, ctx: ctx, a: a, raw: raw}
	if err != nil || raw == nil {
		return st, err
	}
	if err := json.Unmarshal(raw, &st.m); err != nil {
		return nil, fmt.Errorf("%w: meta of %v: %w", eoa.ErrMalformed, a, err)
	}
	return st, nil
}

// one returns the value of a key, or nil if it is missing.
func (s *store) one(ctx context.Context, key []byte) ([]byte, error) {
	values, err := s.kv.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

func (st *step) set(key, value []byte) { st.out = append(st.out, Entry{key, value}) }

func (st *step) put(key []byte, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		st.set(key, raw)
	}
	return err
}

// woken increments the wake version, so that the worker notices new work.
func (st *step) woken(now time.Time) {
	st.m.Wake++
	// An account without a worker becomes due at once.
	if st.m.Owner == "" {
		st.dueAt(now)
	}
}

// write stores a record and updates its index entries.
func (st *step) write(r *eoa.Record) {
	raw := eoa.EncodeRecord(r)
	st.set(numbered(st.a, kindRecord, r.ID), raw)
	// These two indexes change only when a record becomes Pending or Prepared, or when it
	// ends: a record is Prepared before it gets a later state, and its priority never changes.
	if !r.Open() || r.State == eoa.Prepared {
		st.mark(ranked(st.a, r), r.State == eoa.Pending, binary.AppendUvarint(nil, uint64(len(raw))))
		st.mark(numbered(st.a, kindOpen, r.ID), r.Open(), []byte{1})
	}
	for i := range r.Attempts {
		// An attempt with SentAt is already in the index.
		if a := &r.Attempts[i]; a.SentAt.IsZero() {
			st.set(hashed(st.a, kindHash, a.Hash), binary.BigEndian.AppendUint64(nil, r.ID))
		}
	}
}

// mark sets a key to value if there is true, and otherwise deletes it.
func (st *step) mark(key []byte, there bool, value []byte) {
	if !there {
		value = nil
	}
	st.set(key, value)
}

// Order implements eoa.Store.
func (s *store) Order(ctx context.Context, a eoa.Account, now time.Time, o eoa.Order) error {
	err := s.do(ctx, a, func(st *step) error {
		if err := st.once(); err != nil {
			return err
		}
		st.m.Order++
		o.Seq = st.m.Order
		st.woken(now)
		return st.put(numbered(a, kindOrder, o.Seq), o)
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

var errDone = errors.New("kvstore: an earlier try has succeeded")

// once makes sure that an order is stored only once.
func (st *step) once() error {
	key := single(st.a, kindOrdered)
	names, err := st.s.one(st.ctx, key)
	if err != nil {
		return err
	}
	for name := range slices.Chunk(names, nameSize) {
		// An earlier try of this step has stored the order.
		if bytes.Equal(name, st.name) {
			return errDone
		}
	}
	st.set(key, append(names[max(0, len(names)-(rememberedOrders-1)*nameSize):], st.name...))
	return nil
}

// Commit implements eoa.Store.
func (s *store) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (wake uint64, err error) {
	err = s.do(ctx, l.Account, func(st *step) error {
		if err := st.fenced(l); err != nil {
			return err
		}
		if st.m.Head.Version != b.Head.Version {
			return fmt.Errorf("%w: version is %d, want %d", eoa.ErrConflict, st.m.Head.Version, b.Head.Version)
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

// change writes everything in a batch except its head.
func (st *step) change(now time.Time, b *eoa.Batch) error {
	for i := range b.Records {
		st.write(&b.Records[i])
	}
	for _, e := range b.Events {
		st.m.Seqs++
		e.Seq = st.m.Seqs
		if err := st.put(numbered(st.a, kindEvent, e.Seq), e); err != nil {
			return err
		}
	}
	if len(b.Events) > 0 {
		st.undelivered(true)
	}
	for _, seq := range b.Done {
		st.set(numbered(st.a, kindOrder, seq), nil)
	}
	if err := st.drop(b.Drop); err != nil {
		return err
	}
	_, accepted, err := st.accept(now, b.Add, true)
	if accepted {
		st.m.Wake++
	}
	return err
}

// records returns the records with the given ids, in one read.
func (s *store) records(ctx context.Context, a eoa.Account, ids []uint64) ([]eoa.Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = numbered(a, kindRecord, id)
	}
	values, err := s.kv.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := make([]eoa.Record, len(ids))
	for i, raw := range values {
		if raw == nil {
			return nil, fmt.Errorf("%w: id %d of %v", eoa.ErrUnknownRequest, ids[i], a)
		}
		if out[i], err = eoa.DecodeRecord(raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// by returns the record whose id is stored under a key of an index.
func (s *store) by(ctx context.Context, a eoa.Account, key []byte, what string) (eoa.Record, error) {
	for last := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return eoa.Record{}, err
		}
		raw, err := s.one(ctx, key)
		if err != nil {
			return eoa.Record{}, err
		}
		if r, _, dropped := parseDropped(raw); dropped {
			return r, nil
		}
		if len(raw) != 8 {
			return eoa.Record{}, fmt.Errorf("%w: %s of %v", eoa.ErrUnknownRequest, what, a)
		}
		out, err := s.records(ctx, a, []uint64{binary.BigEndian.Uint64(raw)})
		if err == nil {
			return out[0], nil
		}
		// The record was deleted between the two reads. Its key now has what is left of it, so
		// read the key again.
		if !errors.Is(err, eoa.ErrUnknownRequest) || bytes.Equal(raw, last) {
			return eoa.Record{}, err
		}
		last = raw
	}
}

// Get implements eoa.Store.
func (s *store) Get(ctx context.Context, a eoa.Account, key string) (eoa.Record, error) {
	r, err := s.by(ctx, a, named(a, kindKey, key), fmt.Sprintf("key %q", key))
	if err == nil {
		r.Key = key
	}
	return r, err
}

// ByHash implements eoa.Store.
func (s *store) ByHash(ctx context.Context, a eoa.Account, tx common.Hash) (eoa.Record, error) {
	return s.by(ctx, a, hashed(a, kindHash, tx), tx.Hex())
}
