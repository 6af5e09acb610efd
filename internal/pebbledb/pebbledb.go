// Package pebbledb is what the stores on Pebble share: how a database is opened so that a crash does not lose it, and where the keys of a prefix
// end.
package pebbledb

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
)

// Open opens a database, or makes an empty one. Pebble leaves the names of the directories that it makes to others: Open makes them durable, up to
// the first that was there before, else a new database may be gone after a crash. Nil options mean Pebble's defaults, and its log discarded.
func Open(dir string, options *pebble.Options) (*pebble.DB, error) {
	if options == nil {
		options = &pebble.Options{Logger: Silent{}}
	}
	fs := options.FS
	if fs == nil {
		fs = vfs.Default
	}
	parents := missing(fs, dir)
	db, err := pebble.Open(dir, options)
	if err != nil {
		return nil, err
	}
	for _, parent := range parents {
		if err := syncDir(fs, parent); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// missing returns the directories whose entries have to be synced once dir is there: its parent, and on up to the first that exists.
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

// Silent is a Pebble logger for nobody.
type Silent struct{}

// Infof implements pebble.Logger.
func (Silent) Infof(string, ...any) {}

// Fatalf implements pebble.Logger. It must not return: Pebble cannot go on.
func (Silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf("pebble: "+format, args...)) }

// End returns the first key behind all that begin with a prefix, or nil if there is none.
func End(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if last := prefix[n-1]; last < 0xff {
			return append(append([]byte{}, prefix[:n-1]...), last+1)
		}
	}
	return nil
}
