// Package store is the database of the reference node.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/pebble/pebblejournal"
)

var (
	// ErrDisk is wrapped by errors after the disk has failed, for example because it is
	// full. The directory must be opened again once the disk works.
	ErrDisk = pebbledb.ErrDisk
	// ErrVersion is wrapped by the error of a directory that another version of this
	// package has written.
	ErrVersion = errors.New("store: the data directory has another version; drain the node with the program that wrote it, and begin with an empty directory")
)

// version is the version of the directory's layout, and versionFile the file that has it.
const (
	version     = "2"
	versionFile = "version"
)

// Store is a data directory with the builder's log and the archive of final blocks. Only
// one process can use it. A nil Store has no failure, and can be closed.
type Store struct {
	db           *pebbledb.DB
	Log, Archive *pebblejournal.Journal
}

// Open opens a directory, or creates it. Errors wrap ErrVersion, or are those of
// pebblejournal.
func Open(dir string, log *slog.Logger) (*Store, error) {
	if err := checkVersion(dir); err != nil {
		return nil, err
	}
	db, err := pebbledb.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return nil, fmt.Errorf("store: open the data directory, which only one process can use: %w", err)
	}
	s := &Store{db: db}
	for name, into := range map[string]**pebblejournal.Journal{"log": &s.Log, "archive": &s.Archive} {
		j, err := pebblejournal.Open(filepath.Join(dir, name), pebblejournal.Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte(name + "/")})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if cut := j.Cut(); cut > 0 {
			log.Error("the journal was damaged and has been cut after its last whole record", "journal", name, "records", cut)
		}
		*into = j
	}
	return s, nil
}

// checkVersion compares the version of a directory, or begins a new one.
func checkVersion(dir string) error {
	name := filepath.Join(dir, versionFile)
	have, err := os.ReadFile(name)
	switch {
	case err == nil && strings.TrimSpace(string(have)) == version:
		return nil
	case err == nil:
		return fmt.Errorf("%w: have %q, want %s", ErrVersion, have, version)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db")); err == nil {
		return fmt.Errorf("%w: have 1, want %s", ErrVersion, version)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(version+"\n"), 0o644)
}

// Err returns the reason why nothing can be written any more, or nil. It wraps ErrDisk if
// the disk is the reason.
func (s *Store) Err() error {
	if s == nil {
		return nil
	}
	return cmp.Or(s.db.Err(), s.Log.Err(), s.Archive.Err())
}

// Close closes the database.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	var err error
	for _, j := range []*pebblejournal.Journal{s.Log, s.Archive} {
		if j != nil {
			err = errors.Join(err, j.Close())
		}
	}
	return errors.Join(err, s.db.Close())
}
