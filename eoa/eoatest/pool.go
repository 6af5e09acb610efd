package eoatest

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/holiman/uint256"

	_ "github.com/jamq/jamq/eoa/blobs" // so that no test needs this import
)

// refusals are answers of a gateway that passes a transaction to two nodes and returns the
// answer of the second one, which refuses it: see Faults.Hedge.
var refusals = []string{
	"transaction underpriced: gas tip cap 2, minimum needed 3",
	"insufficient funds for gas * price + value: balance 0",
	"replacement transaction underpriced",
	"nonce too high: next nonce 0",
	"txpool is full",
	"tx fee (1.20 ether) exceeds the configured cap (1.00 ether)",
	"exceeds block gas limit",
	"intrinsic gas too low: gas 21000, minimum needed 21064",
}

// take adds a transaction to the pool, or returns the message of go-ethereum's
// refusal.
func (c *Chain) take(raw []byte) string {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return "rlp: " + err.Error()
	}
	from := c.sender(tx)
	old := c.pool[from][tx.Nonce()]
	cost, _ := uint256.FromBig(tx.Cost())
	refused := ""
	if c.refuse != nil {
		refused = c.refuse(tx)
	} else if c.rng.Float64() < c.faults.Refuse {
		refused = "insufficient funds for gas * price + value: balance 0"
	}
	switch {
	case refused != "":
		return refused
	case old != nil && old.Hash() == tx.Hash():
		return "already known"
	case tx.Nonce() < c.count(from, len(c.blocks)):
		return "nonce too low: next nonce higher"
	case c.balances[from] != nil && c.balances[from].Lt(cost):
		return "insufficient funds for gas * price + value"
	}
	if text := c.blobPool(from, tx); text != "" {
		return text
	}
	if _, is := c.delegated[from]; is && old == nil && len(c.pool[from]) > 0 {
		return "in-flight transaction limit reached for delegated accounts"
	} else if is && old == nil && tx.Nonce() != c.count(from, len(c.blocks)) {
		return "gapped-nonce tx from delegated accounts"
	}
	if old != nil && !outbids(old, tx) {
		return "replacement transaction underpriced"
	}
	c.wait(tx)
	c.taken = append(c.taken, tx)
	return ""
}

// outbids reports whether tx may replace old in the pool.
func outbids(old, tx *types.Transaction) bool {
	if tx.Type() != types.BlobTxType {
		return dearer(old.GasFeeCap(), tx.GasFeeCap(), 110) && dearer(old.GasTipCap(), tx.GasTipCap(), 110)
	}
	return dearer(old.GasFeeCap(), tx.GasFeeCap(), 200) && dearer(old.GasTipCap(), tx.GasTipCap(), 200) && dearer(old.BlobGasFeeCap(), tx.BlobGasFeeCap(), 200)
}

// dearer reports whether price is at least percent percent of old.
func dearer(old, price *big.Int, percent int64) bool {
	least := new(big.Int).Mul(old, big.NewInt(percent))
	return least.Cmp(new(big.Int).Mul(price, big.NewInt(100))) <= 0
}

// maxBlobTxs is the maximum number of blob transactions of an account in the pool.
const maxBlobTxs = 16

func (c *Chain) paysBlobs(tx *types.Transaction) bool {
	return tx.Type() != types.BlobTxType || tx.BlobGasFeeCap().Cmp(new(big.Int).SetUint64(c.blobFee)) >= 0
}

// blobPool returns the message if the rules of the two pools refuse tx.
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

// badSidecar returns a message about the first fault in the blobs of tx.
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
