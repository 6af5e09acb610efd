package proof

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// Commitment is what a rollup's service must bind to make a rollup block provable. When it accumulates the block's package it stores
// [Commitment.Encode] under a key made of the block's number (see [Trust]), or yields [Commitment.Hash], or both.
type Commitment struct {
	// Number is the rollup block's number, Hash its block hash.
	Number uint64
	Hash   common.Hash
	// PreRoot and PostRoot are the rollup's state roots before and after it.
	PreRoot, PostRoot common.Hash
	// TransactionsRoot is the root of its transactions, as in an Ethereum header.
	TransactionsRoot common.Hash
	// Package is the work package that carried it, as the operands of the accumulation name it.
	Package jamq.PackageHash
}

// CommitmentSize is the length of an encoded commitment, in bytes.
const CommitmentSize = 8 + 5*common.HashLength

// Encode returns the number, little-endian in 8 bytes, and the five hashes in the order of the fields.
func (c Commitment) Encode() []byte {
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, CommitmentSize), c.Number)
	for _, h := range [][32]byte{c.Hash, c.PreRoot, c.PostRoot, c.TransactionsRoot, c.Package} {
		out = append(out, h[:]...)
	}
	return out
}

// Yield returns what the service yields: the BLAKE2b-256 hash of the encoding.
func (c Commitment) Yield() common.Hash { return blake2b.Sum256(c.Encode()) }

// DecodeCommitment is the inverse of [Commitment.Encode]. The error wraps ErrCommitment for any other length.
func DecodeCommitment(data []byte) (Commitment, error) {
	if len(data) != CommitmentSize {
		return Commitment{}, fmt.Errorf("%w: it has %d bytes, want %d", ErrCommitment, len(data), CommitmentSize)
	}
	hash := func(i int) common.Hash { return common.Hash(data[8+32*i : 8+32*(i+1)]) }
	return Commitment{
		Number: binary.LittleEndian.Uint64(data), Hash: hash(0), PreRoot: hash(1), PostRoot: hash(2),
		TransactionsRoot: hash(3), Package: jamq.PackageHash(hash(4)),
	}, nil
}

// CommitmentKey returns the service's own key for the commitment to a block: the prefix and the number, little-endian in 8 bytes.
func CommitmentKey(prefix []byte, number uint64) []byte {
	return binary.LittleEndian.AppendUint64(append([]byte(nil), prefix...), number)
}

// Claim is what a document is about.
type Claim struct {
	// Transaction is the hash of the transaction that is said to be final.
	Transaction common.Hash `json:"transaction"`
	// Number and Block name the rollup block that holds it, Package the work package that carried that.
	Number  uint64           `json:"blockNumber"`
	Block   common.Hash      `json:"blockHash"`
	Package jamq.PackageHash `json:"package"`
}

// VerifyCommitment checks that a commitment binds the claim's block and package, and returns it. The error wraps ErrCommitment.
func VerifyCommitment(encoded []byte, claim Claim) (Commitment, error) {
	c, err := DecodeCommitment(encoded)
	switch {
	case err != nil:
		return Commitment{}, err
	case c.Number != claim.Number:
		return Commitment{}, fmt.Errorf("%w: it is to block %d, and the claim is about %d", ErrCommitment, c.Number, claim.Number)
	case c.Hash != claim.Block:
		return Commitment{}, fmt.Errorf("%w: block %d is %s, and the claim says %s", ErrCommitment, c.Number, c.Hash, claim.Block)
	case c.Package != claim.Package:
		return Commitment{}, fmt.Errorf("%w: package %s carried it, and the claim says %s", ErrCommitment, c.Package, claim.Package)
	}
	return c, nil
}
