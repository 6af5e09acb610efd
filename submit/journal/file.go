package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// File is a journal in a file. One process may have it open at a time.
type File struct {
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64
	cut    int64
	failed bool
}

// Open opens the journal in a file, or makes an empty one. A torn tail is cut off. The error wraps ErrCorrupt where something else is damaged, or ErrInUse
// where somebody has it open; the file is as it was then. Who else has it open is found out by flock, which Windows, Plan 9 and Solaris do not have: there the host
// must see to it.
func Open(path string) (*File, error) {
	file, err := openLocked(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &File{path: path, file: file}
	if err := j.repair(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), file.Close())
	}
	return j, nil
}

// openLocked opens the file that has a name, and takes it. Between the two a Replace may have put another one in its place.
func openLocked(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		same, err := take(file, path)
		if same && err == nil {
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// take locks a file, and reports whether it still has its name.
func take(file *os.File, path string) (same bool, err error) {
	taken, err := lock(file)
	if err != nil {
		return false, err
	}
	if !taken {
		return false, fmt.Errorf("%w: %s", ErrInUse, path)
	}
	have, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(have, named), err
}

// repair cuts a torn tail off, makes the file's name durable, and clears away what a Replace left that did not end.
func (j *File) repair() error {
	end, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if j.size, err = scan(j.file, end, func([]byte) error { return nil }); err != nil {
		return err
	}
	damaged, err := goesOn(j.file, j.size, end)
	if err != nil {
		return err
	}
	if damaged {
		return fmt.Errorf("%w: %s is damaged at byte %d of %d, and goes on behind it", ErrCorrupt, j.path, j.size, end)
	}
	j.cut = end - j.size
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	if err := os.Remove(j.successor()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return j.syncName()
}

// syncName makes the file's name durable.
func (j *File) syncName() error {
	dir, err := os.Open(filepath.Dir(j.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// successor is the name of the file that Replace writes before it takes the journal's.
func (j *File) successor() string { return j.path + ".new" }

// Cut returns how many bytes of a torn tail Open cut off.
func (j *File) Cut() int64 { return j.cut }

// Append implements Journal. Errors wrap ErrTooLarge, ErrClosed or ErrFailed, or are the file's; after one of those the journal must be
// opened again.
func (j *File) Append(records ...[]byte) error {
	return j.write(records, func() error {
		buf := frame(j.size, records)
		_, err := j.file.WriteAt(buf, j.size)
		if err == nil {
			err = j.file.Sync()
		}
		if err != nil {
			j.failed = true // also after a failed sync: the kernel may have dropped the pages
			return err
		}
		j.size += int64(len(buf))
		return nil
	})
}

// Replace implements Journal, by a new file that takes the place of the old one. Errors are those of Append.
func (j *File) Replace(records ...[]byte) error {
	return j.write(records, func() error {
		buf := frame(0, records)
		file, err := writeWhole(j.successor(), buf)
		if err != nil {
			return err // the old file is as it was
		}
		if err := os.Rename(j.successor(), j.path); err != nil {
			return errors.Join(err, file.Close())
		}
		old := j.file
		j.file, j.size = file, int64(len(buf))
		if err := errors.Join(j.syncName(), old.Close()); err != nil {
			j.failed = true // which of the two a crash would leave is not known
			return err
		}
		return nil
	})
}

// write calls f under the lock, if records may be written.
func (j *File) write(records [][]byte, f func() error) error {
	if err := CheckSize(records); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.file == nil:
		return ErrClosed
	case j.failed:
		return ErrFailed
	}
	if err := f(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// writeWhole makes a file with some bytes, which are on disk when it returns, and locks it.
func writeWhole(path string, bytes []byte) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	if _, err = lock(file); err == nil { // nobody else has it: who has the journal has its successor
		_, err = file.Write(bytes)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Replay implements Journal. A Close or Replace meanwhile ends it with the file's error.
func (j *File) Replay(f func(record []byte) error) error {
	j.mu.Lock()
	file, size := j.file, j.size
	j.mu.Unlock()
	if file == nil {
		return ErrClosed
	}
	whole, err := scan(file, size, f)
	if err == nil && whole != size {
		err = fmt.Errorf("%w: %d of %d bytes can be read back", ErrFailed, whole, size)
	}
	return err
}

// Close implements Journal.
func (j *File) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
