package statedb

import (
	"encoding/binary"
	"math/bits"
)

// This file has BLAKE3 for inputs of at most 64 bytes, the largest that a tree
// hashes. Such an input is one block, so a hash is one call of the compression
// function (BLAKE3 specification, section 2).

const (
	blake3BlockSize  = 64
	blake3ChunkStart = 1 << 0
	blake3ChunkEnd   = 1 << 1
	blake3Root       = 1 << 3
	blake3KeyedHash  = 1 << 4
	blake3Rounds     = 7
)

var blake3IV = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// blake3Schedule has the message words of each round: the permutation of the
// specification, applied repeatedly.
var blake3Schedule = func() (rounds [blake3Rounds][16]uint8) {
	permutation := [16]uint8{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8}
	for i := range rounds[0] {
		rounds[0][i] = uint8(i)
	}
	for r := 1; r < blake3Rounds; r++ {
		for i := range permutation {
			rounds[r][i] = rounds[r-1][permutation[i]]
		}
	}
	return rounds
}()

// blake3Key is the initial state of a hash, plain or keyed.
type blake3Key struct {
	words [8]uint32
	flags uint32
}

var blake3Plain = blake3Key{words: blake3IV}

// blake3Keyed returns a keyed mode. The key is the plain hash of name, which
// has at most 64 bytes.
func blake3Keyed(name string) blake3Key {
	return blake3FromKey(blake3Plain.sum([]byte(name)))
}

func blake3FromKey(key [32]byte) (k blake3Key) {
	for i := range k.words {
		k.words[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	k.flags = blake3KeyedHash
	return k
}

// sum hashes at most 64 bytes.
func (k *blake3Key) sum(data []byte) (out [32]byte) {
	var block [blake3BlockSize]byte
	copy(block[:], data)
	var m [16]uint32
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(block[4*i:])
	}
	v := [16]uint32{
		k.words[0], k.words[1], k.words[2], k.words[3], k.words[4], k.words[5], k.words[6], k.words[7],
		blake3IV[0], blake3IV[1], blake3IV[2], blake3IV[3],
		0, 0, uint32(len(data)), k.flags | blake3ChunkStart | blake3ChunkEnd | blake3Root,
	}
	for r := range blake3Schedule {
		blake3Round(&v, &m, &blake3Schedule[r])
	}
	for i := range 8 {
		binary.LittleEndian.PutUint32(out[4*i:], v[i]^v[i+8])
	}
	return out
}

// blake3Round mixes the columns of the state and then its diagonals.
func blake3Round(v, m *[16]uint32, s *[16]uint8) {
	v[0], v[4], v[8], v[12] = blake3Mix(v[0], v[4], v[8], v[12], m[s[0]&15], m[s[1]&15])
	v[1], v[5], v[9], v[13] = blake3Mix(v[1], v[5], v[9], v[13], m[s[2]&15], m[s[3]&15])
	v[2], v[6], v[10], v[14] = blake3Mix(v[2], v[6], v[10], v[14], m[s[4]&15], m[s[5]&15])
	v[3], v[7], v[11], v[15] = blake3Mix(v[3], v[7], v[11], v[15], m[s[6]&15], m[s[7]&15])
	v[0], v[5], v[10], v[15] = blake3Mix(v[0], v[5], v[10], v[15], m[s[8]&15], m[s[9]&15])
	v[1], v[6], v[11], v[12] = blake3Mix(v[1], v[6], v[11], v[12], m[s[10]&15], m[s[11]&15])
	v[2], v[7], v[8], v[13] = blake3Mix(v[2], v[7], v[8], v[13], m[s[12]&15], m[s[13]&15])
	v[3], v[4], v[9], v[14] = blake3Mix(v[3], v[4], v[9], v[14], m[s[14]&15], m[s[15]&15])
}

func blake3Mix(a, b, c, d, x, y uint32) (uint32, uint32, uint32, uint32) {
	a += b + x
	d = bits.RotateLeft32(d^a, -16)
	c += d
	b = bits.RotateLeft32(b^c, -12)
	a += b + y
	d = bits.RotateLeft32(d^a, -8)
	c += d
	b = bits.RotateLeft32(b^c, -7)
	return a, b, c, d
}
