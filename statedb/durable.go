package statedb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// Disk is an ordered key-value store on which a [Store] keeps its contents. Package
// pebble/pebblestate is an implementation. A Disk belongs to one Store, which calls it from one
// goroutine at a time.
type Disk interface {
	// Write stores all records and makes them durable before it returns. If Write
	// fails or the process dies, either all of the records are stored or none.
	Write(records []Record) error
	// Read calls f for every record in the order of the keys, and stops at the first error. The
	// slices are valid only during the call of f.
	Read(f func(key, value []byte) error) error
}

// Record is a key with its value, as a [Disk] stores it.
type Record struct {
	// Key is the key.
	Key []byte
	// Value is the value; nil deletes the key.
	Value []byte
}

// The disk stores the values of one root, the flat root. For each other root, it
// stores the write set that leads to that root from another root, its base. The
// flat root is near the oldest root, so each value is written twice: with its
// block, and when the flat root passes that block. Each change is one call of
// Write, so a disk always has a consistent state.
//
//	c ‖ code hash   code
//	k ‖ code hash   nothing: the code is kept for good
//	m               version, layout, flat root, and the line of canonical roots
//	r ‖ root        commits ‖ parents ‖ hashes of code; lists begin with their
//	                length, and numbers are varints
//	v ‖ key         value
//	w ‖ root        base ‖ write set from it ‖ checksum of root and all before;
//	                missing for the flat root
const (
	codeRecord  = 'c'
	keptRecord  = 'k'
	metaRecord  = 'm'
	rootRecord  = 'r'
	valueRecord = 'v'
	writeRecord = 'w'

	diskVersion = 4
)

func hashKey(kind byte, h common.Hash) []byte { return append([]byte{kind}, h[:]...) }

// write writes records to the disk.
func (s *Store) write(records []Record) error {
	// An earlier write has failed, and it is unknown what the disk contains. No further write
	// is made until the host opens the store again.
	if s.broken != nil {
		return s.broken
	}
	if len(records) == 0 {
		return nil
	}
	if err := s.cfg.Disk.Write(records); err != nil {
		s.broken = fmt.Errorf("%w: %w", ErrDisk, err)
		return s.broken
	}
	size := 0
	for _, r := range records {
		size += len(r.Key) + len(r.Value)
	}
	s.cfg.Metrics.Add(CountDiskBytes, "", size)
	return nil
}

// records returns the disk records that store a change, in the order of writing.
func (s *Store) records(c *change) (records []Record) {
	add := func(kind byte, h common.Hash, value []byte) {
		records = append(records, Record{hashKey(kind, h), value})
	}
	for _, b := range c.code {
		add(codeRecord, b.hash, b.code)
	}
	for _, h := range c.keep {
		add(keptRecord, h, []byte{})
	}
	for _, h := range c.drop {
		add(codeRecord, h, nil)
	}
	for root, l := range c.links {
		add(rootRecord, root, l.encode())
	}
	if c.fresh != nil {
		root := c.fresh.tree.root
		add(writeRecord, root, encodeWrites(root, c.fresh.base, c.fresh.writes))
	}
	for root, writes := range c.writes {
		add(writeRecord, root, encodeWrites(root, c.links[root].base, writes))
	}
	for _, root := range c.gone {
		add(rootRecord, root, nil)
		add(writeRecord, root, nil)
	}
	if c.flat != s.flat {
		add(writeRecord, c.flat, nil)
	}
	if c.flat != s.flat || !slices.Equal(c.line, s.line) {
		records = append(records, s.meta(c.flat, c.line))
	}
	// The values of the tree follow at the end, so only the other records are sorted here.
	slices.SortFunc(records, func(a, b Record) int { return bytes.Compare(a.Key, b.Key) })
	if c.flat != s.flat {
		records = appendValues(records, c.values)
	}
	return records
}

// appendValues appends the disk records that store or delete the written values.
func appendValues(records []Record, writes []ubt.Write) []Record {
	const size = 1 + StemSize + 1
	keys := make([]byte, 0, size*len(writes))
	records = slices.Grow(records, len(writes))
	for i := range writes {
		w := &writes[i]
		keys = append(append(keys, valueRecord), w.Key[:]...)
		r := Record{Key: keys[len(keys)-size : len(keys) : len(keys)]}
		if !w.Deleted {
			r.Value = w.Value[:]
		}
		records = append(records, r)
	}
	return records
}

// encode encodes the link as the value of the root's record on the disk.
func (l link) encode() []byte {
	b := binary.AppendUvarint(nil, l.commits)
	for _, hashes := range [][]common.Hash{l.parents, l.codes} {
		b = binary.AppendUvarint(b, uint64(len(hashes)))
		for _, h := range hashes {
			b = append(b, h[:]...)
		}
	}
	return b
}

// decodeLink decodes a root record, which tells how the root is related to others.
func decodeLink(b []byte) (l link, ok bool) {
	commits, n := binary.Uvarint(b)
	if n <= 0 || commits == 0 {
		return l, false
	}
	l.commits, b = commits, b[n:]
	for _, hashes := range []*[]common.Hash{&l.parents, &l.codes} {
		count, n := binary.Uvarint(b)
		if n <= 0 || count > uint64(len(b)-n)/common.HashLength {
			return l, false
		}
		for b = b[n:]; count > 0; count-- {
			*hashes, b = append(*hashes, common.Hash(b[:common.HashLength])), b[common.HashLength:]
		}
	}
	// The result has no base, because the root's write record contains it.
	return l, len(b) == 0 && len(l.parents) > 0
}

// encodeWrites returns the value of a write record: base, writes and checksum.
func encodeWrites(root, base common.Hash, writes []ubt.Write) []byte {
	b := make([]byte, 0, 2*common.HashLength+len(writes)*writeSize+checksumSize)
	b = append(append(b, root[:]...), base[:]...)
	for i := range writes {
		w := &writes[i]
		// A write is its key, followed by 0 if it deletes the key, or by 1 and the
		// new value.
		if b = append(b, w.Key[:]...); w.Deleted {
			b = append(b, 0)
		} else {
			b = append(append(b, 1), w.Value[:]...)
		}
	}
	// The checksum also covers the root, which is a part of the record's key and
	// not of its value.
	return append(b, checksum(b)...)[common.HashLength:]
}

// writeSize is the length of an encoded write that sets a value.
const writeSize = 2*common.HashLength + 1

// decodeWrites decodes the value of a write record.
func decodeWrites(root common.Hash, b []byte) (base common.Hash, writes []ubt.Write, ok bool) {
	end := len(b) - checksumSize
	if end < common.HashLength || !bytes.Equal(checksum(root[:], b[:end]), b[end:]) {
		return base, nil, false
	}
	base, b = common.Hash(b), b[common.HashLength:end]
	writes = make([]ubt.Write, 0, len(b)/writeSize)
	for len(b) > 0 {
		if len(b) < 33 || b[32] > 1 || b[32] == 1 && len(b) < 65 {
			return base, nil, false
		}
		w := ubt.Write{Key: Key(b[:32]), Deleted: b[32] == 0}
		if b = b[33:]; !w.Deleted {
			w.Value, b = [32]byte(b[:32]), b[32:]
		}
		writes = append(writes, w)
	}
	return base, writes, true
}

func (s *Store) meta(flat common.Hash, line []common.Hash) Record {
	b := append([]byte{diskVersion, byte(len(layout))}, layout...)
	b = append(b, flat[:]...)
	for _, root := range line {
		b = append(b, root[:]...)
	}
	return Record{[]byte{metaRecord}, b}
}
