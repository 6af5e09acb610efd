package pebbleeoa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/cockroachdb/pebble"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/pebble/pebbledb"
)

// Options configures [Open]. The zero value is valid.
type Options struct {
	// DB is a database of the host, which Close does not close. Nil means that Open opens a
	// database in its directory.
	DB *pebble.DB
	// Check is called after each access to DB, unless it is nil. If it returns an
	// error, the access fails with that error. A host that hides disk failures from
	// Pebble must set Check; without it, a disk failure under DB ends the process.
	// Check is ignored if DB is nil.
	Check func() error
	// Prefix is the prefix of all keys of the store, so that the same database can
	// contain other data. No other prefix in the database may begin with it.
	Prefix []byte
	// Pebble configures the database that Open opens if DB is nil. Nil means Pebble's defaults
	// without logging. If the disk fails, the store returns errors that wrap ErrDisk.
	Pebble *pebble.Options
}

// ErrDisk is wrapped by errors after the disk under the database has failed, for
// example because the disk is full. The cause is wrapped too. After the next Open,
// the database contains either the whole step that failed or nothing of it.
//
// Until then, reads fail as well, because the contents of memory may not be on the
// disk. When the disk works again, the host closes the store and opens it again.
// The store then continues with everything that was accepted.
var ErrDisk = pebbledb.ErrDisk

// ErrClosed is wrapped by the errors of all methods after Close.
var ErrClosed = errors.New("pebbleeoa: store is closed")

// Store is an [eoa.Store] in a Pebble database. All methods are safe for
// concurrent use.
type Store struct {
	eoa.Store
	kv *kv
}

// Open opens the store in dir, or in Options.DB if that is set, and creates it if
// necessary. Errors come from Pebble.
//
// Only one process can have the database open. If Open finds a lease, the process
// that held it must have died, so Open ends the lease and no executor has to wait
// for it. A store must not be opened twice in one process.
func Open(dir string, options Options) (*Store, error) {
	db := pebbledb.Borrow(options.DB, options.Check)
	if options.DB == nil {
		var err error
		if db, err = pebbledb.Open(dir, options.Pebble); err != nil {
			return nil, fmt.Errorf("pebbleeoa: %w", err)
		}
	}
	k := &kv{db: db, prefix: bytes.Clone(options.Prefix)}
	s := &Store{kvstore.New(k), k}
	if err := s.breakLeases(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("pebbleeoa: %w", err), s.Close())
	}
	return s, nil
}

// breakLeases ends all leases.
func (s *Store) breakLeases(ctx context.Context) error {
	// Due returns all accounts with a lease, because they are due when the lease
	// ends.
	all, err := s.Due(ctx, time.Unix(0, math.MaxInt64), math.MaxInt)
	for _, a := range all {
		if err == nil {
			err = s.Break(ctx, a)
		}
	}
	return err
}

// Close waits for running calls, and closes the database if Open opened it. The error wraps ErrDisk
// if the disk has failed, or ErrClosed if the store is already closed.
func (s *Store) Close() error {
	s.kv.using.Lock()
	defer s.kv.using.Unlock()
	if s.kv.closed {
		return ErrClosed
	}
	s.kv.closed = true
	return s.kv.db.Close()
}

// kv implements kvstore.KV on a database, with a prefix for all keys.
type kv struct {
	db     *pebbledb.DB
	prefix []byte

	using  sync.RWMutex // read-locked during each call
	closed bool
}

// use begins a call, and returns ErrClosed after Close.
func (k *kv) use() (done func(), err error) {
	k.using.RLock()
	if k.closed { // Pebble would panic
		k.using.RUnlock()
		return nil, ErrClosed
	}
	return k.using.RUnlock, nil
}

func (k *kv) key(key []byte) []byte { return append(bytes.Clone(k.prefix), key...) }

// Get implements kvstore.KV.
func (k *kv) Get(_ context.Context, keys ...[]byte) ([][]byte, error) {
	done, err := k.use()
	if err != nil {
		return nil, err
	}
	defer done()
	out := make([][]byte, len(keys))
	for i, key := range keys {
		value, closer, err := k.db.Pebble().Get(k.key(key))
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err == nil {
			out[i] = append([]byte{}, value...)
			err = closer.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("pebbleeoa: %w", err)
		}
	}
	if err := k.db.Err(); err != nil {
		return nil, fmt.Errorf("pebbleeoa: %w", err)
	}
	return out, nil
}

// Scan implements kvstore.KV.
func (k *kv) Scan(_ context.Context, from, to []byte, limit int, f func(key, value []byte) bool) (err error) {
	done, err := k.use()
	if err != nil {
		return err
	}
	defer done()
	it, err := k.db.Pebble().NewIter(&pebble.IterOptions{LowerBound: k.key(from), UpperBound: k.key(to)})
	if err != nil {
		return fmt.Errorf("pebbleeoa: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close(), k.db.Err()) }()
	for ok := it.First(); ok && limit > 0; ok = it.Next() {
		limit--
		if !f(it.Key()[len(k.prefix):], it.Value()) {
			break
		}
	}
	return it.Error()
}

// Write implements kvstore.KV.
func (k *kv) Write(_ context.Context, entries []kvstore.Entry) error {
	done, err := k.use()
	if err != nil {
		return err
	}
	defer done()
	batch := k.db.Pebble().NewBatch()
	for _, e := range entries {
		if e.Value == nil {
			err = errors.Join(err, batch.Delete(k.key(e.Key), nil))
		} else {
			err = errors.Join(err, batch.Set(k.key(e.Key), e.Value, nil))
		}
	}
	if err == nil {
		err = k.db.Commit(batch)
	}
	if err = errors.Join(err, batch.Close()); err != nil {
		return fmt.Errorf("pebbleeoa: %w", err)
	}
	return nil
}
