package eoatest

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// UseNonces makes the next block use n nonces of an account without a
// transaction, as a contract creation by the account's code does.
func (c *Chain) UseNonces(a common.Address, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses[a] += n
}

// Count returns the account's transaction count after the block at a height.
func (c *Chain) Count(a common.Address, height uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count(a, min(int(height)+1, len(c.blocks)))
}

// use raises the counts for a transaction: that of its sender, and then that of
// the authority of each valid authorization (EIP-7702).
func (c *Chain) use(counts map[common.Address]uint64, tx *types.Transaction) {
	counts[c.sender(tx)]++
	for _, auth := range tx.SetCodeAuthorizations() {
		authority, err := auth.Authority()
		if err == nil && (auth.ChainID.IsZero() || auth.ChainID.ToBig().Cmp(c.id) == 0) && auth.Nonce == counts[authority] {
			counts[authority]++
		}
	}
}

// user returns the account's transaction with a nonce, or zero.
func (c *Chain) user(a common.Address, nonce uint64) common.Hash {
	for _, b := range c.blocks {
		for _, tx := range b.txs {
			if tx.Nonce() == nonce && c.sender(tx) == a {
				return tx.Hash()
			}
		}
	}
	return common.Hash{}
}
