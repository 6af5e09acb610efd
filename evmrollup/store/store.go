// Package store keeps the data directory of an EVM rollup: one Pebble database with the
// log of the rollup's builder, the final blocks and the states. Writes to all three
// become durable in the order in which they are made.
package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/bloom"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/pebble/pebblejournal"
	"github.com/jamq/jamq/pebble/pebblestate"
	"github.com/jamq/jamq/statedb"
)

var (
	// ErrDisk is returned after the disk has failed, for example because it is full. The
	// directory must be opened again when the disk works again.
	ErrDisk = pebbledb.ErrDisk
	// ErrVersion is returned if a different version of this package has written the directory.
	ErrVersion = errors.New("store: the data directory has another version; drain and export the node with the program that wrote it, and import the file into a new directory")
)

// version is the version of the database layout, stored under versionKey. No other key
// begins with the same letter.
const (
	version    = "8"
	versionKey = "version"
)

// memTable is the size of Pebble's memory table in bytes. A restart reads up to two
// such tables from Pebble's log, so a smaller table makes restarts faster. With the
// recommended 32 MiB, restarting a chain with 100,000 transactions needed 1.6 times as
// much processor time. A small table is enough here, because a node writes mostly in
// the order of the keys and seldom overwrites them.
const memTable = 8 << 20

// filterBits is the number of bits per key in a table's bloom filter. With this number,
// one in 100 reads of a missing key reads the table in vain.
const filterBits = 10

// Store is an open data directory. A nil *Store stands for a node without a directory:
// Err returns nil, and Close does nothing.
type Store struct {
	// Log is the builder's log, Ledger stores the final blocks, and States stores the
	// states. Writes to all three become durable in the order in which they are made.
	Log    builder.Log
	Ledger ledger.Disk
	States statedb.Disk

	dir string
	db  *pebbledb.DB
	log *pebblejournal.Journal // Log
}

// journalPrefix is the prefix of the database keys of the log.
const journalPrefix = "log/"

// Open opens a data directory, or creates it. Only one process can use a directory at a
// time. Errors wrap ErrVersion, or ErrSettings if an earlier start had different
// settings. Other errors are those of pebblejournal and of pebbledb.Open, such as
// ErrInUse and ErrMissing. A directory with a different version, different settings or
// a missing file does not change.
func Open(dir string, log *slog.Logger, settings ...Setting) (*Store, error) {
	logDir := filepath.Join(dir, "log")
	db, err := openDatabase(filepath.Join(dir, "db"), logDir, settings)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", filepath.Join(dir, "db"), err)
	}
	s := &Store{dir: dir, db: db, Ledger: &keys{db, []byte("ledger/")}}
	if err := s.setVersion(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.log, err = pebblejournal.Open(logDir, pebblejournal.Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte(journalPrefix)})
	if err == nil {
		s.Log = s.log
		s.States, err = pebblestate.Open("", pebblestate.Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte("state/"), Lazy: true})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if cut := s.log.Cut(); cut > 0 {
		log.Error("the log was damaged and has been cut after its last whole record", "records", cut)
	}
	return s, nil
}

// openDatabase checks and opens the database. If the directory of the log exists
// without a database, openDatabase does not create a new database, because the old one
// was lost: the directory of the log is always created after the database.
func openDatabase(dir, logDir string, settings []Setting) (*pebbledb.DB, error) {
	_, err := os.Stat(logDir)
	options := &pebble.Options{
		MemTableSize: memTable, Logger: pebbledb.Silent, ErrorIfNotExists: err == nil,
		// The filters let a read skip tables that do not have its key.
		Levels: []pebble.LevelOptions{{FilterPolicy: bloom.FilterPolicy(filterBits), FilterType: pebble.TableFilter}},
	}
	return pebbledb.Open(dir, options, checkVersion, func(db *pebble.DB) error {
		if err := compareSettings(db, settings); err != nil {
			return err
		}
		return pebblejournal.CheckAcknowledged(logDir, pebblejournal.Options{DB: db, Prefix: []byte(journalPrefix)})
	})
}

// checkVersion returns an error that wraps ErrVersion if a database has another version.
func checkVersion(db *pebble.DB) error {
	meta := &keys{pebbledb.Borrow(db, nil), nil}
	have, err := meta.Get([]byte(versionKey))
	switch {
	case err != nil || string(have) == version:
		return err
	case have != nil:
		return fmt.Errorf("%w: have %q, want %s", ErrVersion, have, version)
	}
	return meta.Scan(nil, []byte{0xff}, func([]byte) error { // the first version had no key
		return fmt.Errorf("%w: have 1, want %s", ErrVersion, version)
	})
}

// setVersion writes the version into a new database.
func (s *Store) setVersion() error {
	meta := &keys{s.db, nil}
	have, err := meta.Get([]byte(versionKey))
	if err != nil || have != nil {
		return err
	}
	if err := meta.Write([]statedb.Record{{Key: []byte(versionKey), Value: []byte(version)}}); err != nil {
		return err
	}
	return meta.Sync()
}

// Err returns the reason why nothing can be written any more, or nil. If the disk has
// failed, the error wraps ErrDisk.
func (s *Store) Err() error {
	if s == nil || s.db == nil {
		return nil
	}
	return cmp.Or(s.db.Err(), s.log.Err())
}

// Close closes the database.
func (s *Store) Close() error {
	if s == nil || s.db == nil {
		return nil
	}
	var err error
	if s.log != nil {
		err = s.log.Close()
	}
	return errors.Join(err, s.db.Close())
}

// keys gives access to the keys of a database that have a certain prefix.
type keys struct {
	db     *pebbledb.DB
	prefix []byte
}

func (k *keys) key(key []byte) []byte { return slices.Concat(k.prefix, key) }

// Get implements ledger.Disk.
func (k *keys) Get(key []byte) ([]byte, error) {
	value, closer, err := k.db.Pebble().Get(k.key(key))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return bytes.Clone(value), closer.Close()
}

// Write implements ledger.Disk.
func (k *keys) Write(records []statedb.Record) error {
	batch := k.db.Pebble().NewBatch()
	var err error
	for _, r := range records {
		switch {
		case err != nil:
		case r.Value == nil:
			err = batch.Delete(k.key(r.Key), nil)
		default:
			err = batch.Set(k.key(r.Key), r.Value, nil)
		}
	}
	if err == nil {
		err = k.db.CommitLazily(batch)
	}
	return errors.Join(err, batch.Close())
}

// Sync implements ledger.Disk.
func (k *keys) Sync() error {
	batch := k.db.Pebble().NewBatch()
	err := batch.LogData(nil, nil)
	if err == nil {
		err = k.db.Commit(batch)
	}
	return errors.Join(err, batch.Close())
}

// Scan implements ledger.Disk.
func (k *keys) Scan(from, to []byte, f func(key []byte) error) (err error) {
	it, err := k.db.Pebble().NewIter(&pebble.IterOptions{LowerBound: k.key(from), UpperBound: k.key(to)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key()[len(k.prefix):]); err != nil {
			return err
		}
	}
	return it.Error()
}
