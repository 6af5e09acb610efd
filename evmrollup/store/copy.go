package store

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble"
)

// WriteCopy writes the blocks and states of the directory, as they are at one moment,
// to w. ReadCopy can restore them on another machine. The copy does not include the
// builder's log. WriteCopy can be called while the directory is in use.
func (s *Store) WriteCopy(w io.Writer) (err error) {
	dir, err := os.MkdirTemp(s.dir, "copy-")
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := filepath.Join(dir, "db") // hard links, if the file system has them
	if err := s.db.Pebble().Checkpoint(files, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	archive := tar.NewWriter(w)
	err = archive.AddFS(os.DirFS(files))
	if err == nil {
		err = archive.WriteHeader(&tar.Header{Name: copyEnd, Typeflag: tar.TypeReg, Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	return archive.Close()
}

// copyEnd names the last file in a copy, without which the copy is incomplete.
const copyEnd = "end of the copy"

// Exists reports whether a directory has a database.
func Exists(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, "db"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ReadCopy replaces the database in a directory by a copy that WriteCopy has made.
// No process may use the directory at the same time. After an error, the directory
// has the same database as before.
func ReadCopy(dir string, r io.Reader) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	partial, err := os.MkdirTemp(dir, "copy-")
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("store: copy: %w", err)
		}
		if header.Name == copyEnd {
			break
		}
		if err := writeFile(partial, header, archive); err != nil {
			return fmt.Errorf("store: copy: %w", err)
		}
	}
	return exchange(dir, partial)
}

// exchange replaces the database in a directory by another one, and removes the old
// database with its log. If the process ends in the middle, the directory may have no
// database.
func exchange(dir, database string) error {
	old, err := os.MkdirTemp(dir, "copy-")
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	for _, name := range []string{"log", "db"} { // a log without a database would be an error
		err := os.Rename(filepath.Join(dir, name), filepath.Join(old, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("store: copy: %w", err)
		}
	}
	return errors.Join(os.Rename(database, filepath.Join(dir, "db")), os.RemoveAll(old))
}

// errName is returned if a copy contains a file that cannot belong to a database.
var errName = errors.New("unexpected file")

// writeFile writes one file of a copy to a directory. It refuses folders, because a
// database contains none.
func writeFile(dir string, header *tar.Header, content io.Reader) error {
	if header.Typeflag != tar.TypeReg || strings.ContainsAny(header.Name, `/\`) || !filepath.IsLocal(header.Name) {
		return fmt.Errorf("%w: %.80q", errName, header.Name)
	}
	file, err := os.OpenFile(filepath.Join(dir, header.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
