package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// File is a journal in an append-only file. Only one process can have the file
// open. Its methods are safe for concurrent use.
type File struct {
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64
	cut    int64
	failed bool
}

// Open opens the journal in the file at path, or creates an empty one. If a crash
// has left an incomplete record at the end, Open removes it. The error wraps
// ErrCorrupt if the file is damaged elsewhere, or ErrInUse if the file is already
// open; in both cases the file is unchanged.
//
// Open uses flock to detect that the file is in use. Windows, Plan 9 and Solaris do
// not have flock, so there the host must make sure that the file is opened only
// once.
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

// Read calls f with each record of the journal in the file at path, and stops at
// the first error of f, which it returns. It changes nothing and needs no
// permission to write. No process may write to the file at the same time.
//
// If the file is damaged or ends within a record, the error wraps ErrCorrupt and
// contains the offset of the first incomplete frame. Read has then called f with
// all records before that offset.
func Read(path string, f func(record []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	whole, err := scan(file, end, f)
	if err == nil && whole != end {
		err = fmt.Errorf("%w: %s is damaged or cut at byte %d of %d", ErrCorrupt, path, whole, end)
	}
	return err
}

// openLocked opens and locks the file at path.
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
		// Between opening the file and locking it, another process has replaced it, so the path
		// now names a different file. Try again with that one.
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// take locks a file that was opened at path. The result is false if another process has
// replaced the file in the meantime, so that path now names a different one.
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

// repair removes an incomplete frame at the end of a newly opened file.
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
		return fmt.Errorf("%w: %s is damaged at byte %d of %d, and complete frames follow", ErrCorrupt, j.path, j.size, end)
	}
	j.cut = end - j.size
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	// An interrupted Replace may have left this file.
	if err := os.Remove(j.successor()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return j.syncName()
}

// syncName syncs the directory. Otherwise a power failure could lose the file's name.
func (j *File) syncName() error {
	dir, err := os.Open(filepath.Dir(j.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// successor returns the name of Replace's new file before it is renamed.
func (j *File) successor() string { return j.path + ".new" }

// Cut returns how many bytes Open has removed from the end of the file because a
// crash had left an incomplete record there.
func (j *File) Cut() int64 { return j.cut }

// Append implements [Journal]. Errors wrap ErrTooLarge, ErrClosed or ErrFailed, or
// come from the file system. After an error of the file system, the host must open
// the journal again.
func (j *File) Append(records ...[]byte) error {
	return j.write(records, func() error {
		buf := frame(j.size, records)
		_, err := j.file.WriteAt(buf, j.size)
		if err == nil {
			err = j.file.Sync()
		}
		if err != nil {
			// After a failed sync, the kernel may have dropped the written pages.
			j.failed = true
			return err
		}
		j.size += int64(len(buf))
		return nil
	})
}

// Replace implements [Journal]. It writes a new file and renames it over the
// old one. Errors are those of Append.
func (j *File) Replace(records ...[]byte) error {
	return j.write(records, func() error {
		buf := frame(0, records)
		file, err := writeWhole(j.successor(), buf)
		if err != nil {
			return err // the old file is unchanged
		}
		if err := os.Rename(j.successor(), j.path); err != nil {
			return errors.Join(err, file.Close())
		}
		old := j.file
		j.file, j.size = file, int64(len(buf))
		if err := errors.Join(j.syncName(), old.Close()); err != nil {
			// It is unknown which of the two files a crash would leave.
			j.failed = true
			return err
		}
		return nil
	})
}

// write calls f with the lock held, unless the journal cannot be written.
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

// writeWhole creates a file with the given content, syncs it, and locks it.
func writeWhole(path string, bytes []byte) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	// The new file has another lock than the old one. It is free, because only the process
	// that has locked the old file may create the new one.
	if _, err = lock(file); err == nil {
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

// Replay implements [Journal]. It returns the error of f, or an error of the file
// system, for example because Close or Replace was called meanwhile. After Close it
// returns ErrClosed. If records cannot be read back, the error wraps ErrFailed.
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

// Close implements [Journal].
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
