package pebblestate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/statedb"
)

// ErrPrefix is returned for a prefix that consists only of bytes 0xff.
var ErrPrefix = errors.New("pebblestate: invalid prefix")

// Options configures [Open]. The zero value is valid.
type Options struct {
	// DB is a database of the host, which Close does not close. Nil means that Open opens a
	// database in its directory.
	DB *pebble.DB
	// Check is called after each write to DB, unless it is nil. If it returns an
	// error, the write fails with that error. A host that hides disk failures from
	// Pebble must set Check; without it, a disk failure under DB ends the process.
	// Check is ignored if DB is nil.
	Check func() error
	// Prefix is the prefix of all keys of the state, so that the same database can
	// contain several stores and other data. It must be empty or contain a byte
	// other than 0xff. No other prefix in the database may begin with it.
	Prefix []byte
	// Lazy makes Write return before the records are durable. It is for a host that
	// can bring an earlier state up to date again, for example with a log in the
	// same database. The records become durable in their order, at the latest with
	// the next synced write to the database. After a crash, the disk has the state
	// of some earlier moment.
	Lazy bool
	// Pebble configures the database that Open opens if DB is nil. Nil means
	// Pebble's defaults without logging, and with this package's MemTableSize. If
	// the disk fails, writes return errors that wrap ErrDisk.
	Pebble *pebble.Options
}

// MemTableSize is the recommended size of Pebble's memory table, in bytes. Up to
// two tables are in memory. With Pebble's default of 4 MiB, the database rewrites
// a large state so often that a durable block takes one and a half times the
// processor time of a block in memory.
const MemTableSize = 32 << 20

// ErrDisk is wrapped by errors after the disk under the database has failed, for
// example because the disk is full. The cause is wrapped too. After the next Open,
// the database contains either the whole failed write or nothing of it. Later
// writes do not reach the disk. When the disk works again, the host closes the
// database and opens it again, and it continues with everything that was written
// before.
var ErrDisk = pebbledb.ErrDisk

// Disk implements [statedb.Disk] with a Pebble database.
type Disk struct {
	db     *pebbledb.DB
	lazy   bool
	prefix []byte
	end    []byte // first key after all keys with the prefix; nil if there is none
}

var _ statedb.Disk = (*Disk)(nil)

// Open opens the database in dir, or uses Options.DB if it is set, and creates
// it if it does not exist. The error wraps ErrPrefix, or comes from Pebble.
func Open(dir string, options Options) (*Disk, error) {
	d := &Disk{lazy: options.Lazy, prefix: slices.Clone(options.Prefix), end: pebbledb.End(options.Prefix)}
	if len(d.prefix) > 0 && d.end == nil {
		return nil, fmt.Errorf("%w: %x, want a byte that is not ff", ErrPrefix, d.prefix)
	}
	if options.DB != nil {
		d.db = pebbledb.Borrow(options.DB, options.Check)
		return d, nil
	}
	if options.Pebble == nil {
		options.Pebble = &pebble.Options{MemTableSize: MemTableSize, Logger: pebbledb.Silent}
	}
	var err error
	if d.db, err = pebbledb.Open(dir, options.Pebble); err != nil {
		return nil, fmt.Errorf("pebblestate: %w", err)
	}
	return d, nil
}

// Write implements statedb.Disk. If Options.Lazy is set, it does not wait until the records are
// durable. Errors wrap ErrDisk if the disk has failed.
func (d *Disk) Write(records []statedb.Record) error {
	batch := d.db.Pebble().NewBatchWithSize(d.size(records))
	for _, r := range records {
		if err := d.add(batch, r); err != nil {
			return errors.Join(fmt.Errorf("pebblestate: %w", err), batch.Close())
		}
	}
	commit := d.db.Commit
	if d.lazy {
		commit = d.db.CommitLazily
	}
	if err := errors.Join(commit(batch), batch.Close()); err != nil {
		return fmt.Errorf("pebblestate: %w", err)
	}
	return nil
}

// size returns an upper limit for the size of a batch of records, in bytes.
func (d *Disk) size(records []statedb.Record) int {
	const overhead = 32 // header of the batch; kind and lengths of a record
	size := overhead
	for _, r := range records {
		size += overhead + len(d.prefix) + len(r.Key) + len(r.Value)
	}
	return size
}

// add adds a record to a batch, and copies its key only once.
func (d *Disk) add(batch *pebble.Batch, r statedb.Record) error {
	keySize := len(d.prefix) + len(r.Key)
	if r.Value == nil {
		op := batch.DeleteDeferred(keySize)
		copy(op.Key[copy(op.Key, d.prefix):], r.Key)
		return op.Finish()
	}
	op := batch.SetDeferred(keySize, len(r.Value))
	copy(op.Key[copy(op.Key, d.prefix):], r.Key)
	copy(op.Value, r.Value)
	return op.Finish()
}

// Read implements statedb.Disk.
func (d *Disk) Read(f func(key, value []byte) error) (err error) {
	it, err := d.db.Pebble().NewIter(&pebble.IterOptions{LowerBound: d.prefix, UpperBound: d.end})
	if err != nil {
		return fmt.Errorf("pebblestate: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("pebblestate: %w", err)
		}
		if err := f(it.Key()[len(d.prefix):], value); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database if Open opened it. The store must not be used afterwards. The error
// wraps ErrDisk if the disk has failed.
func (d *Disk) Close() error { return d.db.Close() }
