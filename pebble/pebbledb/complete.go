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

// ErrMissing is wrapped by the error of Open if a file of the database is missing.
// Open has not changed the other files, so the database can be opened once the file
// is back.
var ErrMissing = errors.New("pebble: a file of the database is missing")

// checkComplete returns ErrMissing for missing files that Pebble would not notice.
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
		// Pebble would drop the content of a missing log, and delete the file if it
		// came back.
		return checkOldestLog(fs, found.ManifestFilename, names)
	}
	for _, name := range names {
		// These files exist, but the file that names the manifest is missing. Pebble creates
		// that file before all of them, so it must have been lost; an interrupted creation of
		// the database cannot be the reason.
		if kind, _ := parseName(name); kind == kindLog || kind == kindTable || kind == kindOptions {
			return fmt.Errorf("%w: %s has %s, but no file CURRENT (or marker.*) that names its manifest", ErrMissing, dir, name)
		}
	}
	return nil
}

// checkOldestLog returns an error if names lack the oldest log that the manifest
// needs.
func checkOldestLog(fs vfs.FS, manifest string, names []string) error {
	want, err := oldestLog(fs, manifest)
	if err != nil || want == 0 {
		return err
	}
	_, number := parseName(fs.PathBase(manifest))
	newest := max(number, want)
	// A crash while Pebble opens a database can leave a new manifest whose log does not exist
	// yet, although nothing was lost. One can tell by the numbers: the log's number is next to
	// that of the manifest, and no file has a higher one.
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

// An entry of a manifest can begin with fields that have the following tags.
const (
	tagComparer = 1
	tagLog      = 2
)

// oldestLog returns the number of the oldest log that a manifest needs, or 0.
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
		// Like Pebble, treat a damaged entry as the end of the manifest.
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

// kind is the kind of a file in the database's directory; 0 if not Pebble's.
type kind int

const (
	kindLog kind = iota + 1
	kindTable
	kindOptions
	kindManifest
)

// parseName returns the kind and the number of a database file, or zeros.
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
