package proof

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// Commitment makes a rollup block provable, because the rollup's service publishes it in
// the JAM state. When the service accumulates the block's package, it does one or both of
// the following:
//
//   - It stores the result of [Commitment.Encode] under the key that [CommitmentKey]
//     returns for the block's number.
//   - It yields the hash that [Commitment.Yield] returns.
//
// One call of accumulate yields only one hash, even if it applies the packages of several
// blocks. The service then yields the commitment to the last of these blocks. The earlier
// blocks are provable only if the service has also stored their commitments.
type Commitment struct {
	// Number is the number of the rollup block, and Hash is its block hash.
	Number uint64
	Hash   common.Hash
	// PreRoot and PostRoot are the state roots of the rollup before and after the block.
	PreRoot, PostRoot common.Hash
	// TransactionsRoot is the root of the block's transactions, as in an
	// Ethereum header.
	TransactionsRoot common.Hash
	// Package is the work package that contained the block. The service learns its hash from
	// the operands of accumulate.
	Package jamq.PackageHash
}

// commitmentSize is the length of an encoded commitment, in bytes.
const commitmentSize = 8 + 5*common.HashLength

// Encode returns the encoding of the commitment, which has 168 bytes: the number as
// 8 bytes in little-endian order, then the five hashes in the order of the fields.
func (c Commitment) Encode() []byte {
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, commitmentSize), c.Number)
	for _, h := range [][32]byte{c.Hash, c.PreRoot, c.PostRoot, c.TransactionsRoot, c.Package} {
		out = append(out, h[:]...)
	}
	return out
}

// Yield returns the hash that the service yields for this commitment: the
// BLAKE2b-256 hash of its encoding.
func (c Commitment) Yield() common.Hash { return blake2b.Sum256(c.Encode()) }

// DecodeCommitment is the inverse of [Commitment.Encode]. The error wraps
// ErrCommitment if data does not have exactly 168 bytes.
func DecodeCommitment(data []byte) (Commitment, error) {
	if len(data) != commitmentSize {
		return Commitment{}, fmt.Errorf("%w: it has %d bytes, want %d", ErrCommitment, len(data), commitmentSize)
	}
	hash := func(i int) common.Hash { return common.Hash(data[8+32*i : 8+32*(i+1)]) }
	return Commitment{
		Number: binary.LittleEndian.Uint64(data), Hash: hash(0), PreRoot: hash(1), PostRoot: hash(2),
		TransactionsRoot: hash(3), Package: jamq.PackageHash(hash(4)),
	}, nil
}

// CommitmentKey returns the key of a block's commitment in the service's storage: the
// prefix, followed by the number as 8 bytes in little-endian order.
func CommitmentKey(prefix []byte, number uint64) []byte {
	return binary.LittleEndian.AppendUint64(append([]byte(nil), prefix...), number)
}

// Claim is the statement that a document proves: that a transaction, or a whole
// rollup block, is final.
type Claim struct {
	// Transaction is the hash of the transaction. If the claim is about the block only,
	// Transaction is zero, and absent in JSON.
	Transaction common.Hash `json:"transaction,omitzero"`
	// Number and Block identify the rollup block, and Package is the work package that
	// contained the block.
	Number  uint64           `json:"blockNumber"`
	Block   common.Hash      `json:"blockHash"`
	Package jamq.PackageHash `json:"package"`
}

// VerifyCommitment decodes a commitment and checks that it is about the same block
// and the same package as the claim. The error wraps ErrCommitment if it is not.
func VerifyCommitment(encoded []byte, claim Claim) (Commitment, error) {
	c, err := DecodeCommitment(encoded)
	switch {
	case err != nil:
		return Commitment{}, err
	case c.Number != claim.Number:
		return Commitment{}, fmt.Errorf("%w: it binds block %d, and the claim is about block %d", ErrCommitment, c.Number, claim.Number)
	case c.Hash != claim.Block:
		return Commitment{}, fmt.Errorf("%w: block %d is %s, and the claim names %s", ErrCommitment, c.Number, c.Hash, claim.Block)
	case c.Package != claim.Package:
		return Commitment{}, fmt.Errorf("%w: its package is %s, and the claim names %s", ErrCommitment, c.Package, claim.Package)
	}
	return c, nil
}
