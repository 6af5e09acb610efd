package pebbledb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/pebble/internal/fulldisk"
)

const (
	writers = 3
	batches = 16 // of each writer
)

// value is the value that a writer puts under the key of its batch. It is long
// enough to make memtables fill up, flush and compact.
func value(writer, batch int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d/%d;", writer, batch), 60+40*(batch%5))
}

func key(writer, batch int) []byte { return fmt.Appendf(nil, "%d/%03d", writer, batch) }

// cache is shared, because a cache for each database takes most of the time.
var cache = pebble.NewCache(1 << 20)

// small makes Pebble do in a few commits all that it does in a database's life:
// it rotates and reuses logs, flushes, stalls writers, compacts and rotates manifests.
func small(fs vfs.FS) *pebble.Options {
	return &pebble.Options{
		FS: fs, Logger: Silent, MemTableSize: 8 << 10, MemTableStopWritesThreshold: 2, L0CompactionThreshold: 1, L0StopWritesThreshold: 4,
		MaxManifestFileSize: 256, FlushDelayDeleteRange: time.Microsecond, Cache: cache,
	}
}

// write lets writers commit until they have written all or a commit fails. It
// returns how many batches of each were acknowledged, and the errors.
func write(t *testing.T, db *DB) (acknowledged [writers]int, failed []error) {
	t.Helper()
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for b := range batches {
				if errs[w] = commit(db, w, b); errs[w] != nil {
					return
				}
				acknowledged[w]++
			}
		})
	}
	in(t, "writers hang", all.Wait)
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return acknowledged, failed
}

// commit writes one batch: a pair of keys, and now and then a deletion of a
// range that was never there.
func commit(db *DB, writer, batch int) error {
	b := db.Pebble().NewBatch()
	err := errors.Join(b.Set(key(writer, batch), value(writer, batch), nil), b.Set(append(key(writer, batch), '+'), nil, nil))
	if batch%6 == 5 {
		err = errors.Join(err, b.DeleteRange([]byte("a"), []byte("b"), nil))
	}
	return errors.Join(err, db.Commit(b), b.Close())
}

// in fails the test with its name if something does not return.
func in(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	wait.Receive(t, done, "%s", what)
}

// holds checks that a database has what was acknowledged, and batches as a whole or not at all.
func holds(t *testing.T, db *DB, acknowledged [writers]int) {
	t.Helper()
	has := func(key []byte) ([]byte, bool) {
		v, closer, err := db.Pebble().Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil, false
		}
		require.NoError(t, err)
		v = bytes.Clone(v)
		require.NoError(t, closer.Close())
		return v, true
	}
	for w := range writers {
		for b := range batches {
			v, first := has(key(w, b))
			_, second := has(append(key(w, b), '+'))
			require.Equal(t, first, second, "half a batch")
			require.False(t, b < acknowledged[w] && !first, "batch %d of writer %d was acknowledged and is gone", b, w)
			require.False(t, b > acknowledged[w] && first, "batch %d of writer %d was never written", b, w)
			require.True(t, !first || bytes.Equal(v, value(w, b)))
		}
	}
}

// The disk fails at any operation that changes it: for good or once. The
// process goes on, every writer gets the reason, Close returns, and the next
// Open has what was acknowledged. At every other operation a power cut follows,
// so that unsynced data is gone.
func TestDiskFailsAtAnyOperation(t *testing.T) {
	for _, forGood := range []bool{true, false} {
		t.Run(fmt.Sprintf("for good %v", forGood), func(t *testing.T) {
			t.Parallel()
			at := int64(1)
			for ; failsAt(t, at, forGood, (at%2 == 0) == forGood); at++ {
			}
			require.Greater(t, at, int64(100), "the sweep must reach flushes, compactions and manifests")
			t.Logf("%d operations to fail at", at-1)
		})
	}
}

func failsAt(t *testing.T, at int64, forGood, powerCut bool) (failed bool) {
	t.Helper()
	disk := vfs.NewStrictMem()
	var operations atomic.Int64
	fault := func(op, _ string) error {
		if n := operations.Add(1); op != "preallocate" && (n == at || forGood && n > at) {
			return syscall.ENOSPC
		}
		return nil
	}
	var acknowledged [writers]int
	db, err := Open("a/db", small(fulldisk.Wrap(disk, fault)))
	if err == nil {
		var errs []error
		acknowledged, errs = write(t, db)
		for _, err := range errs {
			require.ErrorIs(t, err, ErrDisk, "operation %d", at)
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		if db.Err() != nil {
			require.ErrorIs(t, commit(db, 0, batches), ErrDisk, "no write is acknowledged after a failure")
		} else {
			require.Empty(t, errs)
		}
		holds(t, db, acknowledged) // still readable
		in(t, "Close hangs", func() { err = db.Close() })
	}
	failed = operations.Load() >= at
	if err != nil {
		require.True(t, failed)
		require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", at)
	}
	if powerCut {
		disk.ResetToSyncedState()
	}
	db, err = Open("a/db", small(disk))
	require.NoError(t, err, "operation %d", at)
	holds(t, db, acknowledged)
	require.NoError(t, commit(db, 0, batches), "it goes on")
	require.NoError(t, db.Close())
	return failed
}

// A failure on a real disk names the file, and later operations leave the disk as it was.
func TestFailureFreezesTheDisk(t *testing.T) {
	dir := t.TempDir()
	var full atomic.Bool
	db, err := Open(dir, small(fulldisk.Wrap(vfs.Default, func(string, string) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return nil
	})))
	require.NoError(t, err)
	require.NoError(t, commit(db, 0, 0))
	require.NoError(t, db.Err())
	full.Store(true)
	err = commit(db, 0, 1)
	require.ErrorIs(t, err, ErrDisk)
	require.ErrorContains(t, err, dir, "it names the file")
	require.ErrorContains(t, err, "no space left on device")
	full.Store(false)
	before := contents(t, dir)
	for b := 2; b < 20; b++ {
		require.ErrorIs(t, commit(db, 0, b), ErrDisk)
	}
	require.NoError(t, db.Pebble().Flush(), "Pebble sees a disk that works")
	require.ErrorIs(t, db.Close(), ErrDisk)
	require.Equal(t, before, contents(t, dir))

	db, err = Open(dir, small(vfs.Default))
	require.NoError(t, err)
	holds(t, db, [writers]int{0: 1})
	require.NoError(t, db.Close())
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := make(map[string]string)
	for _, e := range entries {
		raw, err := os.ReadFile(dir + "/" + e.Name())
		require.NoError(t, err)
		all[e.Name()] = string(raw)
	}
	return all
}

// withoutTables is a disk on which tables cannot be opened. They are in its lists, so that Pebble
// looks for them only when it reads. Its goroutines read before or after Open has returned; here
// they wait until then.
type withoutTables struct {
	vfs.FS
	opened chan struct{}
}

func (w withoutTables) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-w.opened
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return w.FS.Open(name, options...)
}

// A table that is gone makes Pebble call Logger.Fatalf on the goroutine that
// needs it, which may be one of Pebble's. The process goes on and writes fail.
func TestMissingTable(t *testing.T) {
	disk := vfs.NewMem()
	db, err := Open("db", small(disk))
	require.NoError(t, err)
	write(t, db)
	require.NoError(t, db.Pebble().Flush())
	require.NoError(t, db.Close())
	gone := withoutTables{disk, make(chan struct{})}
	db, err = Open("db", small(gone))
	require.NoError(t, err)
	close(gone.opened)
	_, _, err = db.Pebble().Get(key(0, 0))
	require.Error(t, err)
	require.ErrorIs(t, commit(db, 0, batches), ErrDisk)
	require.ErrorContains(t, db.Err(), ".sst", "it names the file")
	in(t, "Close hangs", func() { require.ErrorIs(t, db.Close(), ErrDisk) })
}

// A database of another part of the host fails as that part says.
func TestBorrow(t *testing.T) {
	plain, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: Silent})
	require.NoError(t, err)
	var failure error
	db := Borrow(plain, func() error { return failure })
	require.NoError(t, commit(db, 0, 0))
	failure = io.ErrShortWrite
	require.ErrorIs(t, commit(db, 0, 1), io.ErrShortWrite)
	require.NoError(t, db.Close(), "it is not closed")
	require.NoError(t, commit(Borrow(plain, nil), 0, 2))
	require.NoError(t, plain.Close())
}
