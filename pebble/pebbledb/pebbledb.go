// Package pebbledb opens Pebble databases for the stores of this repository so
// that neither a crash nor a failing disk loses acknowledged data.
//
// A [DB] outlives its disk: if an operation on its files fails, for example
// because the disk is full, the process continues. All later commits return an
// error that wraps [ErrDisk], and the files do not change any more. Close it,
// free space, and Open continues with the acknowledged data.
//
// The same happens when Pebble finds damage in the background, for example while it
// compacts tables. The error has the number of the table, and the offset. Then restore the
// disk: the damaged table is found again after the next Open.
package pebbledb

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
)

// DB is a Pebble database and the state of its disk. Its methods are safe for
// concurrent use, except Close.
type DB struct {
	pebble *pebble.DB
	check  func() error // nil if the database has no guard
	owned  bool
}

// Open opens a database, or makes an empty one. Nil options mean Pebble's
// defaults, and its log discarded. Open sets IndexBlockSize of all levels. Errors wrap ErrInUse
// or ErrMissing, or are those of a file, which they name. That of a missing table is Pebble's.
//
// Before Open changes an existing database, it calls the checks with the database, which then
// can only be read. If one of them returns an error, Open returns it, and the files are as they
// were.
//
// Pebble leaves the names of the directories that it makes to others. Open makes
// them durable, up to the first that was there before: otherwise a new database
// may be gone after a crash.
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

// openChecked opens a database after the checks, under one lock.
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

// inspect calls the checks with a database that can only be read. If there is no database,
// there is nothing to check.
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

// openPebble calls pebble.Open, which panics if some files contradict each other.
func openPebble(dir string, options *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pebble: the files of %s contradict each other: %v", dir, p)
		}
	}()
	return pebble.Open(dir, options)
}

// Borrow returns a database that another part of the host has opened and closes.
// check returns the failure of its disk, as [DB.Err] does, or nil. If check is
// nil, a disk that fails ends the process, as Pebble does without a guard.
func Borrow(db *pebble.DB, check func() error) *DB { return &DB{pebble: db, check: check} }

// Pebble returns the database itself. Writes to it must go through
// [DB.Commit], or be followed by [DB.Err].
func (d *DB) Pebble() *pebble.DB { return d.pebble }

// Err returns why the disk has failed, or nil. The error wraps ErrDisk and the
// cause, for example syscall.ENOSPC.
func (d *DB) Err() error {
	if d.check == nil {
		return nil
	}
	return d.check()
}

// Commit writes a batch and waits until it is durable. If it returns an error,
// the batch is in the database after the next Open as a whole or not at all. If
// the disk has failed, the error wraps ErrDisk; commits after that one have no
// effect on the disk.
func (d *DB) Commit(batch *pebble.Batch) error { return d.commit(batch, pebble.Sync) }

// CommitLazily writes a batch and does not wait until it is durable. It becomes durable
// with the next Commit, or earlier. After a crash before that, the database has none of
// its changes, and none of the batches after it. Errors are those of Commit.
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

// Close closes the database, unless it is borrowed. It returns the error of Err,
// if any: then the disk is left as it was when it failed.
func (d *DB) Close() error {
	if !d.owned {
		return nil
	}
	return errors.Join(d.Err(), d.pebble.Close())
}

// missing returns the directories whose entries must be synced after dir is
// created: its parent, and further ancestors up to the first that existed.
func missing(fs vfs.FS, dir string) (parents []string) {
	for {
		parent := fs.PathDir(dir)
		if parent == dir {
			return parents
		}
		parents = append(parents, parent)
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

// Fatalf must not return, because Pebble cannot go on. A database of [Open] never calls
// it.
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf("pebble: "+format, args...)) }

// End returns the first key behind all that begin with a prefix, or nil if there is none.
func End(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if last := prefix[n-1]; last < 0xff {
			return append(append([]byte{}, prefix[:n-1]...), last+1)
		}
	}
	return nil
}
