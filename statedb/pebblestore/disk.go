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
	// Check, if not nil, is called after each write to DB. If it returns an
	// error, the write fails with it. It is for a host that keeps failures of
	// its disk from Pebble. If Check is nil, a disk that fails under DB ends
	// the process. It is not used for a database of the disk's own.
	Check func() error
	// Prefix is before all keys, so that several stores, and other data, can share a database. No other prefix may begin with it. It has at
	// least one byte that is not 0xff, or is empty.
	Prefix []byte
	// Pebble configures a database of the disk's own; nil means Pebble's
	// defaults, and its log discarded. If the disk fails under it, writes return
	// errors that wrap ErrDisk.
	Pebble *pebble.Options
}

// ErrDisk is wrapped by errors after the disk under the database has failed, for
// example because it was full. The cause is wrapped too. The write that failed
// is there after the next Open as a whole or not at all. No later write reaches
// the disk. Once the disk works again, Close and Open continue with what was
// written before.
var ErrDisk = pebbledb.ErrDisk

// Disk implements statedb.Disk.
type Disk struct {
	db     *pebbledb.DB
	prefix []byte
	end    []byte // the first key after the prefix; nil if there is none
}

var _ statedb.Disk = (*Disk)(nil)

// Open opens the disk in a directory, or in Options.DB, or makes an empty one. Errors wrap ErrPrefix, or are Pebble's.
func Open(dir string, options Options) (*Disk, error) {
	d := &Disk{prefix: slices.Clone(options.Prefix), end: pebbledb.End(options.Prefix)}
	if len(d.prefix) > 0 && d.end == nil {
		return nil, fmt.Errorf("%w: %x, want a byte that is not ff", ErrPrefix, d.prefix)
	}
	if options.DB != nil {
		d.db = pebbledb.Borrow(options.DB, options.Check)
		return d, nil
	}
	var err error
	if d.db, err = pebbledb.Open(dir, options.Pebble); err != nil {
		return nil, fmt.Errorf("pebblestore: %w", err)
	}
	return d, nil
}

// Write implements statedb.Disk. Errors wrap ErrDisk if the disk has failed.
func (d *Disk) Write(records []statedb.Record) error {
	batch := d.db.Pebble().NewBatch()
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
	if err := errors.Join(d.db.Commit(batch), batch.Close()); err != nil {
		return fmt.Errorf("pebblestore: %w", err)
	}
	return nil
}

// Read implements statedb.Disk.
func (d *Disk) Read(f func(key, value []byte) error) (err error) {
	it, err := d.db.Pebble().NewIter(&pebble.IterOptions{LowerBound: d.prefix, UpperBound: d.end})
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
// The error wraps ErrDisk if the disk under it has failed.
func (d *Disk) Close() error { return d.db.Close() }
