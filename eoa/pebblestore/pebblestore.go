package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"

	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/internal/pebbledb"
)

// Options says how to use the database.
type Options struct {
	// DB is a database of the host's, which Close leaves open; nil means one of the store's own in Open's directory.
	DB *pebble.DB
	// Check, if not nil, is called after each access to DB. If it returns an
	// error, the access fails with it. It is for a host that keeps failures of
	// its disk from Pebble. If Check is nil, a disk that fails under DB ends
	// the process. It is not used for a database of the store's own.
	Check func() error
	// Prefix is before all keys, so that other data can share a database. No other prefix may begin with it.
	Prefix []byte
	// Pebble configures a database of the store's own; nil means Pebble's
	// defaults, and its log discarded. If its disk fails, the store returns
	// errors that wrap ErrDisk.
	Pebble *pebble.Options
}

// ErrDisk is wrapped by errors after the disk under the database has failed, for
// example because it was full. The cause is wrapped too. The step that failed is
// there after the next Open as a whole or not at all. Until then the store also
// refuses to read: what it has in memory may not be on the disk. Once the disk
// works again, Close and Open continue with what was accepted.
var ErrDisk = pebbledb.ErrDisk

// Store is an eoa.Store. Its methods are safe for concurrent use, except Close, before which all others must have returned.
type Store struct {
	*kvstore.Store
	db *pebbledb.DB
}

// Open opens the store in a directory, or in Options.DB, or makes an empty one. Errors are Pebble's.
func Open(dir string, options Options) (*Store, error) {
	db := pebbledb.Borrow(options.DB, options.Check)
	if options.DB == nil {
		var err error
		if db, err = pebbledb.Open(dir, options.Pebble); err != nil {
			return nil, fmt.Errorf("pebblestore: %w", err)
		}
	}
	return &Store{kvstore.New(&kv{db, bytes.Clone(options.Prefix)}), db}, nil
}

// Close closes a database of the store's own. The error wraps ErrDisk if its
// disk has failed.
func (s *Store) Close() error { return s.db.Close() }

// kv implements kvstore.KV below a prefix.
type kv struct {
	db     *pebbledb.DB
	prefix []byte
}

func (k *kv) key(key []byte) []byte { return append(bytes.Clone(k.prefix), key...) }

// Get implements kvstore.KV.
func (k *kv) Get(_ context.Context, keys ...[]byte) ([][]byte, error) {
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
			return nil, fmt.Errorf("pebblestore: %w", err)
		}
	}
	if err := k.db.Err(); err != nil {
		return nil, fmt.Errorf("pebblestore: %w", err)
	}
	return out, nil
}

// Scan implements kvstore.KV.
func (k *kv) Scan(_ context.Context, from, to []byte, limit int, f func(key, value []byte) bool) (err error) {
	it, err := k.db.Pebble().NewIter(&pebble.IterOptions{LowerBound: k.key(from), UpperBound: k.key(to)})
	if err != nil {
		return fmt.Errorf("pebblestore: %w", err)
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
	batch := k.db.Pebble().NewBatch()
	var err error
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
		return fmt.Errorf("pebblestore: %w", err)
	}
	return nil
}
