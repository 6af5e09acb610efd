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
	// Prefix is before all keys, so that other data can share a database. No other prefix may begin with it.
	Prefix []byte
	// Pebble configures a database of the store's own; nil means Pebble's defaults, and its log discarded. A disk that fails under Pebble ends the
	// process.
	Pebble *pebble.Options
}

// Store is an eoa.Store. Its methods are safe for concurrent use, except Close, before which all others must have returned.
type Store struct {
	*kvstore.Store
	db *pebble.DB // nil if it is the host's
}

// Open opens the store in a directory, or in Options.DB, or makes an empty one. Errors are Pebble's.
func Open(dir string, options Options) (*Store, error) {
	db, s := options.DB, &Store{}
	if db == nil {
		var err error
		if db, err = pebbledb.Open(dir, options.Pebble); err != nil {
			return nil, fmt.Errorf("pebblestore: %w", err)
		}
		s.db = db
	}
	s.Store = kvstore.New(&kv{db, bytes.Clone(options.Prefix)})
	return s, nil
}

// Close closes a database of the store's own.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// kv implements kvstore.KV below a prefix.
type kv struct {
	db     *pebble.DB
	prefix []byte
}

func (k *kv) key(key []byte) []byte { return append(bytes.Clone(k.prefix), key...) }

// Get implements kvstore.KV.
func (k *kv) Get(_ context.Context, keys ...[]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	for i, key := range keys {
		value, closer, err := k.db.Get(k.key(key))
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
	return out, nil
}

// Scan implements kvstore.KV.
func (k *kv) Scan(_ context.Context, from, to []byte, limit int, f func(key, value []byte) bool) (err error) {
	it, err := k.db.NewIter(&pebble.IterOptions{LowerBound: k.key(from), UpperBound: k.key(to)})
	if err != nil {
		return fmt.Errorf("pebblestore: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
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
	batch := k.db.NewBatch()
	var err error
	for _, e := range entries {
		if e.Value == nil {
			err = errors.Join(err, batch.Delete(k.key(e.Key), nil))
		} else {
			err = errors.Join(err, batch.Set(k.key(e.Key), e.Value, nil))
		}
	}
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	if err = errors.Join(err, batch.Close()); err != nil {
		return fmt.Errorf("pebblestore: %w", err)
	}
	return nil
}
