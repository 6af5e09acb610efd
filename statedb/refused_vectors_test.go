package statedb

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// refusedVectors are cases that break one rule each.
func refusedVectors(t *testing.T) []vector {
	return slices.Concat(refusedEncodings(t), refusedProofs(t), refusedStatements(t))
}

// alteration spoils an honest encoding.
type alteration struct {
	rule, name string
	alter      func(body []byte) []byte
}

// refusedEncodings are alterations of a witness of three raw keys: an absent one
// and two present ones.
func refusedEncodings(t *testing.T) (vectors []vector) {
	v := open(t, NewStore())
	v.Set(Key{0x10}, [32]byte{1})
	v.Set(Key{0x90}, [32]byte{2})
	commit(t, v)
	v.Get(Key{0x10})
	v.Get(Key{0x90})
	v.Delete(Key{0x20})
	honest := statementOf(t, v)
	body := honest.Witness[:len(honest.Witness)-checksumSize]
	const first, second, codes = 5, 5 + 33, 5 + 3*33
	const proof = codes + 4 // and the lengths of bits, opened leaves, hashes and values
	count := func(at int, by int32) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[at:], uint32(int32(binary.BigEndian.Uint32(b[at:]))+by))
			return b
		}
	}
	setByte := func(at int, value byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = value; return b }
	}
	nBits := int(binary.BigEndian.Uint32(body[proof:]))
	for _, a := range []alteration{
		{"length", "nothing but a checksum", func([]byte) []byte { return nil }},
		{"version", "version 0", setByte(0, 0)},
		{"version", "version 2", setByte(0, 2)},
		{"length", "an entry more than there is room for", count(1, 1<<20)},
		{"length", "the greatest number of entries", count(1, -4)},
		{"length", "code longer than the rest", func(b []byte) []byte {
			return binary.BigEndian.AppendUint32(count(codes, 1)(b[:proof]), 1)
		}},
		{"length", "cut within an entry", func(b []byte) []byte { return b[:second+9] }},
		{"entry", "an unknown kind", setByte(first, 5)},
		{"entry", "an unknown flag", setByte(first, 0x40)},
		{"entry", "set and deleted", setByte(first, 0x30)},
		{"order", "two entries swapped", func(b []byte) []byte {
			one := slices.Clone(b[first:second])
			copy(b[first:], b[second:second+33])
			copy(b[second:], one)
			return b
		}},
		{"order", "an entry twice", func(b []byte) []byte { copy(b[second:], b[first:second]); return b }},
		{"size", "a byte after the proof", func(b []byte) []byte { return append(b, 0) }},
		{"size", "a value less", func(b []byte) []byte { return b[:len(b)-32] }},
		{"size", "no proof", func(b []byte) []byte { return b[:proof] }},
		{"size", "lengths that wrap with 32 bits", func(b []byte) []byte { return count(proof+4, -1)(count(proof+8, 1)(b)) }},
		{"padding", "an unused bit is 1", func(b []byte) []byte { b[proof+16+nBits/8] |= 1; return b }},
		{"streams", "a bit less", func(b []byte) []byte { return resizeBits(b, proof, nBits-1) }},
		{"streams", "a bit more", func(b []byte) []byte { return resizeBits(b, proof, nBits+1) }},
		{"streams", "a hash more", func(b []byte) []byte { return append(count(proof+8, 1)(b), make([]byte, 32)...) }},
		{"streams", "a value more", func(b []byte) []byte { return append(count(proof+12, 1)(b), make([]byte, 32)...) }},
		{"streams", "an opened leaf more", func(b []byte) []byte { return append(count(proof+4, 1)(b), make([]byte, 32)...) }},
		{"streams", "a value that counts as a hash", func(b []byte) []byte { return count(proof+12, -1)(count(proof+8, 1)(b)) }},
		{"root", "another value", func(b []byte) []byte { b[len(b)-1]++; return b }},
		{"root", "another key", func(b []byte) []byte { b[first+1]++; return b }},
	} {
		b := a.alter(slices.Clone([]byte(body)))
		s := honest
		s.Witness = append(b, checksum(b)...)
		vectors = append(vectors, refuse(a.rule, a.name, s))
	}
	s := honest
	s.Witness = slices.Clone(s.Witness)
	s.Witness[len(s.Witness)-1]++
	cut := honest
	cut.Witness = cut.Witness[:checksumSize-1]
	return append(vectors, refuse("checksum", "another checksum", s), refuse("checksum", "shorter than a checksum", cut))
}

// resizeBits makes the bits of the proof at an offset n long, with zeros.
func resizeBits(b []byte, proof, n int) []byte {
	old := (int(binary.BigEndian.Uint32(b[proof:])) + 7) / 8
	bits := append(slices.Clone(b[proof+16:][:old]), 0)[:(n+7)/8]
	if n%8 != 0 {
		bits[n/8] &= 0xff << (8 - n%8)
	}
	b = slices.Replace(b, proof+16, proof+16+old, bits...)
	binary.BigEndian.PutUint32(b[proof:], uint32(n))
	return b
}

func refuse(rule, name string, s statement) vector {
	return vector{name, s, verdict{Refused: rule}}
}

// forge is a proof of raw keys, with the root that it leads to.
type forge struct {
	rule, name string
	root       common.Hash
	keys       []Key
	bits       string // 0 and 1, and spaces
	streams    proofWriter
}

// The hashes of small trees. A stem has one value, at index 0.
func spanHash(value [32]byte) common.Hash {
	sum := hasher.Leaf(value)
	for range 8 {
		sum = hasher.Inner(sum, common.Hash{})
	}
	return sum
}

func stemHash(k Key, values common.Hash) common.Hash {
	return hasher.Stem([StemSize]byte(k[:]), values)
}

// refusedProofs are proofs that a verifier without the rule would take.
func refusedProofs(t *testing.T) (vectors []vector) {
	for _, f := range slices.Concat(forgedNodes(), forgedStems(), embeddings()) {
		w := new(Witness)
		for _, k := range f.keys {
			w.Entries = append(w.Entries, Entry{Access: Access{Key: k}})
		}
		for _, c := range f.bits {
			if c != ' ' {
				f.streams.bits = append(f.streams.bits, byte(c-'0'))
			}
		}
		w.Proof = f.streams.proof(t)
		s := statement{Witness: w.Encode(), PreRoot: &f.root, Values: []common.Hash{}}
		vectors = append(vectors, refuse(f.rule, f.name, s))
	}
	return vectors
}

const value = "1 00000000 " // the bits of a stem with one value, at index 0

func forgedNodes() []forge {
	one := [32]byte{1}
	hash := common.Hash{0xaa}
	inner := hasher.Inner
	k, other := Key{0x10}, Key{0x90}
	stem := stemHash(k, spanHash(one))
	deep := inner(stem, hash) // at depth 248
	for i := 247; i >= 0; i-- {
		if k[i/8]>>(7-i%8)&1 == 1 {
			deep = inner(common.Hash{}, deep)
		} else {
			deep = inner(deep, common.Hash{})
		}
	}
	return []forge{
		{"depth", "an inner node below the last bit of a stem", deep, []Key{k}, strings.Repeat("01", 248) + "01 10" + value + "1" + strings.Repeat("0", 248), proofWriter{hashes: [][32]byte{hash}, values: [][32]byte{one}}},
		{"lone", "an inner node over one stem", inner(stem, common.Hash{}), []Key{k}, "01 10" + value + "0", proofWriter{values: [][32]byte{one}}},
		{"lone", "an inner node over a stem, beside an absent key", inner(stem, common.Hash{}), []Key{k, other}, "01 10" + value + "00", proofWriter{values: [][32]byte{one}}},
		{"lone", "an inner node over nothing", inner(common.Hash{}, common.Hash{}), []Key{k, other}, "01 00 00", proofWriter{}},
		{"unopened", "an empty node that no key leads to", inner(common.Hash{}, inner(common.Hash{}, hash)), []Key{k}, "01 00 1 01 1 00 1", proofWriter{hashes: [][32]byte{hash}}},
		{"unopened", "a stem of a key that no key leads to", inner(common.Hash{}, stemHash(other, hash)), []Key{k}, "01 00 1 10", proofWriter{hashes: [][32]byte{hash}}},
	}
}

func forgedStems() []forge {
	one, two := [32]byte{1}, [32]byte{2}
	hash := common.Hash{0xaa}
	inner := hasher.Inner
	k, other := Key{0x10}, Key{0x90}
	stem := stemHash(k, spanHash(one))
	at := func(k Key, sub byte) Key { k[StemSize] = sub; return k }
	half := hasher.Leaf(one) // the value at 0, in the left half of a stem
	for range 7 {
		half = inner(half, common.Hash{})
	}
	pair := inner(hasher.Leaf(one), hasher.Leaf(two)) // the values at 0 and 1
	for range 7 {
		pair = inner(pair, common.Hash{})
	}
	return []forge{
		{"kind", "a stem whose only key is absent", stemHash(k, inner(common.Hash{}, hash)), []Key{k}, "10 0 0000000 1", proofWriter{hashes: [][32]byte{hash}}},
		{"kind", "an opened stem with a value at a key", stemHash(k, pair), []Key{at(k, 1)}, "11 1 0000000", proofWriter{opened: [][32]byte{k}, values: [][32]byte{one, two}}},
		{"opened", "an opened leaf of another place", inner(stemHash(other, spanHash(one)), hash), []Key{k}, "01 11 00000000 1", proofWriter{opened: [][32]byte{other}, hashes: [][32]byte{hash}, values: [][32]byte{one}}},
		{"opened", "an opened leaf that is a key", stem, []Key{k}, "11 00000000", proofWriter{opened: [][32]byte{k}, values: [][32]byte{one}}},
		{"opened", "an opened leaf that is not the first", stemHash(k, inner(hash, half)), []Key{other}, "11 1 0000000", proofWriter{opened: [][32]byte{at(k, 128)}, hashes: [][32]byte{hash}, values: [][32]byte{one}}},
		{"streams", "an opened leaf is missing", stem, []Key{other}, "11 00000000", proofWriter{values: [][32]byte{one}}},
	}
}

// embeddings are the proofs of statedb/ubt's test of that name: an attacker's
// slot of which the data passes for a node.
func embeddings() (forges []forge) {
	zeros := Key{embeddingSize: 0xa7}
	one := [32]byte{1}
	// The data of the attacker's stem is that of a stem, or of an inner node.
	right := spanHash(one)
	asStem := hasher.Inner(stemHash(zeros, spanHash(one)), right)
	thief := Key{0x40}
	asInner := hasher.Inner(hasher.Inner(common.Hash(zeros), stemHash(thief, spanHash(one))), right)
	return []forge{
		{"embedding", "a hash that begins with zeros", asInner, []Key{thief}, "01 01 10" + value + "1 1", proofWriter{hashes: [][32]byte{zeros, right}, values: [][32]byte{one}}},
		{"embedding", "a hash that is zero", hasher.Inner(stemHash(Key{0x10}, spanHash(one)), common.Hash{}), []Key{{0x10}}, "01 10" + value + "1", proofWriter{hashes: make([][32]byte, 1), values: [][32]byte{one}}},
		{"embedding", "a stem of a key that begins with zeros", asStem, []Key{zeros}, "01 10" + value + "1", proofWriter{hashes: [][32]byte{right}, values: [][32]byte{one}}},
		{"embedding", "an opened stem that begins with zeros", asStem, []Key{{0x10}}, "01 11 00000000 1", proofWriter{opened: [][32]byte{zeros}, hashes: [][32]byte{right}, values: [][32]byte{one}}},
	}
}

const embeddingSize = 12 // zero bytes

// refusedStatements have a good encoding and proof.
func refusedStatements(t *testing.T) []vector {
	v, _ := sample(t)
	honest := statementOf(t, v)
	w, err := ParseWitness(honest.Witness)
	require.NoError(t, err)
	withCode := func(code ...[]byte) statement {
		s, other := honest, *w
		other.Code = code
		s.Witness = other.Encode()
		return s
	}
	less, more, root := honest, honest, honest
	less.Values = less.Values[1:]
	more.Values = append(slices.Clone(more.Values), common.Hash{1})
	root.PreRoot = &common.Hash{1}

	two := open(t, NewStore())
	setTwoCodes(t, two)
	commit(t, two)
	for i := range byte(2) {
		two.Code(two.Account(common.Address{1 + i}).CodeHash)
	}
	swapped := statementOf(t, two)
	of, err := ParseWitness(swapped.Witness)
	require.NoError(t, err)
	slices.Reverse(of.Code)
	swapped.Witness = of.Encode()
	return []vector{
		refuse("code", "codes out of order", swapped),
		refuse("root", "another root before", root),
		refuse("code", "other code", withCode([]byte{1})),
		refuse("code", "empty code", withCode([]byte{})),
		refuse("code", "code twice", withCode(w.Code[0], w.Code[0])),
		refuse("writes", "a value less", less),
		refuse("writes", "a value more", more),
	}
}
