package statedb

import (
	"crypto/sha256"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// StemSize is the length of a stem, in bytes.
const StemSize = ubt.StemSize

// Key is the position of one value: a stem, and a sub-index in the last byte.
type Key = ubt.Key

// Profile determines how a tree is hashed and how the parts of an account
// become keys. Trees of different profiles are unrelated. Its functions must be
// pure and safe for concurrent use. The zero value means [EIP7864]. Any other
// profile must set all functions except Pairs.
type Profile struct {
	// Name identifies the profile, at most 255 bytes. It is stored on the disk.
	Name string
	// Hasher hashes the nodes.
	ubt.Hasher
	// Embed hashes an address and the tree index of a part of its account to a
	// stem.
	Embed func(address common.Address, treeIndex [32]byte) [StemSize]byte
	// ZeroDeletes means that writing zero removes a value (EIP-8297). If it is
	// false, zeros are stored like other values.
	ZeroDeletes bool
	// Tagged means that hashes of leaves, inner nodes, stems and keys cannot be
	// taken for each other. Without it raw keys must not begin with twelve zero
	// bytes and must not be chosen by untrusted parties; see [Verify].
	Tagged bool
}

// EIP7864 returns the profile of EIP-7864 in its version of 2026-03-09, with
// SHA-256 like go-ethereum's binary trie. The EIP does not specify deletion.
// go-ethereum stores zeros, and so does this profile.
func EIP7864() Profile {
	return Profile{
		Name: "EIP-7864/SHA-256",
		Hasher: ubt.Hasher{
			Leaf: func(value [32]byte) common.Hash { return sha256.Sum256(value[:]) },
			Inner: func(left, right common.Hash) common.Hash {
				data := pair(left, right)
				return sha256.Sum256(data[:])
			},
			Pairs: sha256Pairs,
			Stem: func(stem [StemSize]byte, values common.Hash) common.Hash {
				data := pair(whole(stem), values)
				return sha256.Sum256(data[:])
			},
			StemsArePairs: true,
		},
		Embed: func(address common.Address, treeIndex [32]byte) [StemSize]byte {
			data := embedding(address, treeIndex)
			sum := sha256.Sum256(data[:])
			return [StemSize]byte(sum[:StemSize])
		},
	}
}

// BLAKE3 returns the profile of EIP-7864 with BLAKE3, the hash function that
// the EIP suggests.
func BLAKE3() Profile {
	return blake3Profile("EIP-7864/BLAKE3", blake3Plain, blake3Plain, blake3Plain, blake3Plain)
}

// Tagged returns jamq's profile, in which leaves, stems, inner nodes and keys
// are hashed with different keys of BLAKE3, so that none can be taken for
// another. Writing zero deletes.
func Tagged() Profile {
	p := blake3Profile("jamq/BLAKE3 tagged", blake3Keyed("jamq ubt leaf"), blake3Keyed("jamq ubt inner"), blake3Keyed("jamq ubt stem"), blake3Keyed("jamq ubt key"))
	p.ZeroDeletes, p.Tagged = true, true
	return p
}

// orDefault returns the profile, or EIP7864 for the zero value. The error wraps
// ErrConfig.
func (p Profile) orDefault() (Profile, error) {
	missing := p.Leaf == nil || p.Inner == nil || p.Stem == nil || p.Embed == nil
	switch {
	case missing && p.Name == "" && p.Leaf == nil && p.Inner == nil && p.Stem == nil && p.Embed == nil && !p.ZeroDeletes && !p.Tagged:
		return EIP7864(), nil
	case missing:
		return p, fmt.Errorf("%w: Profile %q lacks a function, want Leaf, Inner, Stem and Embed", ErrConfig, p.Name)
	case len(p.Name) > maxProfileName:
		return p, fmt.Errorf("%w: Profile.Name has %d bytes, want at most %d", ErrConfig, len(p.Name), maxProfileName)
	}
	return p, nil
}

func blake3Profile(name string, leaf, inner, stem, key blake3Key) Profile {
	return Profile{
		Name: name,
		Hasher: ubt.Hasher{
			Leaf: func(value [32]byte) common.Hash { return leaf.sum(value[:]) },
			Inner: func(left, right common.Hash) common.Hash {
				data := pair(left, right)
				return inner.sum(data[:])
			},
			Stem: func(name [StemSize]byte, values common.Hash) common.Hash {
				data := pair(whole(name), values)
				return stem.sum(data[:])
			},
		},
		Embed: func(address common.Address, treeIndex [32]byte) [StemSize]byte {
			data := embedding(address, treeIndex)
			sum := key.sum(data[:])
			return [StemSize]byte(sum[:StemSize])
		},
	}
}

func pair(left, right common.Hash) (data [64]byte) {
	copy(data[:], left[:])
	copy(data[32:], right[:])
	return data
}

// whole returns the stem with a zero byte appended.
func whole(stem [StemSize]byte) (h common.Hash) {
	copy(h[:], stem[:])
	return h
}

// embedding returns the preimage of a stem: twelve zero bytes, the address, and
// the tree index.
func embedding(address common.Address, treeIndex [32]byte) [64]byte {
	return pair(common.BytesToHash(address[:]), treeIndex)
}
