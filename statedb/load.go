package statedb

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// Open returns a store. If an earlier store has used cfg.Disk, the new store has the
// contents of the earlier one, except for its pins.
//
// Open checks all records. It computes the root of the oldest kept state, which
// takes time in proportion to the size of that state. For the other roots, it only
// checks the checksums of the write sets that lead to them. Their trees are
// computed, and compared with their roots, when they are first read. The error
// wraps ErrConfig, ErrCorrupt or ErrDisk.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := newStore(cfg)
	if cfg.Disk == nil {
		return s, nil
	}
	l := loader{store: s, builder: ubt.NewBuilder(&hasher), links: map[common.Hash]link{}, writes: map[common.Hash][]ubt.Write{}, bases: map[common.Hash]common.Hash{}}
	if err := cfg.Disk.Read(l.record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	if l.fresh {
		if err := s.write([]Record{s.meta(s.flat, s.line)}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// loader builds a store from the records that it reads from a disk.
type loader struct {
	store   *Store
	builder *ubt.Builder
	tree    ubt.Tree // tree of the values on the disk
	links   map[common.Hash]link
	writes  map[common.Hash][]ubt.Write
	bases   map[common.Hash]common.Hash // bases of the write sets, by root
	fresh   bool
	hasMeta bool
	bad     error
}

func (l *loader) fail(format string, args ...any) {
	if l.bad == nil {
		l.bad = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

// record adds one record of the disk to the store.
func (l *loader) record(key, value []byte) error {
	// Errors are kept in l.bad for finish, because Disk.Read might hide a returned
	// error.
	if l.bad != nil || len(key) == 0 {
		return nil
	}
	if key[0] == metaRecord && len(key) == 1 {
		l.meta(value)
		return nil
	}
	if len(key) != 1+common.HashLength {
		l.fail("record %x", key)
		return nil
	}
	switch h := common.Hash(key[1:]); key[0] {
	case codeRecord:
		if got := keccak(value); got != h {
			l.fail("code record %s has code with the hash %s", h, got)
			return nil
		}
		l.store.code.blobs.put(codeBlob{h, bytes.Clone(value)}, blobLess)
	case keptRecord:
		l.store.code.kept[h] = true
	case rootRecord:
		if link, ok := decodeLink(value); ok {
			l.links[h] = link
		} else {
			l.fail("root record %s", h)
		}
	case writeRecord:
		var ok bool
		if l.bases[h], l.writes[h], ok = decodeWrites(h, value); !ok {
			l.fail("write set of root %s", h)
		}
	case valueRecord:
		l.value(Key(h), value)
	default:
		l.fail("record %x", key)
	}
	return nil
}

func (l *loader) value(k Key, value []byte) {
	if len(value) != common.HashLength {
		l.fail("value of %x has %d bytes, want %d", k, len(value), common.HashLength)
		return
	}
	if err := l.builder.Add(k, [32]byte(value)); err != nil {
		l.fail("values: %v", err)
	}
}

func (l *loader) meta(b []byte) {
	l.hasMeta = true
	if len(b) < 2 || b[0] != diskVersion || len(b) < 2+int(b[1]) {
		l.fail("meta record has version %d, want %d", slices.Concat(b, []byte{0})[0], diskVersion)
		return
	}
	nameEnd := 2 + int(b[1])
	name, line := string(b[2:nameEnd]), b[nameEnd:]
	if name != layout {
		l.bad = fmt.Errorf("%w: the disk has the layout %q, want %q", ErrConfig, name, layout)
		return
	}
	if len(line) < 2*common.HashLength || len(line)%common.HashLength != 0 {
		l.fail("flat root and line have %d bytes, want a multiple of 32, and at least 64", len(line))
		return
	}
	l.store.flat, line = common.Hash(line[:common.HashLength]), line[common.HashLength:]
	l.store.line = nil
	for ; len(line) > 0; line = line[common.HashLength:] {
		l.store.line = append(l.store.line, common.Hash(line[:common.HashLength]))
	}
}

// finish checks that the records of the disk fit together, and returns the first
// error.
func (l *loader) finish() error {
	var err error
	if l.tree, err = l.builder.Tree(); err != nil {
		l.fail("values: %v", err)
	}
	s := l.store
	s.canonical = s.line[len(s.line)-1]
	l.fresh = !l.hasMeta
	switch {
	case l.bad != nil:
		return l.bad
	case l.fresh && (len(l.links) > 0 || l.tree.Root() != EmptyRoot):
		l.fail("no meta record")
	case l.tree.Root() != s.flat:
		l.fail("root of the values is %s, want %s", l.tree.Root(), s.flat)
	case s.flat != EmptyRoot && l.links[s.flat].parents == nil:
		l.fail("flat root %s has no record", s.flat)
	}
	if l.bad != nil {
		return l.bad
	}
	if s.flat != EmptyRoot {
		flat := l.links[s.flat]
		flat.base = s.flat
		s.roots[s.flat] = &published{tree: ready(l.tree), link: flat}
	}
	for root := range l.links {
		l.add(root)
	}
	for root := range l.writes {
		if p := s.roots[root]; l.bad == nil && (p == nil || root == s.flat) {
			l.fail("write set of %s, which is unknown or the flat root", root)
		}
	}
	l.checkParents()
	l.checkCode()
	for _, root := range s.line {
		if s.roots[root] == nil {
			l.fail("root %s of the line is missing", root)
		}
	}
	return l.bad
}

// checkCode counts the roots that own each code, and compares with the stored code.
func (l *loader) checkCode() {
	c := &l.store.code
	for _, p := range l.store.roots {
		for _, h := range p.codes {
			c.owners[h]++
		}
	}
	c.blobs = c.blobs.copy()
	for b := range c.blobs.all {
		if c.owners[b.hash] == 0 && !c.kept[b.hash] {
			l.fail("code %s belongs to no root", b.hash)
		}
	}
	for _, wanted := range []iter.Seq[common.Hash]{maps.Keys(c.owners), maps.Keys(c.kept)} {
		for h := range wanted {
			if _, there := c.blobs.get(codeBlob{hash: h}); !there {
				l.fail("code %s is missing", h)
			}
		}
	}
}

// checkParents checks that the roots on the disk form a history.
func (l *loader) checkParents() {
	descends := map[common.Hash]bool{EmptyRoot: true}
	for root, p := range l.store.roots {
		if i := slices.IndexFunc(p.parents, func(r common.Hash) bool { return l.store.roots[r] == nil }); i >= 0 {
			l.fail("parent of root %s is missing: %s", root, p.parents[i])
			return
		}
		var line []common.Hash
		// The first parents of each root must lead back to the empty root.
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

// add adds a root that was read from the disk to the store.
func (l *loader) add(root common.Hash) {
	var chain []common.Hash
	// The disk describes a root by its writes on another root, the base. The base must be
	// added first, and before that the base of the base.
	for l.store.roots[root] == nil {
		base, hasWrites := l.bases[root]
		if _, ok := l.links[root]; !ok || !hasWrites || len(chain) > len(l.links) {
			l.fail("root %s has no record, write set or base", root)
			return
		}
		chain = append(chain, root)
		root = base
	}
	for _, root := range slices.Backward(chain) {
		link, writes := l.links[root], l.writes[root]
		link.base = l.bases[root]
		tree := &lazyTree{root: root, base: l.store.roots[link.base].tree, writes: writes}
		l.store.roots[root] = &published{tree: tree, link: link, writes: writes}
	}
}
