package jamnps

import (
	"crypto/ed25519"
	"encoding"
	"encoding/binary"

	"golang.org/x/crypto/blake2b"
)

// ed25519Personal is the personalization of the hash that derives an Ed25519 key from a
// seed. With it, the key is independent of other keys from the same seed.
const ed25519Personal = "jam-valk-ed25519"

// KeyFromSeed derives the Ed25519 key of a node or a builder from a seed, as JIP-5
// specifies. The seed must be secret and random.
func KeyFromSeed(seed [32]byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(personalHash(ed25519Personal, seed[:]))
}

// personalHash returns the BLAKE2b-256 hash of data with a personalization of 16 bytes.
func personalHash(personal string, data []byte) []byte {
	h, err := blake2b.New256(nil)
	if err != nil {
		panic(err) // only for a key that is too long
	}
	// Package blake2b has no parameter for the personalization. It is the last quarter of the
	// parameter block (RFC 7693, 2.5; BLAKE2, 2.8), which is XORed into the initial state. So
	// write it into the marshaled state of a new hash.
	const words = 3 // bytes before the state's eight words, big-endian
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		panic(err) // only for a hash with a key
	}
	for i := range 2 {
		word := state[words+(6+i)*8:][:8]
		mask := binary.LittleEndian.Uint64([]byte(personal[8*i:][:8]))
		binary.BigEndian.PutUint64(word, binary.BigEndian.Uint64(word)^mask)
	}
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		panic(err) // the state has its own length and magic
	}
	h.Write(data)
	return h.Sum(nil)
}
