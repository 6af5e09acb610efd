package statetrie

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// ErrQuery is returned if a query is not valid, for example because its keys or
// ranges are out of order.
var ErrQuery = errors.New("statetrie: invalid query")

// Query lists the keys about which a verifier wants to know whether the state has them,
// and with which values. A compact proof answers a query.
type Query struct {
	// Keys are single keys, in strictly ascending order.
	Keys []Key
	// Ranges are ranges of keys, in ascending order. They must not overlap, and must not contain
	// any of Keys.
	Ranges []KeyRange
	// Known tells the prover which parts of the entries the verifier already has.
	Known Known
}

// KeyRange contains the keys from First to Last, both included.
type KeyRange struct{ First, Last Key }

// Known tells the prover which parts of the entries the verifier already has, so that the
// proof can leave them out.
type Known uint8

const (
	// KnownNone means that the verifier has no entries.
	KnownNone Known = iota
	// KnownKeys means that the verifier has the keys.
	KnownKeys
	// KnownEntries means that the verifier has the keys and the values.
	KnownEntries
)

// PrefixRange returns the range of all keys that begin with the given prefix. The
// prefix can have at most 31 bytes; further bytes are ignored.
func PrefixRange(prefix []byte) (r KeyRange) {
	n := copy(r.First[:], prefix)
	copy(r.Last[:], prefix)
	for i := n; i < len(r.Last); i++ {
		r.Last[i] = 0xff
	}
	return r
}

func (r *KeyRange) has(key Key) bool {
	return bytes.Compare(r.First[:], key[:]) <= 0 && bytes.Compare(key[:], r.Last[:]) <= 0
}

// Validate returns an error that wraps ErrQuery if the query breaks a rule that is
// documented at its fields.
func (q *Query) Validate() error {
	if q.Known > KnownEntries {
		return fmt.Errorf("%w: Known is %d, want at most %d", ErrQuery, q.Known, KnownEntries)
	}
	for i := range q.Keys {
		if i > 0 && bytes.Compare(q.Keys[i-1][:], q.Keys[i][:]) >= 0 {
			return fmt.Errorf("%w: key %d is not above the one before it", ErrQuery, i)
		}
		if q.inRange(q.Keys[i]) {
			return fmt.Errorf("%w: key %d is in a range", ErrQuery, i)
		}
	}
	for i, r := range q.Ranges {
		if bytes.Compare(r.First[:], r.Last[:]) > 0 || i > 0 && bytes.Compare(q.Ranges[i-1].Last[:], r.First[:]) >= 0 {
			return fmt.Errorf("%w: range %d is empty or not above the one before it", ErrQuery, i)
		}
	}
	return nil
}

func (q *Query) inRange(key Key) bool {
	return slices.ContainsFunc(q.Ranges, func(r KeyRange) bool { return r.has(key) })
}

// Through returns the query with its ranges cut off after the key last. If a prover had
// to cut off its answer after that key, the proof answers exactly the returned query, so
// the verifier opens the proof with it.
func (q *Query) Through(last Key) Query {
	cut := Query{Keys: q.Keys, Known: q.Known}
	for _, r := range q.Ranges {
		if bytes.Compare(r.First[:], last[:]) > 0 {
			break
		}
		if bytes.Compare(r.Last[:], last[:]) > 0 {
			r.Last = last
		}
		cut.Ranges = append(cut.Ranges, r)
	}
	return cut
}

// Open verifies a compact proof as the function [Open] does, and also checks that
// the proof answers the whole query: all keys and all ranges. The error wraps
// ErrProof.
func (q *Query) Open(root common.Hash, compact []byte, known ...Entry) (*Opened, error) {
	o, err := Open(root, compact, known...)
	if err != nil {
		return nil, err
	}
	for _, key := range q.Keys {
		if _, err := o.Prove(key); err != nil {
			return nil, err
		}
	}
	for _, r := range q.Ranges {
		if _, err := o.Entries(r.First, r.Last); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// ProveQuery returns the compact proof that answers a query. limit is the maximum
// size of the entries in the ranges, in bytes.
//
// If the entries are larger than limit, ProveQuery includes as many as fit, but at
// least one, and complete is false. The proof then answers q.Through(last), where
// last is the key of the last included entry in a range. The error wraps ErrQuery.
func (t *Trie) ProveQuery(q Query, limit int) (compact []byte, complete bool, last Key, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, Key{}, err
	}
	w := &compactWriter{query: &q, left: limit}
	w.measure(t.node(), Key{}, 0)
	if w.full {
		q, last = q.Through(w.last), w.last
	}
	w.write(t.node(), Key{}, 0, false)
	return w.join(), !w.full, last, nil
}

// compactWriter writes the sections of a compact proof, in one walk over the trie.
type compactWriter struct {
	query *Query
	// These fields measure the entries in the ranges against the limit.
	left int  // bytes that may still be used
	some bool // at least one entry is included
	full bool // an entry did not fit
	last Key  // key of the last included entry

	tags, keys            bitWriter
	kinds, hashes, values []byte
}

type bitWriter struct {
	raw  []byte
	bits int
}

func (w *bitWriter) add(bit byte) {
	if w.bits%8 == 0 {
		w.raw = append(w.raw, 0)
	}
	w.raw[w.bits/8] |= bit << (7 - w.bits%8)
	w.bits++
}

// asks reports whether the query contains a key that begins with these bits.
func (w *compactWriter) asks(prefix Key, depth int) bool {
	all := KeyRange{prefix, Key(prefix.fill(depth))}
	overlaps := func(r KeyRange) bool {
		return bytes.Compare(r.First[:], all.Last[:]) <= 0 && bytes.Compare(all.First[:], r.Last[:]) <= 0
	}
	return slices.ContainsFunc(w.query.Keys, all.has) || slices.ContainsFunc(w.query.Ranges, overlaps)
}

// kind returns the byte that describes a leaf: the form of its value, and the parts
// that the proof leaves out because the verifier has them.
func (w *compactWriter) kind(e *trieEntry, prefix Key, depth int) byte {
	form := byte(longForm)
	if len(e.value) <= maxEmbedded {
		form = byte(len(e.value))
	}
	all := KeyRange{prefix, Key(prefix.fill(depth))}
	named := slices.Contains(w.query.Keys, e.key) || w.query.inRange(e.key)
	if w.query.Known == KnownNone || !named || slices.ContainsFunc(w.query.Keys, func(key Key) bool { return key != e.key && all.has(key) }) {
		// Nothing can be left out: the verifier does not have this entry, or several of its
		// keys could be at this position of the trie.
		return form
	}
	if w.query.Known == KnownEntries {
		return withoutEntry
	}
	return withoutKey | form
}

// data returns the bytes that a leaf contributes to the section of values.
func data(kind byte, value []byte) []byte {
	switch {
	case kind&withoutEntry != 0:
		return nil
	case len(value) <= maxEmbedded:
		return value
	}
	return append(appendLength(nil, uint64(len(value))), value...)
}

// appendLength appends the encoding of a natural number below 2^32 (GP C.1).
func appendLength(b []byte, n uint64) []byte {
	extra := 0
	for n >= 1<<(7*(extra+1)) {
		extra++
	}
	b = append(b, ^byte(0xff>>extra)|byte(n>>(8*extra)))
	for i := range extra {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

// measure determines how many entries of the ranges fit into the limit.
func (w *compactWriter) measure(n *trieNode, prefix Key, depth int) {
	if n == nil || w.full || !w.asks(prefix, depth) {
		return
	}
	if n.entry == nil {
		w.measure(n.children[0], prefix, depth+1)
		prefix[depth/8] |= 1 << (7 - depth%8)
		w.measure(n.children[1], prefix, depth+1)
		return
	}
	if !w.query.inRange(n.entry.key) {
		return
	}
	kind := w.kind(n.entry, prefix, depth)
	size := 1 + len(data(kind, n.entry.value))
	if kind&(withoutEntry|withoutKey) == 0 {
		size += (keyBits - depth + 7) / 8
	}
	if w.some && size > w.left {
		w.full = true
		return
	}
	w.some, w.last = true, n.entry.key
	w.left -= size
}

// write appends the part of the proof about one subtrie, whose keys begin with the first
// depth bits of prefix.
func (w *compactWriter) write(n *trieNode, prefix Key, depth int, left bool) {
	tag := branchTag
	switch {
	case n == nil:
		tag = emptyTag
	case !w.asks(prefix, depth):
		tag = hashTag
	case n.entry != nil:
		tag = leafTag
	}
	w.tags.add(byte(tag >> 1))
	w.tags.add(byte(tag & 1))
	switch tag {
	case branchTag:
		w.write(n.children[0], prefix, depth+1, true)
		prefix[depth/8] |= 1 << (7 - depth%8)
		w.write(n.children[1], prefix, depth+1, false)
	case hashTag:
		hash := n.hash
		if left {
			// A branch does not store the first bit of its left hash.
			hash = short(hash)
		}
		w.hashes = append(w.hashes, hash[:]...)
	case leafTag:
		kind := w.kind(n.entry, prefix, depth)
		w.kinds = append(w.kinds, kind)
		if kind&(withoutEntry|withoutKey) == 0 {
			for bit := depth; bit < keyBits; bit++ {
				w.keys.add(byte(n.entry.key.bit(bit)))
			}
		}
		w.values = append(w.values, data(kind, n.entry.value)...)
	}
}

func (w *compactWriter) join() []byte {
	return slices.Concat([]byte{compactVersion}, w.tags.raw, w.kinds, w.hashes, w.keys.raw, w.values)
}
