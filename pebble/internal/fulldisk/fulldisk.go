// Package fulldisk is a file system for tests whose operations fail on demand, as
// they do on a full or broken disk. Unlike Pebble's errorfs, it also fails the
// syncs of data, and a failed write leaves half of its bytes on the disk.
package fulldisk

import (
	"os"

	"github.com/cockroachdb/pebble/vfs"
)

// disk wraps a file system so that a test decides which operations fail. Each operation
// that changes the disk first calls fault, and fails with the error that fault returns.
type disk struct {
	vfs.FS
	fault func(op, name string) error
}

// Wrap returns a file system that behaves like inner, except for the faults that a
// test wants. Before each operation that changes the disk, fault is called,
// possibly from several goroutines. If it returns an error, the operation fails
// with that error. Reads and removals never fail, because they succeed on a full
// disk too.
func Wrap(inner vfs.FS, fault func(op, name string) error) vfs.FS { return &disk{inner, fault} }

func (d *disk) file(op, name string, make func() (vfs.File, error)) (vfs.File, error) {
	if err := d.fault(op, name); err != nil {
		return nil, &os.PathError{Op: op, Path: name, Err: err}
	}
	f, err := make()
	if err != nil {
		return nil, err
	}
	return &file{f, d.fault, name}, nil
}

func (d *disk) do(op, name string, do func() error) error {
	if err := d.fault(op, name); err != nil {
		return &os.PathError{Op: op, Path: name, Err: err}
	}
	return do()
}

// Create implements vfs.FS.
func (d *disk) Create(name string) (vfs.File, error) {
	return d.file("create", name, func() (vfs.File, error) { return d.FS.Create(name) })
}

// OpenReadWrite implements vfs.FS.
func (d *disk) OpenReadWrite(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.file("open", name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(oldname, newname string) (vfs.File, error) {
	return d.file("reuse", newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname) })
}

// OpenDir implements vfs.FS. It never fails on purpose, but syncs of the directory
// can.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{f, d.fault, name}, nil
}

// Link implements vfs.FS.
func (d *disk) Link(oldname, newname string) error {
	return d.do("link", newname, func() error { return d.FS.Link(oldname, newname) })
}

// Rename implements vfs.FS.
func (d *disk) Rename(oldname, newname string) error {
	return d.do("rename", newname, func() error { return d.FS.Rename(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.do("mkdir", dir, func() error { return d.FS.MkdirAll(dir, perm) })
}

// file is a file with faults.
type file struct {
	vfs.File
	fault func(op, name string) error
	name  string
}

func (f *file) do(op string, do func() error) error {
	if err := f.fault(op, f.name); err != nil {
		return &os.PathError{Op: op, Path: f.name, Err: err}
	}
	return do()
}

// Write implements vfs.File.
func (f *file) Write(p []byte) (n int, err error) {
	if err := f.fault("write", f.name); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, &os.PathError{Op: "write", Path: f.name, Err: err}
	}
	return f.File.Write(p)
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, offset int64) (n int, err error) {
	if err := f.fault("write", f.name); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], offset)
		return n, &os.PathError{Op: "write", Path: f.name, Err: err}
	}
	return f.File.WriteAt(p, offset)
}

// Preallocate implements vfs.File.
func (f *file) Preallocate(offset, length int64) error {
	return f.do("preallocate", func() error { return f.File.Preallocate(offset, length) })
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.do("sync", f.File.Sync) }

// SyncData implements vfs.File.
func (f *file) SyncData() error { return f.do("sync", f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.do("sync", func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close implements vfs.File. The file is closed even if Close fails.
func (f *file) Close() error {
	fault := f.fault("close", f.name)
	if err := f.File.Close(); err != nil || fault == nil {
		return err
	}
	return &os.PathError{Op: "close", Path: f.name, Err: fault}
}
