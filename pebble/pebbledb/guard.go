package pebbledb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
)

// ErrDisk is wrapped by all errors of a database after its disk has failed.
var ErrDisk = errors.New("pebble: the disk failed")

// ErrInUse is wrapped by the error of Open if this or another process has the database open.
var ErrInUse = errors.New("pebble: the database is in use, and only one process can use it")

// guard is the file system that Pebble uses. It hides disk failures from Pebble,
// because Pebble cannot continue after a failed write: it panics or retries
// endlessly, often on goroutines from which no caller can recover. From the first
// failed operation on, guard
//
//   - keeps the error, which err returns;
//   - changes nothing on the disk any more, so that the next Open recovers as after
//     a crash at this moment;
//   - reports success to Pebble, and keeps the files that Pebble creates from then
//     on in memory.
type guard struct {
	vfs.FS
	memory  *vfs.MemFS
	failure atomic.Pointer[failure]
	damaged atomic.Bool // Pebble cannot read a file; see reportDamage
}

type failure struct{ err error }

var _ vfs.FS = (*guard)(nil)

func newGuard(fs vfs.FS) *guard { return &guard{FS: fs, memory: vfs.NewMem()} }

// err returns the failure of the disk, or nil. It wraps ErrDisk and the cause.
func (g *guard) err() error {
	if f := g.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// fail keeps the first failure.
func (g *guard) fail(cause error) {
	g.failure.CompareAndSwap(nil, &failure{fmt.Errorf("%w: %w", ErrDisk, cause)})
}

// do runs an operation that changes the disk, and reports whether it has succeeded.
func (g *guard) do(operation func() error) bool {
	// Nothing may change on the disk after a failure.
	if g.err() != nil {
		return false
	}
	if err := operation(); err != nil {
		// Store the error before Pebble sees success. A writer that checks for the
		// error after its commit then never mistakes a lost write for a durable
		// one.
		g.fail(err)
		return false
	}
	return true
}

// file creates or opens a file by calling make with the disk.
func (g *guard) file(name string, make func(vfs.FS) (vfs.File, error)) (f vfs.File, err error) {
	made := g.do(func() error {
		f, err = make(g.FS)
		return err
	})
	if made {
		return &guarded{File: f, guard: g, readBack: filepath.Ext(name) == ".sst"}, nil
	}
	// After a failure, a file in memory lets Pebble continue without changing the
	// disk.
	if err := g.memory.MkdirAll(g.PathDir(name), 0o755); err != nil {
		return nil, err
	}
	return make(g.memory)
}

// Create implements vfs.FS.
func (g *guard) Create(name string) (vfs.File, error) {
	return g.file(name, func(fs vfs.FS) (vfs.File, error) { return fs.Create(name) })
}

// OpenReadWrite implements vfs.FS.
func (g *guard) OpenReadWrite(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.file(name, func(fs vfs.FS) (vfs.File, error) { return fs.OpenReadWrite(name, opts...) })
}

// ReuseForWrite implements vfs.FS. After a failure of the disk, all files are written
// to memory, and an old file on the disk cannot be reused there. ReuseForWrite then
// creates a new file, which the interface allows.
func (g *guard) ReuseForWrite(oldname, newname string) (vfs.File, error) {
	return g.file(newname, func(fs vfs.FS) (vfs.File, error) {
		if fs == vfs.FS(g.memory) {
			return fs.Create(newname)
		}
		return fs.ReuseForWrite(oldname, newname)
	})
}

// Open implements vfs.FS.
func (g *guard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.err() != nil {
		if f, err := g.memory.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	return g.FS.Open(name, opts...)
}

// OpenDir implements vfs.FS.
func (g *guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guarded{File: f, guard: g}, nil
}

// Stat implements vfs.FS.
func (g *guard) Stat(name string) (os.FileInfo, error) {
	if g.err() != nil {
		if info, err := g.memory.Stat(name); err == nil {
			return info, nil
		}
	}
	return g.FS.Stat(name)
}

// Lock implements vfs.FS. The error wraps ErrInUse, unless the lock's file could not be created.
func (g *guard) Lock(name string) (io.Closer, error) {
	lock, err := g.FS.Lock(name)
	var file *fs.PathError
	if err != nil && !errors.As(err, &file) {
		err = fmt.Errorf("%w: %s: %w", ErrInUse, name, err)
	}
	return lock, err
}

// Link implements vfs.FS.
func (g *guard) Link(oldname, newname string) error {
	if !g.do(func() error { return g.FS.Link(oldname, newname) }) {
		_ = g.memory.Link(oldname, newname) // if the file is in memory
	}
	return nil
}

// Rename implements vfs.FS.
func (g *guard) Rename(oldname, newname string) error {
	if !g.do(func() error { return g.FS.Rename(oldname, newname) }) {
		_ = g.memory.Rename(oldname, newname) // if the file is in memory
	}
	return nil
}

// Remove implements vfs.FS. Pebble can go on if it fails.
func (g *guard) Remove(name string) error {
	if g.err() == nil {
		return g.FS.Remove(name)
	}
	_ = g.memory.Remove(name) // if the file is in memory
	return nil
}

// RemoveAll implements vfs.FS. Pebble can go on if it fails.
func (g *guard) RemoveAll(name string) error {
	if g.err() == nil {
		return g.FS.RemoveAll(name)
	}
	_ = g.memory.RemoveAll(name) // if the file is in memory
	return nil
}

// guarded is a file or directory that was opened before the disk failed. After the
// failure, changes to it have no effect on the disk.
type guarded struct {
	vfs.File
	guard *guard
	// readBack is set for tables, which Pebble reads after it has written them. A
	// table that was not finished before the failure must not look complete, so
	// Pebble sees the error and creates the table again in memory.
	readBack bool
}

func (f *guarded) do(operation func() error) error {
	if f.guard.do(operation) || !f.readBack {
		return nil
	}
	return f.guard.err()
}

// Write implements vfs.File.
func (f *guarded) Write(p []byte) (int, error) {
	err := f.do(func() error {
		_, err := f.File.Write(p)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteAt implements vfs.File.
func (f *guarded) WriteAt(p []byte, offset int64) (int, error) {
	err := f.do(func() error {
		_, err := f.File.WriteAt(p, offset)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Preallocate implements vfs.File. Pebble can go on if it fails.
func (f *guarded) Preallocate(offset, length int64) error {
	if f.guard.err() != nil {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Sync implements vfs.File.
func (f *guarded) Sync() error { return f.do(f.File.Sync) }

// SyncData implements vfs.File.
func (f *guarded) SyncData() error { return f.do(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *guarded) SyncTo(length int64) (full bool, err error) {
	err = f.do(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close implements vfs.File. It closes the file in any case.
func (f *guarded) Close() error {
	err := f.File.Close()
	return f.do(func() error { return err })
}

// logger receives the fatal errors of Pebble, which would end the process, and treats them
// as a failure of the disk: it stores the error in guard and returns, and nothing changes
// the disk any more. Failed operations never get here, because guard hides them from
// Pebble. The remaining fatal errors are about files that Pebble finds missing or damaged.
type logger struct {
	pebble.Logger
	guard *guard
}

// Fatalf implements pebble.Logger.
func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.guard.fail(err)
	l.Infof("%v", err)
}

// tracer does the same as logger, for a Pebble logger that also traces.
type tracer struct {
	pebble.LoggerAndTracer
	logger logger
}

// Fatalf implements pebble.Logger.
func (t tracer) Fatalf(format string, args ...any) { t.logger.Fatalf(format, args...) }
