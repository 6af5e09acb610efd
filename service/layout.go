package service

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
)

// ErrHeader is returned for a payload that does not begin with a header.
var ErrHeader = errors.New("service: no header in the payload")

// HeaderSize is the length of the header at the beginning of a payload, in
// bytes.
const HeaderSize = 8 + 4*common.HashLength

// updateSize is the length of refine's output: a commitment and its hash.
const updateSize = HeaderSize + 2*common.HashLength

// The limits of the storage, which the program has under the same names.
const (
	// Ahead is how far in front of its turn a block may come: the service keeps
	// it until then if its number is less than Ahead above that of the next
	// block.
	Ahead = 64
	// Rivals is how many updates with one number may wait, each on another state root.
	// A further one takes the place of the first that came.
	Rivals = 4
	// History is how many blocks the service keeps: of the last block with
	// number n it has the commitments, marks and entries of n-History+1 to n.
	History = 4096
)

// AccumulateGas is gas for accumulate with which a work item has enough, whatever waits for its
// block, in every version of the Gray Paper. See docs/service.md, "Costs".
const AccumulateGas = 3_000_000

// CommitmentPrefix is the prefix of the keys of commitments, for
// proof.CommitmentKey and proof.Trust.
const CommitmentPrefix = "commitment"

// EncodeHeader returns the header that a payload must begin with: the number,
// little-endian in 8 bytes, block hash, pre-root, post-root and transactions
// root. The package is left out, because the payload is a part of it.
func EncodeHeader(c proof.Commitment) []byte { return c.Encode()[:HeaderSize] }

// DecodeHeader reads the header at the beginning of a payload. Refine accepts the
// payload if there is no error. The result has no package. The error wraps
// ErrHeader if the payload is too short or the number is 0.
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

// CountKey returns the storage key of the number of the last block, 8 bytes
// little-endian. Before block 1 there is no value.
func CountKey() []byte { return []byte("n") }

// EntryKey returns the storage key of block i+1: its package, then its header.
func EntryKey(i uint64) []byte { return numbered("i", i) }

// MarkKey returns the storage key under which the service stores that it applied
// the block of a package: the slot, 4 bytes little-endian. It is the package
// hash.
func MarkKey(pkg jamq.PackageHash) []byte { return pkg[:] }

// AuthorizerKey returns the storage key of the hash of the only authorizer whose
// packages the service accepts.
func AuthorizerKey() []byte { return []byte("authorizer") }

// waitingKey returns the storage key of the updates that wait for the turn of their
// number: outputs of refine, the last that came first.
func waitingKey(number uint64) []byte { return numbered("p", number) }

func numbered(prefix string, number uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte(prefix), number)
}
