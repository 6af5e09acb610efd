package statedb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// Disk is an ordered key-value store, for example package statedb/pebblestore.
// A Disk belongs to one [Store], which calls it from one goroutine at a time.
type Disk interface {
	// Write makes all records durable before it returns. If it fails or the
	// process dies, either all or none of them are written.
	Write(records []Record) error
	// Read calls f for every record in the order of keys, and stops at the
	// first error. The slices are valid only during the call.
	Read(f func(key, value []byte) error) error
}

// Record is a key with its value, as a [Disk] stores it.
type Record struct {
	// Key is the key.
	Key []byte
	// Value is the value; nil deletes the key.
	Value []byte
}

// The disk has the values of the canonical root by stem, and for each other
// root the write set that leads to it from another root, its base. Each change
// is one Write, so a disk always has a consistent state.
//
//	c ‖ code hash   code
//	m               version, profile, and the line of canonical roots
//	r ‖ root        number of parents, as a varint ‖ parents ‖ base ‖ write set
//	s ‖ stem        the set of indices ‖ their values
const (
	codeRecord = 'c'
	metaRecord = 'm'
	rootRecord = 'r'
	stemRecord = 's'

	diskVersion    = 2
	maxProfileName = 255
)

func rootKey(root common.Hash) []byte { return append([]byte{rootRecord}, root[:]...) }

// write writes records to the disk. After a failure the contents of the disk
// are unknown, and nothing more is written.
func (s *Store) write(records []Record) error {
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
	s.cfg.Metrics.count(CountDiskBytes, size)
	return nil
}

// added returns the records of a root with a new link, and of new code.
func (s *Store) added(p *published, l link, code map[common.Hash][]byte) (records []Record) {
	for h, c := range code {
		if _, known := s.codeOf(h); !known {
			records = append(records, Record{append([]byte{codeRecord}, h[:]...), c})
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return bytes.Compare(a.Key, b.Key) })
	if !l.equal(p.link) {
		records = append(records, Record{rootKey(p.tree.Root()), s.entry(p.tree, l)})
	}
	return records
}

// moved returns the records of a new canonical root, of new links and of
// deleted roots.
func (s *Store) moved(canonical common.Hash, line []common.Hash, links map[common.Hash]link, gone []common.Hash) (records []Record) {
	for root, l := range links {
		records = append(records, Record{rootKey(root), s.entry(s.roots[root].tree, l)})
	}
	for _, root := range gone {
		records = append(records, Record{rootKey(root), nil})
	}
	slices.SortFunc(records, func(a, b Record) int { return bytes.Compare(a.Key, b.Key) })
	for stem, values := range s.roots[canonical].tree.ChangedStems(s.roots[s.canonical].tree) {
		records = append(records, Record{append([]byte{stemRecord}, stem...), values})
	}
	return append(records, s.meta(line))
}

// entry encodes a root with the write set that leads to it from its base.
func (s *Store) entry(tree ubt.Tree, l link) []byte {
	b := binary.AppendUvarint(nil, uint64(len(l.parents)))
	for _, parent := range l.parents {
		b = append(b, parent[:]...)
	}
	b = append(b, l.base[:]...)
	if l.base == tree.Root() {
		return b
	}
	for w := range tree.Diff(s.roots[l.base].tree) {
		if b = append(b, w.Key[:]...); w.Deleted {
			b = append(b, 0)
		} else {
			b = append(append(b, 1), w.Value[:]...)
		}
	}
	return b
}

func (s *Store) meta(line []common.Hash) Record {
	name := s.cfg.Profile.Name
	b := append([]byte{diskVersion, byte(len(name))}, name...)
	for _, root := range line {
		b = append(b, root[:]...)
	}
	return Record{[]byte{metaRecord}, b}
}

// entryOf is a decoded root record.
type entryOf struct {
	link
	writes []ubt.Write
}

func decodeEntry(b []byte) (e entryOf, ok bool) {
	parents, n := binary.Uvarint(b)
	// The base follows the parents.
	if n <= 0 || parents == 0 || parents >= uint64(len(b)-n)/32 {
		return e, false
	}
	for b = b[n:]; uint64(len(e.parents)) < parents; b = b[32:] {
		e.parents = append(e.parents, common.Hash(b[:32]))
	}
	e.base = common.Hash(b[:32])
	for b = b[32:]; len(b) > 0; {
		if len(b) < 33 || b[32] > 1 || b[32] == 1 && len(b) < 65 {
			return e, false
		}
		w := ubt.Write{Key: Key(b[:32]), Deleted: b[32] == 0}
		if b = b[33:]; !w.Deleted {
			w.Value, b = [32]byte(b[:32]), b[32:]
		}
		e.writes = append(e.writes, w)
	}
	return e, true
}

// Open returns a store. If cfg.Disk was used before, the store has the same
// contents as then, except pins. Open computes each root again and compares it.
// The error wraps ErrConfig, ErrCorrupt or ErrDisk.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := newStore(cfg)
	if cfg.Disk == nil {
		return s, nil
	}
	l := loader{store: s, entries: map[common.Hash]entryOf{}}
	if err := cfg.Disk.Read(l.record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	if l.fresh {
		if err := s.write([]Record{s.meta(s.line)}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// loader builds a store from records.
type loader struct {
	store   *Store
	tree    ubt.Tree // tree of the stems
	batch   []ubt.Write
	entries map[common.Hash]entryOf
	fresh   bool
	hasMeta bool
	bad     error
}

// loadBatch is the number of values that are added to the tree at once.
const loadBatch = 1 << 16

func (l *loader) fail(format string, args ...any) {
	if l.bad == nil {
		l.bad = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

// record adds one record. It keeps errors for finish, so that they are not
// mistaken for errors of the disk.
func (l *loader) record(key, value []byte) error {
	if l.bad != nil || len(key) == 0 {
		return nil
	}
	rest := key[1:]
	switch key[0] {
	case codeRecord:
		if h := keccak(value); !bytes.Equal(h[:], rest) {
			l.fail("code record %x has code with the hash %s", rest, h)
			return nil
		}
		l.store.code[common.Hash(rest)] = bytes.Clone(value)
	case metaRecord:
		l.meta(value)
	case rootRecord:
		e, ok := decodeEntry(value)
		if !ok || len(rest) != common.HashLength {
			l.fail("root record %x", key)
			return nil
		}
		l.entries[common.Hash(rest)] = e
	case stemRecord:
		writes, err := ubt.DecodeStem(rest, value)
		if err != nil {
			l.fail("stem record %x: %v", key, err)
			return nil
		}
		if l.batch = append(l.batch, writes...); len(l.batch) >= loadBatch {
			l.flush()
		}
	default:
		l.fail("record %x", key)
	}
	return nil
}

func (l *loader) meta(b []byte) {
	l.hasMeta = true
	if len(b) < 2 || b[0] != diskVersion || len(b) < 2+int(b[1]) {
		l.fail("meta record has version %d, want %d", slices.Concat(b, []byte{0})[0], diskVersion)
		return
	}
	nameEnd := 2 + int(b[1])
	name, line := string(b[2:nameEnd]), b[nameEnd:]
	if want := l.store.cfg.Profile.Name; name != want {
		l.bad = fmt.Errorf("%w: the disk has the profile %q, want %q", ErrConfig, name, want)
		return
	}
	if len(line) == 0 || len(line)%common.HashLength != 0 {
		l.fail("line of %d bytes, want a positive multiple of 32", len(line))
		return
	}
	l.store.line = nil
	for ; len(line) > 0; line = line[common.HashLength:] {
		l.store.line = append(l.store.line, common.Hash(line[:common.HashLength]))
	}
}

func (l *loader) flush() {
	var err error
	if l.tree, err = l.tree.Apply(&l.store.cfg.Profile.Hasher, l.batch); err != nil {
		l.fail("stems: %v", err)
	}
	l.batch = l.batch[:0]
}

// finish checks the canonical root and derives all others from it.
func (l *loader) finish() error {
	l.flush()
	s := l.store
	s.canonical = s.line[len(s.line)-1]
	switch {
	case l.bad != nil:
		return l.bad
	case !l.hasMeta && (len(l.entries) > 0 || l.tree.Root() != EmptyRoot):
		l.fail("no meta record")
	case l.tree.Root() != s.canonical:
		l.fail("root of the stems is %s, want %s", l.tree.Root(), s.canonical)
	}
	if l.bad != nil {
		return l.bad
	}
	l.fresh = !l.hasMeta
	if s.canonical != EmptyRoot {
		if base := l.entries[s.canonical].base; base != s.canonical {
			l.fail("base of the canonical root %s is %s, want itself", s.canonical, base)
		}
		s.roots[s.canonical] = &published{tree: l.tree, link: l.entries[s.canonical].link}
	}
	for root := range l.entries {
		l.derive(root)
	}
	l.checkParents()
	for _, root := range s.line {
		if s.roots[root] == nil {
			l.fail("root %s of the line is missing", root)
		}
	}
	return l.bad
}

// checkParents fails unless all parents exist and each root descends from the
// empty root by first parents.
func (l *loader) checkParents() {
	descends := map[common.Hash]bool{EmptyRoot: true}
	for root, p := range l.store.roots {
		if i := slices.IndexFunc(p.parents, func(r common.Hash) bool { return l.store.roots[r] == nil }); i >= 0 {
			l.fail("parent of root %s is missing: %s", root, p.parents[i])
			return
		}
		var line []common.Hash
		for r := root; !descends[r]; r = l.store.roots[r].parents[0] {
			if line = append(line, r); l.store.roots[r] == nil || len(line) > len(l.store.roots) {
				l.fail("root %s does not descend from the empty root: %s is missing or an ancestor of itself", root, r)
				return
			}
		}
		for _, r := range line {
			descends[r] = true
		}
	}
}

// derive computes the tree of a root, after those of its bases.
func (l *loader) derive(root common.Hash) {
	var chain []common.Hash
	for l.store.roots[root] == nil {
		e, ok := l.entries[root]
		if !ok || len(chain) > len(l.entries) {
			l.fail("root %s has no base", root)
			return
		}
		chain = append(chain, root)
		root = e.base
	}
	for _, root := range slices.Backward(chain) {
		e := l.entries[root]
		tree, err := l.store.roots[e.base].tree.Apply(&l.store.cfg.Profile.Hasher, e.writes)
		if err != nil || tree.Root() != root {
			l.fail("root %s: the writes lead to %s: %v", root, tree.Root(), err)
			return
		}
		l.store.roots[root] = &published{tree: tree, link: e.link}
	}
}
