package ubt

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrStem is returned for a malformed encoding of a stem.
var ErrStem = errors.New("ubt: malformed stem")

const setSize = 32

// ChangedStems iterates, in order, over the stems that differ between old and
// t, with their encoded values in t. The encoding is a set of 256 bits with the
// present indices, followed by their values. It is nil if the stem has no
// values in t. Neither tree may come from a proof.
func (t Tree) ChangedStems(old Tree) func(yield func(stem, values []byte) bool) {
	return func(yield func(stem, values []byte) bool) {
		last := ""
		for w := range t.Diff(old) {
			if name := string(w.Key.stem()); name != last {
				last = name
				if !yield([]byte(name), t.encodeStem(&w.Key)) {
					return
				}
			}
		}
	}
}

// encodeStem returns the encoded values of a key's stem.
func (t Tree) encodeStem(k *Key) []byte {
	s := t.stemOf(k)
	if s == nil {
		return nil
	}
	b := make([]byte, 0, setSize+len(s.packed)-int(s.nameSize))
	for _, word := range s.present {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return append(b, s.packed[s.nameSize:]...)
}

// stemOf returns a key's stem, or nil.
func (t Tree) stemOf(k *Key) *stem {
	n := t.root.node
	for depth := 0; ; depth++ {
		switch at := n.(type) {
		case *inner:
			n = at.nodes[bit(k[:], depth)]
		case *stem:
			if at.name() == string(k.stem()) {
				return at
			}
			return nil
		default:
			return nil
		}
	}
}

// DecodeStem returns the writes that create a stem from its encoded values. The
// error wraps ErrStem.
func DecodeStem(name, values []byte) ([]Write, error) {
	if len(name) != StemSize || len(values) < setSize {
		return nil, fmt.Errorf("%w: name of %d bytes and values of %d bytes", ErrStem, len(name), len(values))
	}
	var present set
	for i := range present {
		present[i] = binary.LittleEndian.Uint64(values[8*i:])
	}
	values = values[setSize:]
	if n := present.len(); n == 0 || len(values) != n*valueSize {
		return nil, fmt.Errorf("%w: %d bytes for %d values", ErrStem, len(values), n)
	}
	writes := make([]Write, 0, present.len())
	for sub := range present.all {
		w := Write{Value: [32]byte(values)}
		copy(w.Key[:], name)
		w.Key[StemSize] = sub
		writes, values = append(writes, w), values[valueSize:]
	}
	return writes, nil
}
