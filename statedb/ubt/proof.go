package ubt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrProof is returned for a proof that is damaged, or that does not have the form that the tree
// and the keys require.
var ErrProof = errors.New("ubt: malformed proof")

// Use is a key together with its use by an execution: the value is only read, set,
// or deleted. The form of a proof depends on the uses, because the proof must also
// show the root after the writes.
type Use struct {
	// Key is the key.
	Key Key
	// Sets is true if the execution writes a value. Deletes must then be false.
	Sets bool
	// Deletes is true if the execution removes the value. Sets must then be false.
	Deletes bool
}

// Proof proves the values of a tree at some keys to a verifier that knows only the root of
// the tree. If an execution has written some of these keys, the verifier can also compute the
// root after the writes. For each tree and each sorted list of uses there is exactly one
// proof: [Tree.Prove] makes it, and [Open] accepts no other.
//
// A proof describes a depth-first walk over all nodes on the paths to the keys, in four streams:
// bits, opened leaves, hashes and values. The comment of prover has their order.
type Proof struct {
	bits bitWriter
	// opened contains the keys of values that were not requested. If a requested key is absent
	// because another stem is in its place, the proof shows the first value of that stem. It
	// proves that this node is a stem, and that the nodes above it are inner nodes.
	opened []Key
	hashes []Hash     // hashes of nonempty siblings
	values [][32]byte // values of present leaves
}

// Each node in a proof begins with two bits that name one of the following kinds.
const (
	opEmpty  = iota
	opInner  // an inner node; its two sides follow
	opOwn    // a stem with a value at a used key
	opOpened // another stem, with its first leaf opened
	opBits   = 2
)

// proofHeader is the size of the header of an encoded proof, in bytes. The header
// contains the lengths of the four streams.
const proofHeader = 4 * 4

// embeddingZeros is the number of zero bytes at the beginning of the data that EIP-7864 hashes to a
// stem. The address follows them.
const embeddingZeros = 12

// isEmbedding reports whether 32 bytes of a proof look like a part of the data that
// EIP-7864 hashes to a stem, which begins with twelve zero bytes. A forged proof contains
// such bytes.
func isEmbedding(node [32]byte) bool {
	// An honest stem or hash practically never begins in this way, but a forged one
	// does. The data of a stem and of an inner node both have 64 bytes, so one can
	// pass for the other. A party that chooses a storage slot chooses half of the
	// data, and after 2^16 attempts has a stem that reads as an inner node over a
	// forged subtree. The other half of the data, which begins with twelve zero
	// bytes, then appears in the proof as a hash or as the stem of a leaf.
	return [embeddingZeros]byte(node[:]) == [embeddingZeros]byte{}
}

// Size returns the length of the encoded proof in bytes. It is 16, plus the bits rounded up to
// bytes, plus 32 for each opened leaf, hash and value.
//
// The number of bits is 2 for each node, 1 for each inner node with an unused side,
// 1 for each known value, and 1 for each level below a stem at which a part without
// known values branches off. For k random keys of a tree with N ≫ k stems of one
// value each, the size is about 32·k·(log₂(N/k) − 0.5) + 32·k + 3/8·k·log₂(N/k) +
// 1.4·k bytes.
func (p *Proof) Size() int {
	return proofHeader + (p.bits.count+7)/8 + 32*(len(p.opened)+len(p.hashes)+len(p.values))
}

// AppendTo appends the encoding of the proof to b and returns the result.
func (p *Proof) AppendTo(b []byte) []byte {
	b = slices.Grow(b, p.Size())
	for _, n := range []int{p.bits.count, len(p.opened), len(p.hashes), len(p.values)} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, p.bits.bytes...)
	for i := range p.opened {
		b = append(b, p.opened[i][:]...)
	}
	for i := range p.hashes {
		b = append(b, p.hashes[i][:]...)
	}
	for i := range p.values {
		b = append(b, p.values[i][:]...)
	}
	return b
}

// ParseProof decodes a proof, which must fill b completely. It checks only the form; [Open] checks
// the contents. The error wraps ErrProof.
func ParseProof(b []byte) (*Proof, error) {
	if len(b) < proofHeader {
		return nil, fmt.Errorf("%w: %d bytes, want at least %d", ErrProof, len(b), proofHeader)
	}
	var lengths [4]uint64
	for i := range lengths {
		lengths[i] = uint64(binary.BigEndian.Uint32(b[4*i:]))
	}
	body := b[proofHeader:]
	if want := (lengths[0]+7)/8 + 32*(lengths[1]+lengths[2]+lengths[3]); uint64(len(body)) != want {
		return nil, fmt.Errorf("%w: %d bytes after the header, want %d", ErrProof, len(body), want)
	}
	// On a platform with 32-bit ints, the number of bits overflows in a proof
	// larger than 256 MiB.
	var n [4]int
	for i := range n {
		if n[i] = int(lengths[i]); n[i] < 0 {
			return nil, fmt.Errorf("%w: %d bits", ErrProof, lengths[i])
		}
	}
	bitBytes := int((lengths[0] + 7) / 8)
	p := &Proof{bits: bitWriter{bytes: slices.Clone(body[:bitBytes]), count: n[0]}}
	if unused := bitBytes*8 - n[0]; unused > 0 && body[bitBytes-1]<<(8-unused) != 0 {
		return nil, fmt.Errorf("%w: unused bits are set", ErrProof)
	}
	body = body[bitBytes:]
	p.opened, body = split32[Key](body, n[1])
	p.hashes, body = split32[Hash](body, n[2])
	p.values, _ = split32[[32]byte](body, n[3])
	return p, nil
}

// split32 splits n items of 32 bytes off b, which must be long enough.
func split32[T ~[32]byte](b []byte, n int) (pieces []T, rest []byte) {
	pieces = make([]T, n)
	for i := range pieces {
		pieces[i] = T(b[32*i:])
	}
	return pieces, b[32*n:]
}

// bitWriter collects single bits into bytes. The most significant bit of a byte
// comes first.
type bitWriter struct {
	bytes []byte
	count int
}

func (w *bitWriter) put(v, n int) {
	for i := n - 1; i >= 0; i-- {
		if w.count%8 == 0 {
			w.bytes = append(w.bytes, 0)
		}
		w.bytes[w.count/8] |= byte(v>>i&1) << (7 - w.count%8)
		w.count++
	}
}

func (w *bitWriter) putBool(v bool) {
	if v {
		w.put(1, 1)
	} else {
		w.put(0, 1)
	}
}

// checkUses returns an error if the keys are not in ascending order, or if a key is both
// set and deleted.
func checkUses(uses []Use) error {
	for i := range uses {
		if i > 0 && uses[i-1].Key.Compare(uses[i].Key) >= 0 {
			return fmt.Errorf("%w: %x after %x", ErrOrder, uses[i].Key, uses[i-1].Key)
		}
		if uses[i].Sets && uses[i].Deletes {
			return fmt.Errorf("%w: %x is both set and deleted", ErrProof, uses[i].Key)
		}
	}
	return nil
}

func anySets(uses []Use) bool {
	return slices.ContainsFunc(uses, func(u Use) bool { return u.Sets })
}

// splitUses splits the uses below a node into those on its left and right side.
func splitUses(uses []Use, depth int) (left, right []Use) {
	at, _ := slices.BinarySearchFunc(uses, 1, func(u Use, _ int) int { return int(bit(u.Key[:], depth)) - 1 })
	return uses[:at], uses[at:]
}

// nextStem splits the uses of the first stem off a list of uses.
func nextStem(uses []Use) (group, rest []Use) {
	n := 1
	for n < len(uses) && string(uses[n].Key.stem()) == string(uses[0].Key.stem()) {
		n++
	}
	return uses[:n], uses[n:]
}
