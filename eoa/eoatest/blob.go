package eoatest

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"

	_ "github.com/jamq/jamq/eoa/blobs" // so that no test needs this import
)

// maxBlobTxs is the number of blob transactions of an account that the pool
// keeps.
const maxBlobTxs = 16

func (c *Chain) paysBlobs(tx *types.Transaction) bool {
	return tx.Type() != types.BlobTxType || tx.BlobGasFeeCap().Cmp(new(big.Int).SetUint64(c.blobFee)) >= 0
}

// blobPool returns the message with which the rules of the two pools refuse tx;
// empty if they accept it. An account is in one pool at a time, and the blob
// pool has no gaps.
func (c *Chain) blobPool(from common.Address, tx *types.Transaction) string {
	blobs := tx.Type() == types.BlobTxType
	for _, other := range c.pool[from] {
		if (other.Type() == types.BlobTxType) != blobs {
			return "address already reserved"
		}
	}
	if !blobs {
		return ""
	}
	gap := c.count(from, len(c.blocks))
	for c.pool[from][gap] != nil {
		gap++
	}
	switch {
	case tx.Nonce() > gap:
		return fmt.Sprintf("nonce too high: tx nonce %d, gapped nonce %d", tx.Nonce(), gap)
	case c.pool[from][tx.Nonce()] == nil && len(c.pool[from]) >= maxBlobTxs:
		return "account limit exceeded"
	}
	return badSidecar(tx)
}

// badSidecar returns a message that describes the first fault of the blobs of
// tx; empty if there is none.
func badSidecar(tx *types.Transaction) string {
	s := tx.BlobTxSidecar()
	if s == nil {
		return "missing sidecar in blob transaction"
	}
	if err := s.ValidateBlobCommitmentHashes(tx.BlobHashes()); err != nil || len(s.Proofs) != len(s.Blobs) || len(s.Blobs) != len(s.Commitments) || len(s.Blobs) == 0 {
		return fmt.Sprintf("wrong sidecar format: %d blobs, %v", len(s.Blobs), err)
	}
	for i := range s.Blobs {
		if err := kzg4844.VerifyBlobProof(&s.Blobs[i], s.Commitments[i], s.Proofs[i]); err != nil {
			return fmt.Sprintf("KZG verification error: blob %d: %v", i, err)
		}
	}
	return ""
}
