package eoatest

import (
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// refusals are the answers of the second node of a gateway.
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

// take adds a transaction to the pool, or returns the message with which
// go-ethereum refuses it.
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

// outbids reports whether all prices are at least 10 percent above those of
// old, or twice as high for blob transactions.
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
