package statetrie

import (
	"encoding/binary"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// Key is the key of an entry in the JAM state trie, 31 bytes (GP D.1). The
// functions of this package compute it for each kind of entry.
type Key [31]byte

// The numbers of those parts of the JAM state that proofs are about. The Gray Paper
// calls such a part a chapter, C(n) (D.2).
const (
	// ChapterSafrole is C(4), which begins with the validators of the next epoch.
	ChapterSafrole = 4
	// ChapterValidators is C(8), the validators of this epoch.
	ChapterValidators = 8
	// ChapterSlot is C(11), the slot of the newest block.
	ChapterSlot = 11
	// ChapterOutputs is C(16), the outputs of services in the newest block.
	ChapterOutputs = 16
)

// ChapterKey returns the state key of one part of the JAM state that belongs to no
// service, for example the active validators. The Gray Paper calls such a part the chapter
// C(n) (GP D.1, D.2).
func ChapterKey(chapter uint8) Key { return Key{chapter} }

// ServiceKey returns the key of a service's account, C(255, service) (GP D.1, D.2).
func ServiceKey(service jamq.ServiceID) Key {
	id := serviceBytes(service)
	return Key{255, id[0], 0, id[1], 0, id[2], 0, id[3]}
}

// The marks keep the storage of a service apart from its preimages, because both are in
// one trie. A smaller number in the same position is the length of a requested
// preimage.
const (
	storageMark  = 1<<32 - 1
	preimageMark = 1<<32 - 2
)

// StorageKey returns the state key for a key in the storage of a service (GP D.2).
func StorageKey(service jamq.ServiceID, key []byte) Key {
	return interleave(service, storageMark, key)
}

// PreimageKey returns the state key of a preimage that a service has. hash is the
// BLAKE2b-256 hash of the preimage (GP D.2).
func PreimageKey(service jamq.ServiceID, hash [32]byte) Key {
	return interleave(service, preimageMark, hash[:])
}

// RequestKey returns the state key of a service's request for a preimage. hash is the
// BLAKE2b-256 hash of the preimage, and length its length in bytes (GP D.2). The value
// under this key lists the slots when the preimage became available or unavailable.
func RequestKey(service jamq.ServiceID, hash [32]byte, length uint32) Key {
	return interleave(service, length, hash[:])
}

// interleave returns the state key C(service, mark ++ key) (GP D.1).
func interleave(service jamq.ServiceID, mark uint32, key []byte) (out Key) {
	hash := blake2b.Sum256(append(binary.LittleEndian.AppendUint32(nil, mark), key...))
	id := serviceBytes(service)
	// The first eight bytes of the key are those of the service's id and of the hash, in turn
	// (Gray Paper D.1).
	for i := range id {
		out[2*i], out[2*i+1] = id[i], hash[i]
	}
	copy(out[2*len(id):], hash[len(id):])
	return out
}

func serviceBytes(service jamq.ServiceID) (id [4]byte) {
	binary.LittleEndian.PutUint32(id[:], uint32(service))
	return id
}

// bit returns the bit of the key that decides between left (0) and right (1). Depth 0
// is the most significant bit of the first byte.
func (k *Key) bit(depth int) int { return int(k[depth/8] >> (7 - depth%8) & 1) }
