// Package pebbledb opens Pebble databases for the stores of this repository so
// that neither a crash nor a failing disk loses acknowledged data.
//
// A [DB] outlives its disk: if an operation on its files fails, for example because
// the disk is full, the process continues. All later commits return an error that
// wraps [ErrDisk], and the files do not change any more. After the host has closed
// the DB and freed space, Open continues with the acknowledged data.
//
// The same happens if Pebble finds damage in the background, for example while it
// compacts tables. The error contains the number of the table and the offset. The
// operator must then restore the disk, because the damaged table is found again
// after the next Open.
package pebbledb

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
)

// DB is a Pebble database together with the state of its disk, so that a caller learns when the
// disk has failed. Its methods are safe for concurrent use, except Close.
type DB struct {
	pebble *pebble.DB
	check  func() error // returns the failure of the disk; nil if there is no guard
	owned  bool
}

// Open opens a database, or creates an empty one. If options is nil, Pebble's
// defaults are used, without logging. In every level, Open replaces IndexBlockSize by a
// value with which Pebble cannot hide damage of a table.
// Errors wrap ErrInUse or ErrMissing, or come from a file and contain its name. If
// a table is missing, the error is Pebble's.
//
// Before Open changes an existing database, it calls the checks with a read-only
// view of the database. If a check returns an error, Open returns that error and
// has not changed the files.
//
// Pebble creates directories without making their names durable. Open makes them
// durable, up to the first directory that already existed. Otherwise a new database
// could be gone after a crash.
func Open(dir string, options *pebble.Options, checks ...func(*pebble.DB) error) (*DB, error) {
	if options == nil {
		options = &pebble.Options{Logger: Silent}
	}
	options = options.Clone()
	options.Levels = slices.Clone(options.Levels)
	options.EnsureDefaults() // FS is set now
	parents := missing(options.FS, dir)
	files := options.FS
	g := newGuard(files)
	options.FS, options.Logger = g, logger{options.Logger, g}
	if t := options.LoggerAndTracer; t != nil { // it takes the place of Logger
		options.LoggerAndTracer = tracer{t, logger{t, g}}
	}
	reportDamage(options, g)
	db, err := openChecked(dir, options, checks)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, pebble.ErrDBDoesNotExist) {
		err = fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err != nil {
		return nil, errors.Join(g.err(), err)
	}
	err = g.err()
	for _, parent := range parents {
		if err == nil {
			err = syncDir(files, parent)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{pebble: db, check: g.err, owned: true}, nil
}

// openChecked opens a database after calling the checks.
func openChecked(dir string, options *pebble.Options, checks []func(*pebble.DB) error) (*pebble.DB, error) {
	if _, err := options.FS.Stat(dir); err != nil && options.ErrorIfNotExists {
		return nil, fmt.Errorf("%w: %s", pebble.ErrDBDoesNotExist, dir)
	}
	if options.Lock == nil {
		for _, dir := range []string{dir, options.WALDir} {
			if dir == "" {
				continue
			}
			if err := options.FS.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
		}
		// Hold the lock from the checks until the database is open, so that no
		// other process changes the database in between.
		lock, err := pebble.LockDirectory(dir, options.FS)
		if err != nil {
			return nil, err
		}
		options.Lock = lock
		defer func() { _ = lock.Close() }() // the database keeps it
	}
	if err := checkComplete(dir, options); err != nil {
		return nil, err
	}
	if err := inspect(dir, options, checks); err != nil {
		return nil, err
	}
	return openPebble(dir, options)
}

// inspect opens an existing database read-only and calls the checks with it.
func inspect(dir string, options *pebble.Options, checks []func(*pebble.DB) error) error {
	if len(checks) == 0 || options.ErrorIfExists {
		return nil
	}
	reading := options.Clone()
	reading.ReadOnly = true
	db, err := openPebble(dir, reading)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil
	}
	for _, check := range checks {
		if err == nil {
			err = check(db)
		}
	}
	if db != nil {
		err = errors.Join(err, db.Close())
	}
	return err
}

// openPebble calls pebble.Open, and turns a panic into an error.
func openPebble(dir string, options *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		// pebble.Open panics if some files contradict each other.
		if p := recover(); p != nil {
			err = fmt.Errorf("pebble: the files of %s contradict each other: %v", dir, p)
		}
	}()
	return pebble.Open(dir, options)
}

// Borrow returns a DB for a database that another part of the host has opened and
// will close. check returns the failure of the database's disk or nil, like
// [DB.Err]. If check is nil, a disk failure ends the process, as in Pebble without
// a guard.
func Borrow(db *pebble.DB, check func() error) *DB { return &DB{pebble: db, check: check} }

// Pebble returns the Pebble database itself. Writes to it must go through [DB.Commit]; after any
// other write the caller must check [DB.Err].
func (d *DB) Pebble() *pebble.DB { return d.pebble }

// Err returns why the disk has failed, or nil. The error wraps ErrDisk and the
// cause, for example syscall.ENOSPC.
func (d *DB) Err() error {
	if d.check == nil {
		return nil
	}
	return d.check()
}

// Commit writes a batch and waits until it is durable. If Commit returns an error,
// the database contains either the whole batch or nothing of it after the next
// Open. If the disk has failed, the error wraps ErrDisk, and later commits have no
// effect on the disk.
func (d *DB) Commit(batch *pebble.Batch) error { return d.commit(batch, pebble.Sync) }

// CommitLazily writes a batch without waiting until it is durable. The batch
// becomes durable with the next Commit, or earlier. If the process crashes before
// that, the database contains no change of this batch or of later batches. Errors
// are those of Commit.
func (d *DB) CommitLazily(batch *pebble.Batch) error { return d.commit(batch, pebble.NoSync) }

func (d *DB) commit(batch *pebble.Batch, options *pebble.WriteOptions) error {
	if err := d.Err(); err != nil {
		return err
	}
	if err := batch.Commit(options); err != nil {
		return err
	}
	return d.Err()
}

// Close closes the database, unless it is borrowed. If the disk has failed, Close
// returns the error of Err and leaves the disk in the state that it had at the
// failure.
func (d *DB) Close() error {
	if !d.owned {
		return nil
	}
	return errors.Join(d.Err(), d.pebble.Close())
}

// missing returns the directories to sync so that the name of dir is durable.
func missing(fs vfs.FS, dir string) (parents []string) {
	for {
		parent := fs.PathDir(dir)
		if parent == dir {
			return parents
		}
		parents = append(parents, parent)
		// The names of directories that already exist are durable.
		if _, err := fs.Stat(parent); err == nil {
			return parents
		}
		dir = parent
	}
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Silent is a Pebble logger that discards the log.
var Silent pebble.Logger = silent{}

type silent struct{}

func (silent) Infof(string, ...any) {}

// Fatalf panics. It must not return, because Pebble cannot continue after a fatal
// error. A database that [Open] has opened never calls it.
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf("pebble: "+format, args...)) }

// End returns the first key after all keys with the prefix; nil if there is none.
func End(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if last := prefix[n-1]; last < 0xff {
			return append(append([]byte{}, prefix[:n-1]...), last+1)
		}
	}
	return nil
}
