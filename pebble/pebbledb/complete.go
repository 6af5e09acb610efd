package pebbledb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/record"
	"github.com/cockroachdb/pebble/vfs"
)

// ErrMissing is wrapped by the error of Open if a file of the database is missing. The other
// files are as they were, so that the database opens again when the file is back.
var ErrMissing = errors.New("pebble: a file of the database is missing")

// checkComplete returns an error that wraps ErrMissing if Pebble would not notice that one of
// its files is missing, and would change the others. These are the file that names the current
// manifest, without which Pebble makes an empty database in the same directory, and the oldest
// log that is not in tables yet, without which Pebble drops its content and the file itself, if
// it comes back. Pebble finds other missing files before it changes anything.
func checkComplete(dir string, options *pebble.Options) error {
	fs := options.FS
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	if options.WALDir != "" && options.WALDir != dir {
		logs, err := fs.List(options.WALDir)
		if err != nil {
			return err
		}
		names = append(names, logs...)
	}
	found, err := pebble.Peek(dir, fs)
	switch {
	case err != nil:
		return err
	case found.Exists:
		return checkOldestLog(fs, found.ManifestFilename, names)
	}
	for _, name := range names {
		// Pebble makes these after the file that names the manifest. The creation of a
		// database that was interrupted before has none of them.
		if kind, _ := parseName(name); kind == kindLog || kind == kindTable || kind == kindOptions {
			return fmt.Errorf("%w: %s has %s, but no file CURRENT (or marker.*) that names its manifest", ErrMissing, dir, name)
		}
	}
	return nil
}

// checkOldestLog returns an error if the oldest log that a manifest needs is not among the
// files of a database.
//
// When Pebble opens a database, it first writes a manifest that needs a new log, then makes the
// log, and then writes its options. Manifest and log have successive numbers. A crash between
// the first two steps leaves a database without a log, in which nothing is missing: no file is
// newer than the manifest and the log.
func checkOldestLog(fs vfs.FS, manifest string, names []string) error {
	want, err := oldestLog(fs, manifest)
	if err != nil || want == 0 {
		return err
	}
	_, number := parseName(fs.PathBase(manifest))
	newest := max(number, want)
	interrupted := newest-min(number, want) == 1
	for _, name := range names {
		kind, n := parseName(name)
		if kind == kindLog && n == want {
			return nil
		}
		interrupted = interrupted && n <= newest
	}
	if interrupted {
		return nil
	}
	return fmt.Errorf("%w: %s needs %06d.log", ErrMissing, manifest, want)
}

// The tags of the fields with which an entry of a manifest can begin.
const (
	tagComparer = 1
	tagLog      = 2
)

// oldestLog returns the number of the oldest log that a manifest needs, or 0 if the manifest
// has no whole entry with one. As Pebble does, it takes a damaged entry for the end.
func oldestLog(fs vfs.FS, manifest string) (log uint64, err error) {
	file, err := fs.Open(manifest)
	if err != nil {
		return 0, err
	}
	entries := record.NewReader(file, 0)
	for {
		entry, err := entries.Next()
		var raw []byte
		if err == nil {
			raw, err = io.ReadAll(entry)
		}
		if err != nil {
			return log, file.Close()
		}
		tag, n := binary.Uvarint(raw)
		if n > 0 && tag == tagComparer {
			length, m := binary.Uvarint(raw[n:])
			if rest := raw[n+max(m, 0):]; length <= uint64(len(rest)) {
				raw = rest[length:]
				tag, n = binary.Uvarint(raw)
			}
		}
		if n > 0 && tag == tagLog {
			log, _ = binary.Uvarint(raw[n:])
		}
	}
}

// kind is the kind of a file of a database. Others have none.
type kind int

const (
	kindLog kind = iota + 1
	kindTable
	kindOptions
	kindManifest
)

// parseName returns the kind and the number of a file of a database, or zeros.
func parseName(name string) (kind, uint64) {
	of, digits := kind(0), ""
	if before, after, cut := strings.Cut(name, "-"); cut {
		of, digits = map[string]kind{"MANIFEST": kindManifest, "OPTIONS": kindOptions}[before], after
	} else if before, after, cut := strings.Cut(name, "."); cut {
		of, digits = map[string]kind{"log": kindLog, "sst": kindTable}[after], before
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	if of == 0 || err != nil {
		return 0, 0
	}
	return of, number
}
