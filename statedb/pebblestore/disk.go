package pebblestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble"

	"github.com/jamq/jamq/internal/pebbledb"
	"github.com/jamq/jamq/statedb"
)

// ErrPrefix: a prefix that no keys can follow, because nothing is after it.
var ErrPrefix = errors.New("pebblestore: bad prefix")

// Options says how to use the database.
type Options struct {
	// DB is a database of the host's, which Close leaves open; nil means one of the disk's own in Open's directory.
	DB *pebble.DB
	// Prefix is before all keys, so that several stores, and other data, can share a database. No other prefix may begin with it. It has at
	// least one byte that is not 0xff, or is empty.
	Prefix []byte
	// Pebble configures a database of the disk's own; nil means Pebble's defaults, and its log discarded. A disk that fails under Pebble
	// ends the process.
	Pebble *pebble.Options
}

// Disk implements statedb.Disk.
type Disk struct {
	db     *pebble.DB
	prefix []byte
	end    []byte // the first key after the prefix; nil if there is none
	owns   bool
}

var _ statedb.Disk = (*Disk)(nil)

// Open opens the disk in a directory, or in Options.DB, or makes an empty one. Errors wrap ErrPrefix, or are Pebble's.
func Open(dir string, options Options) (*Disk, error) {
	d := &Disk{db: options.DB, prefix: slices.Clone(options.Prefix), end: pebbledb.End(options.Prefix), owns: options.DB == nil}
	if len(d.prefix) > 0 && d.end == nil {
		return nil, fmt.Errorf("%w: %x, want a byte that is not ff", ErrPrefix, d.prefix)
	}
	if d.owns {
		var err error
		if d.db, err = pebbledb.Open(dir, options.Pebble); err != nil {
			return nil, fmt.Errorf("pebblestore: %w", err)
		}
	}
	return d, nil
}

// Write implements statedb.Disk.
func (d *Disk) Write(records []statedb.Record) error {
	batch := d.db.NewBatch()
	for _, r := range records {
		key := slices.Concat(d.prefix, r.Key)
		var err error
		if r.Value == nil {
			err = batch.Delete(key, nil)
		} else {
			err = batch.Set(key, r.Value, nil)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("pebblestore: %w", err), batch.Close())
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("pebblestore: %w", err)
	}
	return batch.Close()
}

// Read implements statedb.Disk.
func (d *Disk) Read(f func(key, value []byte) error) (err error) {
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: d.prefix, UpperBound: d.end})
	if err != nil {
		return fmt.Errorf("pebblestore: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("pebblestore: %w", err)
		}
		if err := f(it.Key()[len(d.prefix):], value); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the disk's own database. The store must not be used afterwards.
func (d *Disk) Close() error {
	if !d.owns {
		return nil
	}
	return d.db.Close()
}
