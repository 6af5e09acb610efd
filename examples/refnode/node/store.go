package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/pebble/pebblejournal"
)

// ErrDisk is wrapped by errors after the disk of the data directory has failed,
// for example because it is full. The node then refuses transactions and must
// be started again once the disk works. Everything that was acknowledged is
// kept.
var ErrDisk = pebbledb.ErrDisk

// store is a database with the builder's log and the archive of final blocks. A nil store
// keeps nothing.
type store struct {
	db           *pebbledb.DB
	log, archive *pebblejournal.Journal
}

// openStore opens a data directory. It returns nil if there is none.
func openStore(dir string, log *slog.Logger) (*store, error) {
	if dir == "" {
		return nil, nil
	}
	db, err := pebbledb.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return nil, fmt.Errorf("node: open the data directory, which only one process can use: %w", err)
	}
	s := &store{db: db}
	for name, into := range map[string]**pebblejournal.Journal{"log": &s.log, "archive": &s.archive} {
		j, err := pebblejournal.Open(filepath.Join(dir, name), pebblejournal.Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte(name + "/")})
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		if cut := j.Cut(); cut > 0 {
			log.Error("the journal was damaged and has been cut after its last whole record", "journal", name, "records", cut)
		}
		*into = j
	}
	return s, nil
}

// failure returns the reason why nothing can be written any more, or nil. It
// wraps ErrDisk if the disk is the reason.
func (s *store) failure() error {
	if s == nil {
		return nil
	}
	return cmp.Or(s.db.Err(), s.log.Err(), s.archive.Err())
}

func (s *store) close() error {
	if s == nil {
		return nil
	}
	var err error
	for _, j := range []*pebblejournal.Journal{s.log, s.archive} {
		if j != nil {
			err = errors.Join(err, j.Close())
		}
	}
	return errors.Join(err, s.db.Close())
}

// noLog is the log of a node without a data directory.
type noLog struct{}

// Append implements builder.Log.
func (noLog) Append(...[]byte) error { return nil }

// Replace implements builder.Log.
func (noLog) Replace(...[]byte) error { return nil }

// Replay implements builder.Log.
func (noLog) Replay(func([]byte) error) error { return nil }
