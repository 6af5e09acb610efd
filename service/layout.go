package service

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
)

// ErrHeader is returned if a payload does not begin with a valid header.
var ErrHeader = errors.New("service: no header in the payload")

// HeaderSize is the length of the header with which each payload begins, in bytes.
const HeaderSize = 8 + 4*common.HashLength

// updateSize is the length of refine's output: a commitment and its hash.
const updateSize = HeaderSize + 2*common.HashLength

// These are the limits of the service's storage. The program in assembly defines
// the same limits.
const (
	// Ahead limits how far out of order blocks can arrive. The service keeps a
	// block that it cannot apply yet if the block's number is less than Ahead
	// above the number of the next block.
	Ahead = 64
	// Rivals is the maximum number of waiting updates with the same block number,
	// each of which starts from a different state root. If another one arrives,
	// the service forgets the oldest.
	Rivals = 4
	// History is the number of blocks that the service remembers. When it applies block n, it
	// deletes from its storage everything about block n-History, so that the storage does not grow
	// without limit.
	History = 4096
)

// AccumulateGas is an amount of gas that is always enough for the accumulate of one
// work item, in every version of the Gray Paper, no matter how many updates wait
// for its block. See docs/service.md, "Costs".
const AccumulateGas = 3_000_000

// CommitmentPrefix is the prefix of the storage keys of commitments. Callers pass
// it to proof.CommitmentKey and set it as proof.Trust.KeyPrefix.
const CommitmentPrefix = "commitment"

// EncodeHeader returns the header with which a payload must begin: the number as 8
// little-endian bytes, the block hash, the pre-root, the post-root and the
// transactions root. The package is not part of the header, because its hash
// depends on the payload.
func EncodeHeader(c proof.Commitment) []byte { return c.Encode()[:HeaderSize] }

// DecodeHeader decodes the header of a payload. Refine accepts exactly the payloads
// for which DecodeHeader returns no error. The result has no package. The error
// wraps ErrHeader if the payload is too short or the number is 0.
func DecodeHeader(payload []byte) (proof.Commitment, error) {
	if len(payload) < HeaderSize {
		return proof.Commitment{}, fmt.Errorf("%w: %d bytes, want at least %d", ErrHeader, len(payload), HeaderSize)
	}
	c, err := proof.DecodeCommitment(append(payload[:HeaderSize:HeaderSize], make([]byte, common.HashLength)...))
	if err != nil {
		return proof.Commitment{}, err
	}
	if c.Number == 0 {
		return proof.Commitment{}, fmt.Errorf("%w: block 0, want at least 1", ErrHeader)
	}
	return c, nil
}

// CountKey returns the storage key of the number of the last block. The value has 8
// bytes, little-endian. It is absent before the service has applied block 1.
func CountKey() []byte { return []byte("n") }

// EntryKey returns the storage key of the record of block i+1. The value is the
// hash of the work package that contained the block, followed by the block's
// header.
func EntryKey(i uint64) []byte { return numbered("i", i) }

// MarkKey returns the storage key under which the service records that it has
// applied the block of a package. The key is the package hash, and the value is
// the slot as 4 little-endian bytes.
func MarkKey(pkg jamq.PackageHash) []byte { return pkg[:] }

// AuthorizerKey returns the storage key of the authorizer's hash. The service
// accepts packages of this authorizer only.
func AuthorizerKey() []byte { return []byte("authorizer") }

// waitingKey returns the storage key of the updates that wait for earlier blocks.
// The value is a list of outputs of refine, newest first.
func waitingKey(number uint64) []byte { return numbered("p", number) }

func numbered(prefix string, number uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte(prefix), number)
}
