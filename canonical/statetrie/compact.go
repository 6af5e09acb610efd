package statetrie

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Opened is the part of a state that a compact proof shows: entries, and ranges of keys
// in which the state has no entries. [Open] and [Query.Open] return it after they have
// verified the proof against a state root.
type Opened struct {
	compact []byte
	known   []Entry
	entries []openEntry // ascending by key
	closed  []KeyRange  // the keys below nodes that are not opened, ascending
}

// openEntry is an entry in a compact proof. If hashed is true, the proof has only the
// hash of the value.
type openEntry struct {
	Entry
	hashed bool
}

// tag tells which kind of node comes next in a compact proof. The values are part of the
// encoding, so they must not change.
type tag uint8

const (
	branchTag tag = iota
	hashTag
	emptyTag
	leafTag
)

const (
	compactVersion = 0
	// The first byte of a leaf is the length of its value if the value is short. Otherwise it
	// is longForm, if the section of values has the value, or hashForm, if the section of
	// hashes has its hash.
	longForm = maxEmbedded + 1
	hashForm = maxEmbedded + 2
	// One of these bits is set if the proof leaves out the whole entry, or only the
	// key.
	withoutEntry, withoutKey = 0x80, 0x40
)

// Open verifies a compact state proof against a state root, and returns the part of
// the state that the proof shows. The format is version 0 of the open proposal for
// JIP-2 (stateProof).
//
// If the prover has left out entries that the caller already has, the caller passes
// them as known. Their values matter only if the proof leaves out values. The
// result shares memory with the proof and with known. The error wraps ErrProof.
//
// Open does not know which keys the caller needs, so it also accepts a proof that
// shows too little. The caller must therefore use [Query.Open], or check the errors
// of Get and Entries.
func Open(root common.Hash, compact []byte, known ...Entry) (*Opened, error) {
	known = slices.SortedFunc(slices.Values(known), func(a, b Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	o := &Opened{compact: compact, known: known}
	r := &compactReader{known: known}
	r.closed = func(keys KeyRange) { o.closed = append(o.closed, keys) }
	r.leaf = func(e openEntry) { o.entries = append(o.entries, e) }
	r.node = func(KeyRange, Node) {}
	have, err := r.read(compact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if have != root {
		return nil, fmt.Errorf("%w: the proof has the root %s, want %s", ErrProof, have, root)
	}
	return o, nil
}

// compactReader decodes the sections of a compact proof and computes its root. It does
// not build a tree in memory, because a malicious proof of a few bytes could have very
// many branches.
type compactReader struct {
	known  []Entry
	tags   []tag
	depths []uint8 // of the leaves, in the order of the tags
	raw    []byte
	bits   int // read from raw, by the section of tags and later by that of keys

	kinds, hashes, keys, values []byte

	// The reader calls these functions for the parts of the proof.
	closed func(KeyRange)       // with the keys below a node that the proof does not open
	leaf   func(openEntry)      // with each entry
	node   func(KeyRange, Node) // with each opened node, after all nodes below it
}

// read decodes a whole proof and returns the root that it leads to.
func (r *compactReader) read(compact []byte) (root common.Hash, err error) {
	if len(compact) == 0 || compact[0] != compactVersion {
		return root, fmt.Errorf("no compact proof of version %d", compactVersion)
	}
	r.raw = compact[1:]
	if _, err := r.scan(0); err != nil {
		return root, err
	}
	rest, err := r.padded()
	if err != nil {
		return root, err
	}
	if err := r.split(rest); err != nil {
		return root, err
	}
	r.raw, r.bits = r.keys, 0
	if root, err = r.build(Key{}, 0, false); err != nil {
		return root, err
	}
	if rest, err = r.padded(); err != nil {
		return root, err
	}
	if n := len(rest) + len(r.values); n > 0 {
		return root, fmt.Errorf("%d bytes after the last value", n)
	}
	return root, nil
}

// take reads the next bits of the current section, at most 8 of them.
func (r *compactReader) take(n int) (bits byte, err error) {
	if r.bits+n > 8*len(r.raw) {
		return 0, fmt.Errorf("the proof is too short")
	}
	for range n {
		bits = bits<<1 | r.raw[r.bits/8]>>(7-r.bits%8)&1
		r.bits++
	}
	return bits, nil
}

// padded ends a section whose entries are single bits, and returns the bytes behind the
// section.
func (r *compactReader) padded() ([]byte, error) {
	// Each proof must have only one encoding, so the unused bits of the last byte must be
	// zero.
	if used := r.bits % 8; used > 0 && r.raw[r.bits/8]<<used != 0 {
		return nil, fmt.Errorf("padding that is not zero")
	}
	return r.raw[(r.bits+7)/8:], nil
}

// scan reads the tags of all nodes of a subtrie, from the top down, and returns the tag of
// the top node.
func (r *compactReader) scan(depth int) (tag, error) {
	bits, err := r.take(2)
	if err != nil {
		return 0, err
	}
	own := tag(bits)
	r.tags = append(r.tags, own)
	if own == leafTag {
		r.depths = append(r.depths, uint8(depth))
	}
	if own != branchTag {
		return own, nil
	}
	if depth >= keyBits {
		return 0, fmt.Errorf("a branch at depth %d", depth)
	}
	left, err := r.scan(depth + 1)
	if err != nil {
		return 0, err
	}
	right, err := r.scan(depth + 1)
	if err != nil {
		return 0, err
	}
	// A prover replaces such a branch by a single node, for example two unopened children by
	// one hash. Accepting it would give the same proof a second encoding.
	if left == right && (left == hashTag || left == emptyTag) || min(left, right) == emptyTag && max(left, right) == leafTag {
		return 0, fmt.Errorf("a branch at depth %d that is not needed", depth)
	}
	return own, nil
}

// split divides the bytes after the tags into kinds, hashes, keys and values.
func (r *compactReader) split(rest []byte) error {
	section := func(size int) (s []byte) {
		size = min(size, len(rest))
		s, rest = rest[:size], rest[size:]
		return s
	}
	r.kinds = section(len(r.depths))
	if len(r.kinds) < len(r.depths) {
		return fmt.Errorf("%d kinds for %d leaves", len(r.kinds), len(r.depths))
	}
	hashes, bits := 0, 0
	for _, t := range r.tags {
		if t == hashTag {
			hashes++
		}
	}
	for i, kind := range r.kinds {
		form := kind &^ (withoutEntry | withoutKey)
		if form > hashForm || kind&withoutEntry != 0 && (kind&withoutKey != 0 || form != 0) {
			return fmt.Errorf("a leaf of kind %#x", kind)
		}
		if form == hashForm {
			hashes++
		}
		if kind&(withoutEntry|withoutKey) == 0 {
			bits += keyBits - int(r.depths[i])
		}
	}
	r.hashes, r.keys = section(32*hashes), section((bits+7)/8)
	r.values = rest
	return nil
}

// hash reads the next hash from the section of hashes.
func (r *compactReader) hash() (h common.Hash, err error) {
	if len(r.hashes) < len(h) {
		return h, fmt.Errorf("a hash is missing")
	}
	copy(h[:], r.hashes)
	r.hashes = r.hashes[len(h):]
	return h, nil
}

// build reads one subtrie from the proof and computes its hash. All keys in it begin with
// the first depth bits of prefix. left is true for the left child of a branch, whose hash
// is stored without its first bit.
func (r *compactReader) build(prefix Key, depth int, left bool) (hash common.Hash, err error) {
	own, all := r.tags[0], KeyRange{prefix, Key(prefix.fill(depth))}
	r.tags = r.tags[1:]
	switch own {
	case branchTag:
		var hashes [2]common.Hash
		for i := range hashes {
			if hashes[i], err = r.build(prefix, depth+1, i == 0); err != nil {
				return hash, err
			}
			prefix[depth/8] |= 1 << (7 - depth%8)
		}
		n := branch(hashes[0], hashes[1])
		r.node(all, n)
		return n.hash(), nil
	case hashTag:
		if hash, err = r.hash(); err != nil {
			return hash, err
		}
		// A branch stores the hash of its left child without the first bit. The hash of a left
		// child with that bit set is therefore wrong.
		if hash == (common.Hash{}) || left && hash != short(hash) {
			return hash, fmt.Errorf("the hash %s of a subtrie", hash)
		}
		r.closed(all)
	case leafTag:
		e, n, err := r.entry(all, depth)
		if err != nil {
			return hash, err
		}
		r.leaf(e)
		r.node(all, n)
		return n.hash(), nil
	}
	return hash, nil
}

// entry reads a leaf of the proof. The keys in the range all are those that a leaf at this
// position of the trie can have.
func (r *compactReader) entry(all KeyRange, depth int) (e openEntry, n Node, err error) {
	kind := r.kinds[0]
	r.kinds = r.kinds[1:]
	if kind&(withoutEntry|withoutKey) != 0 {
		if e.Entry, err = r.knownIn(all); err != nil {
			return e, n, err
		}
	} else {
		e.Key = all.First
		for bit := depth; bit < keyBits; bit++ {
			one, err := r.take(1)
			if err != nil {
				return e, n, err
			}
			e.Key[bit/8] |= one << (7 - bit%8)
		}
	}
	form := kind &^ (withoutEntry | withoutKey)
	switch {
	case kind&withoutEntry != 0:
	case form == hashForm:
		hash, err := r.hash()
		e.Value, e.hashed = nil, true
		return e, hashedLeaf(e.Key, hash), err
	default:
		size := uint64(form)
		if form == longForm {
			if size, err = r.length(); err != nil {
				return e, n, err
			}
		}
		if size > uint64(len(r.values)) {
			return e, n, fmt.Errorf("%d bytes for a value of %d", len(r.values), size)
		}
		e.Value, r.values = r.values[:size:size], r.values[size:]
	}
	return e, leaf(e.Key, e.Value), nil
}

// knownIn returns the known entry in a range, for a leaf without its key.
func (r *compactReader) knownIn(all KeyRange) (found Entry, err error) {
	at, _ := slices.BinarySearchFunc(r.known, all.First, func(e Entry, key Key) int { return bytes.Compare(e.Key[:], key[:]) })
	one := at < len(r.known) && all.has(r.known[at].Key)
	two := at+1 < len(r.known) && all.has(r.known[at+1].Key)
	// The proof leaves out an entry that the verifier already has. Exactly one known entry
	// must be possible at this position, so that it is clear which one the prover means.
	if !one || two {
		return found, fmt.Errorf("no known key, or several, from %x to %x", all.First, all.Last)
	}
	return r.known[at], nil
}

// length reads the length of a long value, a natural number (GP C.1).
func (r *compactReader) length() (uint64, error) {
	if len(r.values) == 0 {
		return 0, fmt.Errorf("a length is missing")
	}
	extra, first := 0, r.values[0]
	for first<<extra&0x80 != 0 {
		extra++
	}
	const most = 4 // bytes after the first one of a length below 2^32
	if extra > most || len(r.values) <= extra {
		return 0, fmt.Errorf("a length that begins with %#x", first)
	}
	var low [8]byte
	copy(low[:], r.values[1:1+extra])
	size := binary.LittleEndian.Uint64(low[:]) | uint64(first&(0xff>>(extra+1)))<<(8*extra)
	// A length must have its shortest encoding. A shorter value would be stored in the leaf
	// itself, so such a length is refused too.
	if size <= maxEmbedded || size >= 1<<32 || extra > 0 && size < 1<<(7*extra) {
		return 0, fmt.Errorf("the length %d in %d bytes", size, 1+extra)
	}
	r.values = r.values[1+extra:]
	return size, nil
}

// hashedLeaf returns the leaf for a long value, given the hash of that value.
func hashedLeaf(key Key, hash common.Hash) (n Node) {
	n[0] = leafBit | hashedBit
	copy(n[1:], key[:])
	copy(n[32:], hash[:])
	return n
}

// find returns the index of a key among the entries, and whether it is there.
func (o *Opened) find(key Key) (at int, found bool, err error) {
	at, found = slices.BinarySearchFunc(o.entries, key, func(e openEntry, key Key) int { return bytes.Compare(e.Key[:], key[:]) })
	if !found && o.overlaps(KeyRange{key, key}) {
		// The proof shows only the hash of the subtrie in which this key would be.
		return 0, false, fmt.Errorf("%w: the proof does not open key %x", ErrProof, key)
	}
	return at, found, nil
}

// overlaps reports whether the proof leaves a part of the range closed.
func (o *Opened) overlaps(r KeyRange) bool {
	at, _ := slices.BinarySearchFunc(o.closed, r.First, func(c KeyRange, first Key) int { return bytes.Compare(c.Last[:], first[:]) })
	return at < len(o.closed) && bytes.Compare(o.closed[at].First[:], r.Last[:]) <= 0
}

// Get returns the value of a key, and whether the state has the key. The error
// wraps ErrProof if the proof leaves that open, or if it contains only the hash of
// the value.
func (o *Opened) Get(key Key) (value []byte, present bool, err error) {
	at, found, err := o.find(key)
	switch {
	case err != nil || !found:
		return nil, false, err
	case o.entries[at].hashed:
		return nil, true, fmt.Errorf("%w: the proof has only the hash of the value of key %x", ErrProof, key)
	}
	return o.entries[at].Value, true, nil
}

// Entries returns all entries of the state with keys from first to last, both
// included, in ascending order. The error wraps ErrProof if the proof does not show
// all of them.
func (o *Opened) Entries(first, last Key) ([]Entry, error) {
	r := KeyRange{first, last}
	if o.overlaps(r) {
		return nil, fmt.Errorf("%w: the proof does not open all keys from %x to %x", ErrProof, first, last)
	}
	var entries []Entry
	for _, e := range o.entries {
		switch {
		case !r.has(e.Key):
		case e.hashed:
			return nil, fmt.Errorf("%w: the proof has only the hash of the value of key %x", ErrProof, e.Key)
		default:
			entries = append(entries, e.Entry)
		}
	}
	return entries, nil
}

// Prove extracts the proof of a single key from the compact proof: the same nodes
// as [Trie.Prove] returns, which [Verify] and [VerifyAbsent] accept. The error
// wraps ErrProof if the compact proof leaves open whether the state has the key.
func (o *Opened) Prove(key Key) ([]Node, error) {
	if _, _, err := o.find(key); err != nil {
		return nil, err
	}
	var nodes []Node
	r := &compactReader{known: o.known, closed: func(KeyRange) {}, leaf: func(openEntry) {}}
	r.node = func(all KeyRange, n Node) {
		if all.has(key) {
			nodes = append(nodes, n)
		}
	}
	if _, err := r.read(o.compact); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	slices.Reverse(nodes)
	return nodes, nil
}
