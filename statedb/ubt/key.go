package ubt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
)

// StemSize is the length of a stem, in bytes.
const StemSize = 31

const stemBits = 8 * StemSize

// Key is the position of one value in a tree. The first 31 bytes are the stem, and
// the last byte is the index among the 256 values of that stem. Only this type
// fixes the length of a stem: the tree itself would accept stems of different
// lengths, provided that none is a prefix of another.
type Key [StemSize + 1]byte

func (k *Key) stem() []byte { return k[:StemSize] }
func (k *Key) sub() byte    { return k[StemSize] }

// Compare returns the order of two keys in the tree: -1, 0 or 1.
func (k Key) Compare(other Key) int {
	// The first eight bytes almost always decide.
	if a, b := binary.BigEndian.Uint64(k[:]), binary.BigEndian.Uint64(other[:]); a != b {
		return cmp.Compare(a, b)
	}
	return bytes.Compare(k[8:], other[8:])
}

// bit returns bit i of a stem; at depth i, 0 means left.
func bit(stem []byte, i int) byte { return stem[i/8] >> (7 - i%8) & 1 }

// Write is a change of one value in a tree.
type Write struct {
	// Key is the changed key.
	Key Key
	// Value is the new value. It is ignored if Deleted is true.
	Value [32]byte
	// Deleted means that the value is removed.
	Deleted bool
}

// set is a set of numbers from 0 to 255, for example of a stem's value indices.
type set [4]uint64

func (s *set) has(i byte) bool { return s[i/64]>>(i%64)&1 == 1 }
func (s *set) add(i byte)      { s[i/64] |= 1 << (i % 64) }
func (s *set) remove(i byte)   { s[i/64] &^= 1 << (i % 64) }

func (s *set) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// rank returns how many members of the set are less than i.
func (s *set) rank(i int) int {
	// A list that has one element for each member of the set has the element for i at this
	// index.
	n := bits.OnesCount64(s[i/64] & (1<<(i%64) - 1))
	for _, word := range s[:i/64] {
		n += bits.OnesCount64(word)
	}
	return n
}

// all iterates over the members in order.
func (s *set) all(yield func(byte) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(byte(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}
