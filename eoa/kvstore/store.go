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
)

// KV is an ordered key-value store. It is safe for concurrent use.
type KV interface {
	// Get returns copies of the values of keys, nil for those that are not there.
	Get(ctx context.Context, keys ...[]byte) ([][]byte, error)
	// Scan calls f with keys from (included) to (not included) and their values, ascending, until f returns false, at most limit of them, which is positive.
	// f keeps neither.
	Scan(ctx context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error
	// Write writes all entries or none, and returns once they survive a crash. A nil value deletes.
	Write(ctx context.Context, entries []Entry) error
}

// Shared is a KV that several processes use at once.
type Shared interface {
	KV
	// WriteIf does what Write does if the guard's key has the guard's value, nil for not being there, and else nothing, with ErrChanged. All entries but
	// those of the index of what is due, see [DuePrefix], are of the guard's account.
	WriteIf(ctx context.Context, guard Entry, entries []Entry) error
}

// ErrChanged: the guard has another value.
var ErrChanged = errors.New("kvstore: changed meanwhile")

// Entry is a key and its new value.
type Entry struct{ Key, Value []byte }

// Store implements eoa.Store on a KV. Make one with New. One Store at a time uses a KV that is not Shared.
type Store struct {
	kv KV

	mu    sync.Mutex
	locks map[eoa.Account]*lock
}

var _ eoa.Store = (*Store)(nil)

// New returns the store in a KV.
func New(kv KV) *Store { return &Store{kv: kv, locks: map[eoa.Account]*lock{}} }

// lock is held by a step of an account.
type lock struct {
	sync.Mutex
	// meta of a shared store is as this process wrote it last, nil for not known. If somebody has written since, the step that relies on it changes nothing
	// and is tried again; then shy steps read first.
	meta []byte
	shy  int
}

const shyness = 16

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
	Steps [][]byte  `json:"steps,omitempty"` // names of the last steps of a shared store, oldest first: no two are equal
}

// step is one atomic step: what it read of meta, and what it writes.
type step struct {
	s    *Store
	ctx  context.Context
	a    eoa.Account
	m    meta
	name []byte // the same for each try
	raw  []byte // meta as it was read
	out  []Entry
}

const (
	// remembered is how many names of steps are kept. Others may have done more between a try and the next: then most calls are refused the second time, or find
	// that it is done.
	remembered = 4
	// rememberedOrders is how many names of orders are kept besides, because a second one would be another.
	rememberedOrders = 256
	nameSize         = 12
)

// do runs a step under the account's lock and writes what it wrote, and meta. A step of a shared store has a name: a try whose answer was lost, and which
// others' steps have followed, is known by it and not done twice.
func (s *Store) do(ctx context.Context, a eoa.Account, f func(*step) error) error {
	shared, isShared := s.kv.(Shared)
	name := make([]byte, nameSize)
	if _, err := rand.Read(name); err != nil {
		return err
	}
	return s.locked(ctx, a, func(l *lock) error {
		known := l.meta != nil
		st, err := s.begin(ctx, a, l.meta)
		if l.meta = nil; err != nil {
			return err
		}
		st.name = name
		if slices.ContainsFunc(st.m.Steps, func(n []byte) bool { return bytes.Equal(n, name) }) {
			return nil
		}
		if err := f(st); err != nil {
			if known {
				return ErrChanged // maybe not, but then it says so again
			}
			return err
		}
		if isShared {
			st.m.Steps = append(st.m.Steps[max(0, len(st.m.Steps)-remembered+1):], name)
		}
		if err := st.put(prefix(a, kindMeta), st.m); err != nil {
			return err
		}
		if !isShared {
			return s.kv.Write(ctx, st.out)
		}
		err = shared.WriteIf(ctx, Entry{prefix(a, kindMeta), st.raw}, st.out)
		if l.shy = max(0, l.shy-1); known && errors.Is(err, ErrChanged) {
			l.shy = shyness
		}
		if err == nil && l.shy == 0 {
			l.meta = st.out[len(st.out)-1].Value
		}
		return err
	})
}

// read runs a step that writes nothing. What it read was there at one moment.
func (s *Store) read(ctx context.Context, a eoa.Account, f func(*step) error) error {
	return s.locked(ctx, a, func(*lock) error {
		st, err := s.begin(ctx, a, nil)
		if err == nil {
			err = f(st)
		}
		if _, shared := s.kv.(Shared); !shared || err != nil {
			return err
		}
		now, err := s.kv.Get(ctx, prefix(a, kindMeta))
		if err == nil && !bytes.Equal(now[0], st.raw) {
			err = ErrChanged
		}
		return err
	})
}

// tries is how often a step is tried that others of a shared store get in the way of; the wait between them grows to patience.
const (
	tries    = 200
	patience = 5 * time.Millisecond
)

// locked runs f under the account's lock, again if another process was faster.
func (s *Store) locked(ctx context.Context, a eoa.Account, f func(*lock) error) error {
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
		time.Sleep(mrand.N(min(time.Duration(try)*100*time.Microsecond, patience)))
	}
}

// begin reads an account's meta, if it is not known.
func (s *Store) begin(ctx context.Context, a eoa.Account, raw []byte) (_ *step, err error) {
	if raw == nil {
		raw, err = s.one(ctx, prefix(a, kindMeta))
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

// one returns the value of a key, or nil.
func (s *Store) one(ctx context.Context, key []byte) ([]byte, error) {
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

// write stores a record and those of its marks that the state may have changed, without a look at what was before: states follow each other as
// [eoa.State.CanBecome] says, so what is Broadcast or later was marked as open, and its attempts were indexed, when they were Prepared. A record's rank never
// changes.
func (st *step) write(r *eoa.Record) {
	raw := eoa.EncodeRecord(r)
	st.set(numbered(st.a, kindRecord, r.ID), raw)
	if !r.Open() || r.State == eoa.Prepared {
		st.mark(ranked(st.a, eoa.RankOf(&r.Request, r.ID)), r.State == eoa.Pending, waiting(len(r.Blobs), len(raw)))
		st.mark(numbered(st.a, kindOpen, r.ID), r.Open(), []byte{1})
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.SentAt.IsZero() { // else it was there before
			st.set(named(st.a, kindHash, a.Hash[:]), binary.BigEndian.AppendUint64(nil, r.ID))
		}
	}
}

// mark sets a key or takes it away.
func (st *step) mark(key []byte, there bool, value []byte) {
	if !there {
		value = nil
	}
	st.set(key, value)
}

// waiting is the mark of a request without a nonce: how many blobs it has, and the size of its record.
func waiting(blobs, size int) []byte { return binary.AppendUvarint([]byte{byte(blobs)}, uint64(size)) }

// waits is the inverse of waiting.
func waits(mark []byte) (blobs, size int) {
	if len(mark) == 0 {
		return 0, 0
	}
	n, _ := binary.Uvarint(mark[1:])
	return int(mark[0]), int(n)
}

// Order implements eoa.Store.
func (s *Store) Order(ctx context.Context, a eoa.Account, now time.Time, o eoa.Order) error {
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

var errDone = errors.New("kvstore: an earlier try was carried out")

// once remembers the step's name among those of orders, or reports that it is there.
func (st *step) once() error {
	key := prefix(st.a, kindOrdered)
	names, err := st.s.one(st.ctx, key)
	if err != nil {
		return err
	}
	for name := range slices.Chunk(names, nameSize) {
		if bytes.Equal(name, st.name) {
			return errDone
		}
	}
	st.set(key, append(names[max(0, len(names)-(rememberedOrders-1)*nameSize):], st.name...))
	return nil
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
		st.write(&b.Records[i])
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

// records returns the records with ids, in one read.
func (s *Store) records(ctx context.Context, a eoa.Account, ids []uint64) ([]eoa.Record, error) {
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

// by returns the record that an index leads to.
func (s *Store) by(ctx context.Context, a eoa.Account, key []byte, what string) (eoa.Record, error) {
	if err := ctx.Err(); err != nil {
		return eoa.Record{}, err
	}
	raw, err := s.one(ctx, key)
	if err != nil {
		return eoa.Record{}, err
	}
	if len(raw) != 8 {
		return eoa.Record{}, fmt.Errorf("%w: %s of %v", eoa.ErrUnknownRequest, what, a)
	}
	out, err := s.records(ctx, a, []uint64{binary.BigEndian.Uint64(raw)})
	if err != nil {
		return eoa.Record{}, err
	}
	return out[0], nil
}

// Get implements eoa.Store.
func (s *Store) Get(ctx context.Context, a eoa.Account, key string) (eoa.Record, error) {
	return s.by(ctx, a, named(a, kindKey, []byte(key)), fmt.Sprintf("key %q", key))
}

// ByHash implements eoa.Store.
func (s *Store) ByHash(ctx context.Context, a eoa.Account, tx common.Hash) (eoa.Record, error) {
	return s.by(ctx, a, named(a, kindHash, tx[:]), tx.Hex())
}
