package pebblejournal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/pebble/pebbledb"
)

// Options configures a [Journal]. The zero value is valid.
type Options struct {
	// DB is the database in which the journal is stored. Close does not close it. Nil means a
	// separate database in the directory that is passed to Open.
	DB *pebble.DB
	// Check is called after each write to DB, unless it is nil. If it returns an
	// error, the write fails with that error. A host that hides disk failures from
	// Pebble must set Check; without it, a disk failure under DB ends the process.
	// Check is not used if DB is nil.
	Check func() error
	// Prefix is the prefix of all keys of the journal, so that the same database
	// can contain several journals and other data. No other prefix in the database
	// may begin with it. The default is empty.
	Prefix []byte
	// Pebble configures the database that is opened if DB is nil. Nil means
	// Pebble's defaults without its log messages. If the disk fails, writes
	// return errors that wrap ErrDisk.
	Pebble *pebble.Options
}

// ErrDisk is wrapped by errors after a failure of the disk under the journal's
// database, for example because the disk was full. The cause is wrapped too. After
// the next Open, the journal contains either all records of the failed write or
// none of them. Later writes do not reach the disk. When the disk works again, the
// host closes the journal and opens it again, and the journal continues after the
// acknowledged records.
var ErrDisk = pebbledb.ErrDisk

// Journal is a journal in a Pebble database. Its methods are safe for
// concurrent use, except that Close must not be called during Replay.
type Journal struct {
	prefix  []byte
	failure atomic.Pointer[error] // error of the first failed write

	mu          sync.Mutex
	db          *pebbledb.DB // nil after Close
	first, next uint64       // numbers of the first record and of the next one
	cut         int
	acked       *acknowledged // nil if Open got no directory
}

var _ journal.Journal = (*Journal)(nil)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The value of a record in the database consists of three parts: a checksum of the key and of the
// other two parts (4 bytes, little-endian), a byte that is 1 if the next record was appended in the
// same call, and the record itself.
const (
	sumSize    = 4
	headerSize = sumSize + 1
	numberSize = 8
)

// Open opens the journal in a directory or in Options.DB, or creates an empty one. With Options.DB,
// the directory contains only the file with the number of acknowledged records. Without a directory
// ("") there is no such file, so that a loss of the last records is not detected. Errors are
// Pebble's or wrap journal.ErrCorrupt, which is returned in these cases:
//
//   - Intact records follow a damaged or missing one.
//   - Acknowledged records are missing or damaged.
//   - Other keys have the journal's prefix.
//
// After ErrCorrupt the journal is unchanged. If records are missing, all files of a database in the
// directory are unchanged too.
func Open(dir string, options Options) (_ *Journal, err error) {
	j := &Journal{prefix: options.Prefix}
	fs := fileSystem(options)
	if options.DB != nil {
		j.db = pebbledb.Borrow(options.DB, options.Check)
	} else if j.db, err = openDatabase(fs, dir, options); err != nil {
		return nil, fmt.Errorf("pebblejournal: %w", err)
	}
	next := uint64(0)
	if dir != "" {
		j.acked, next, err = openAcknowledged(fs, dir)
	}
	if err == nil {
		err = j.repair(next)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pebblejournal: %w", err), j.Close())
	}
	return j, nil
}

func fileSystem(options Options) vfs.FS {
	if options.Pebble != nil && options.Pebble.FS != nil {
		return options.Pebble.FS
	}
	return vfs.Default
}

// openDatabase opens the database of a journal.
func openDatabase(fs vfs.FS, dir string, options Options) (*pebbledb.DB, error) {
	pebbleOptions := options.Pebble
	if pebbleOptions == nil {
		pebbleOptions = &pebble.Options{Logger: pebbledb.Silent}
	}
	next, err := readAcknowledged(fs, dir)
	if err != nil {
		return nil, err
	}
	// If records were acknowledged, a new database would hide that they are lost.
	if next > 0 {
		pebbleOptions = pebbleOptions.Clone()
		pebbleOptions.ErrorIfNotExists = true
	}
	return pebbledb.Open(dir, pebbleOptions, func(db *pebble.DB) error {
		options.DB = db
		return CheckAcknowledged(dir, options)
	})
}

// CheckAcknowledged returns an error that wraps journal.ErrCorrupt if Options.DB
// lacks the last record that was acknowledged, according to the file in the
// directory. It changes nothing, so a host can call it before Open, even with a
// read-only database.
func CheckAcknowledged(dir string, options Options) error {
	acknowledged, err := readAcknowledged(fileSystem(options), dir)
	if err != nil || acknowledged == 0 {
		return err
	}
	j := &Journal{prefix: options.Prefix}
	it, err := options.DB.NewIter(&pebble.IterOptions{LowerBound: j.key(0), UpperBound: j.key(math.MaxUint64)})
	if err != nil {
		return err
	}
	next := uint64(1)
	if it.Last() && len(it.Key()) == len(j.prefix)+numberSize {
		next = binary.BigEndian.Uint64(it.Key()[len(j.prefix):]) + 1
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if next < acknowledged {
		return lost(next, acknowledged)
	}
	return nil
}

// lost returns the error for missing records that were acknowledged.
func lost(next, acknowledged uint64) error {
	return fmt.Errorf("%w: records %d to %d were acknowledged but are damaged or missing", journal.ErrCorrupt, next, acknowledged-1)
}

// repair finds the first and the last record, and removes damaged records at the
// end.
func (j *Journal) repair(acknowledged uint64) error {
	first, next, all, err := j.scan(j.db, nil)
	if err != nil {
		return err
	}
	// A damaged record was acknowledged, so remove nothing.
	if next < acknowledged {
		return lost(next, acknowledged)
	}
	if j.first, j.next, j.cut = first, next, all; j.cut == 0 {
		return nil
	}
	batch := j.db.Pebble().NewBatch()
	// Records that were appended in one call are kept or removed together. Intact records of
	// the damaged call are therefore removed too.
	err = batch.DeleteRange(j.key(next), j.key(math.MaxUint64), nil)
	if err == nil {
		err = j.db.Commit(batch)
	}
	return errors.Join(err, batch.Close())
}

// scan calls f with each intact record, in the order of the numbers.
func (j *Journal) scan(db *pebbledb.DB, f func(number uint64, record []byte) error) (first, next uint64, more int, err error) {
	it, err := db.Pebble().NewIter(&pebble.IterOptions{LowerBound: j.key(0), UpperBound: j.key(math.MaxUint64)})
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	type whole struct {
		number uint64
		record []byte
	}
	var batch []whole
	first, next = 1, 1
	expected := uint64(0)
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Key()) != len(j.prefix)+numberSize {
			return 0, 0, 0, fmt.Errorf("%w: key %x is not a record: other data has the journal's prefix %x", journal.ErrCorrupt, it.Key(), j.prefix)
		}
		number, record, together, intact := j.parse(it.Key(), it.Value())
		if expected == 0 {
			first, next, expected = number, number, number
		}
		if intact && (more > 0 || number != expected) {
			return 0, 0, 0, fmt.Errorf("%w: record %d is damaged or missing, and record %d follows", journal.ErrCorrupt, expected, number)
		}
		if !intact {
			more++
			continue
		}
		expected++
		batch = append(batch, whole{number, append([]byte(nil), record...)})
		// More records of the same Append follow. Only when all of them are intact, the call
		// counts as complete.
		if together {
			continue
		}
		for _, w := range batch {
			if f != nil {
				if err := f(w.number, w.record); err != nil {
					return first, next, more, err
				}
			}
		}
		batch, next = batch[:0], expected
	}
	// Intact records of an incomplete Append count like damaged records.
	return first, next, more + len(batch), it.Error()
}

// parse decodes a key and its value.
func (j *Journal) parse(key, value []byte) (number uint64, record []byte, together, intact bool) {
	number = binary.BigEndian.Uint64(key[len(j.prefix):])
	if len(value) < headerSize || binary.LittleEndian.Uint32(value) != sum(number, value[sumSize:]) || value[sumSize] > 1 {
		return number, nil, false, false
	}
	// The byte behind the checksum is 1 if the next record was appended in the same
	// call.
	return number, value[headerSize:], value[sumSize] == 1, true
}

func sum(number uint64, rest []byte) uint32 {
	var n [numberSize]byte
	binary.BigEndian.PutUint64(n[:], number)
	return crc32.Update(crc32.Checksum(n[:], castagnoli), castagnoli, rest)
}

func (j *Journal) key(number uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), j.prefix...), number)
}

// Cut returns how many records Open has removed, because they were damaged or were
// appended in the same call as a damaged record. None of them had been
// acknowledged.
func (j *Journal) Cut() int { return j.cut }

// Append implements journal.Journal. Errors wrap journal.ErrTooLarge,
// journal.ErrClosed, journal.ErrFailed or ErrDisk, or come from Pebble. After
// ErrFailed, ErrDisk or an error of Pebble, the host must open the journal again.
// Until then it is unknown whether the journal contains the records.
func (j *Journal) Append(records ...[]byte) error { return j.write(records, false) }

// Replace implements journal.Journal. Errors are those of Append.
func (j *Journal) Replace(records ...[]byte) error { return j.write(records, true) }

func (j *Journal) write(records [][]byte, replace bool) error {
	if err := journal.CheckSize(records); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	failed := j.Err()
	switch {
	case j.db == nil:
		return journal.ErrClosed
	case failed != nil:
		return fmt.Errorf("%w: %w", journal.ErrFailed, failed)
	}
	if err := j.commit(records, replace); err != nil {
		err = fmt.Errorf("pebblejournal: %w", err)
		j.failure.Store(&err)
		return err
	}
	return nil
}

// Err returns the error of the first write that has failed, or nil. After such an error all later
// writes fail, and the host must open the journal again. Err does not access the disk.
func (j *Journal) Err() error {
	if err := j.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (j *Journal) commit(records [][]byte, replace bool) error {
	if replace && len(records) == 0 { // because the next Open restarts at 1
		if err := j.acked.reset(); err != nil {
			return err
		}
	}
	batch := j.db.Pebble().NewBatch()
	err := j.fill(batch, records, replace)
	if err == nil {
		err = j.db.Commit(batch)
	}
	if err = errors.Join(err, batch.Close()); err != nil {
		return err
	}
	if replace {
		j.first = j.next
	}
	j.next += uint64(len(records))
	if len(records) == 0 {
		return nil
	}
	return j.acked.note(j.next)
}

func (j *Journal) fill(batch *pebble.Batch, records [][]byte, replace bool) error {
	if replace {
		if err := batch.DeleteRange(j.key(j.first), j.key(j.next), nil); err != nil {
			return err
		}
	}
	for i, record := range records {
		together := byte(0)
		if i < len(records)-1 {
			together = 1
		}
		number := j.next + uint64(i)
		rest := append([]byte{together}, record...)
		value := binary.LittleEndian.AppendUint32(make([]byte, 0, headerSize+len(record)), sum(number, rest))
		if err := batch.Set(j.key(number), append(value, rest...), nil); err != nil {
			return err
		}
	}
	return nil
}

// Replay implements journal.Journal. Close must not be called during Replay.
func (j *Journal) Replay(f func(record []byte) error) error {
	j.mu.Lock()
	if j.db == nil {
		j.mu.Unlock()
		return journal.ErrClosed
	}
	db, next, end := j.db, j.first, j.next
	j.mu.Unlock()
	_, _, _, err := j.scan(db, func(number uint64, record []byte) error {
		if number != next || number == end {
			return nil // appended or replaced since
		}
		next++
		return f(record)
	})
	if err == nil && next < end {
		err = fmt.Errorf("%w: record %d of %d cannot be read back", journal.ErrFailed, next, end)
	}
	return err
}

// Close implements journal.Journal. It closes the database unless it is
// Options.DB. The error wraps ErrDisk if the disk under that database has
// failed.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db == nil {
		return nil
	}
	db := j.db
	j.db = nil
	return errors.Join(j.acked.close(), db.Close())
}
