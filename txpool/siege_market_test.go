package txpool_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// padded returns a transfer with the given number of zero bytes of data, which
// cost the least gas per byte.
func padded(i int, nonce uint64, price int64, bytes int) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.LegacyTx{
		Nonce: nonce, GasPrice: big.NewInt(price * gwei), Gas: gas + 10*uint64(bytes), To: &common.Address{1}, Data: make([]byte, bytes),
	})
}

// hungry asks for much more gas than it uses.
func hungry(i int, nonce uint64, price int64, limit uint64) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(price * gwei), Gas: limit, To: &common.Address{1}})
}

// If bytes are scarce, one long transaction takes the places of many short
// ones: it must pay for all of them.
func TestSiegeBytes(t *testing.T) {
	const room = 64 * 1024
	for name, junk := range map[string]func(i int, price int64) *types.Transaction{
		"data":        func(i int, price int64) *types.Transaction { return padded(i, 0, price, 12_000) },
		"access list": func(i int, price int64) *types.Transaction { return listed(i, 0, price, 300) },
		"authorizations": func(i int, price int64) *types.Transaction {
			return setCode(i, 0, uint64(price), make([]types.SetCodeAuthorization, 16)...)
		},
	} {
		for _, price := range []int64{8, 20} {
			t.Run(fmt.Sprint(name, price), func(t *testing.T) {
				s := newSiege(t, 1000, func(c *txpool.Config) { c.MaxTxSize, c.MaxBytes = 15_000, room })
				for i := 0; s.pool.Stats().PendingBytes+1500 < room; i++ {
					s.honour(transfer(i, 0, int64(5+i%3), 0))
				}
				for i := range 20 {
					addAll(s, junk(s.rogue(i, rich), price))
				}
				require.LessOrEqual(t, s.pool.Stats().PendingBytes, uint64(room))
				s.judge(1)
				s.admits(500, price+1)
			})
		}
	}
}

func listed(i int, nonce uint64, price int64, keys int) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.AccessListTx{
		ChainID: chainID, Nonce: nonce, GasPrice: big.NewInt(price * gwei), Gas: gas + 2400 + 1900*uint64(keys), To: &common.Address{1},
		AccessList: types.AccessList{{Address: common.Address{1}, StorageKeys: make([]common.Hash, keys)}},
	})
}

// A replacement may be a quarter longer; ten of them must not grow past the room, nor push out more
// than they pay.
func TestSiegeGrowingReplacements(t *testing.T) {
	const room = 64 * 1024
	s := newSiege(t, 1000, func(c *txpool.Config) { c.MaxTxSize, c.MaxBytes = 15_000, room })
	for i := 0; s.pool.Stats().PendingBytes+5000 < room; i++ {
		s.honour(transfer(i, 0, int64(5+i%3), 0))
	}
	size, price := 500, int64(8)
	for range 12 {
		for i := range 3 {
			addAll(s, padded(s.rogue(i, rich), 0, price, size))
		}
		size, price = size*5/4-20, price*9/8+1
		require.LessOrEqual(t, s.pool.Stats().PendingBytes, uint64(room))
	}
	s.judge(1)
}

// A transaction that requests a whole block and uses little of it must not keep others out of
// blocks for more than one block each.
func TestSiegeGasLimits(t *testing.T) {
	const block = 30_000_000
	t.Run("all of a block", func(t *testing.T) {
		s := newSiege(t, 16, func(c *txpool.Config) { c.MaxTxGas = 0 })
		for i := range 8 {
			s.honour(transfer(i, 0, 5, 0))
		}
		for i := range 8 {
			require.NoError(t, s.pool.Add(hungry(s.rogue(i, 1e9), 0, 6, block)))
		}
		for range 8 { // a builder that drains again for the gas that is left
			left := uint64(block)
			for {
				lease := s.pool.Drain(txpool.Budget{Gas: left})
				txs := lease.Transactions()
				require.NoError(t, lease.Release())
				if len(txs) == 0 || left < 2*gas {
					break
				}
				s.build(txpool.Budget{Gas: left})
				for _, tx := range txs {
					left -= used(tx)
				}
			}
		}
		require.Empty(t, s.honest, "victims that are not in a block after 8 blocks")
	})
	t.Run("a little more than what is left", func(t *testing.T) {
		const crowd = 4200 // more than a drain looks at
		s := newSiege(t, crowd+100, func(c *txpool.Config) { c.SurgeSlope, c.MaxTxGas = 0, 0 })
		for i := range 20 {
			s.honour(transfer(i, 0, 5, 0))
		}
		var txs []*types.Transaction
		for i := range crowd {
			txs = append(txs, hungry(s.rogue(i, 1e9), 0, 6, block))
		}
		for _, err := range s.pool.AddAll(txs) {
			require.NoError(t, err)
		}
		blocks := 0
		for ; len(s.honest) > 0 && blocks < 20; blocks++ {
			s.build(txpool.Budget{Gas: block})     // one of the crowd
			s.build(txpool.Budget{Gas: block / 2}) // the rest of the block
		}
		require.Zero(t, len(s.honest), "after %d blocks, each with 21,000 gas of the attacker, who paid %.0f gwei in all", blocks, s.paid)
	})
}

// A floor that follows what blocks included must not let one small transaction per block shut the
// door on all others.
func TestSiegeFloorPump(t *testing.T) {
	s := newSiege(t, 400, func(c *txpool.Config) { c.FloorWindow = 20 })
	who := s.rogue(0, rich)
	for nonce := range uint64(60) {
		addAll(s, transfer(who, nonce, 200, 0))
		s.build(txpool.Budget{Gas: 30_000_000})
	}
	perBlock := s.paid / 60
	refused := 0
	for i := range 200 { // honest users
		if s.pool.Add(transfer(i, 0, int64(5+i%3), 0)) != nil {
			refused++
		}
	}
	require.Less(t, float64(refused)*5*gas, max(perBlock, 1), "an empty pool refuses %d of 200 at 5 to 7 gwei: floor %d; the attacker pays %.0f gwei a block", refused, s.pool.Stats().Floor, perBlock)
}

// Honest traffic by itself, in blocks that are nearly empty, must not price itself out.
func TestSiegeFloorRatchet(t *testing.T) {
	s := newSiege(t, 100, func(c *txpool.Config) { c.FloorWindow = 20 })
	nonces, refused, last := make(map[int]uint64), 0, 0
	for block := range 100 {
		last = 0
		for i := range 20 {
			tx := transfer(i, nonces[i], int64(3+i), 0) // 3 to 22 gwei
			if s.pool.Add(tx) == nil {
				nonces[i]++
			} else {
				refused++
				last++
			}
		}
		s.build(txpool.Budget{Gas: 30_000_000})
		if block == 99 {
			t.Logf("floor %d wei, %d refused in all, %d of 20 in the last block, blocks 1.4 %% full", s.pool.Stats().Floor, refused, last)
		}
	}
	require.LessOrEqual(t, last, 2, "blocks and pool are empty, and yet honest users are refused")
}

// Caps that just pay the base fee: when it rises by an eighth, those are worthless, and whom they
// displaced is gone.
func TestSiegeThinCaps(t *testing.T) {
	for _, price := range []int64{8, 100} {
		t.Run(fmt.Sprint(price), func(t *testing.T) {
			s := newSiege(t, 8, nil)
			s.setBaseFee(price)
			for i := range 8 {
				s.honour(dynamic(i, 0, 5, 3*price+5))
			}
			for i := range 8 {
				addAll(s, dynamic(s.rogue(i, rich), 0, 6, price+6))
			}
			s.setBaseFee(price * 9 / 8)
			s.judge(1)
		})
	}
}

// A transaction below the floor is refused before its signature is checked.
func TestSiegeFloorBeforeSignature(t *testing.T) {
	recovered := 0
	s := newSiege(t, 16, func(c *txpool.Config) {
		c.FloorWindow = 1
		c.Sender = func(tx *types.Transaction) (common.Address, error) { recovered++; return types.Sender(signer, tx) }
	})
	for range 30 {
		s.pool.Reset(txpool.Head{Included: []txpool.Block{{GasUsed: 30_000_000, Transactions: []*types.Transaction{transfer(1, 0, 100, 0)}}}})
	}
	require.Greater(t, s.pool.Stats().Floor, uint64(10*gwei))
	recovered = 0
	require.ErrorIs(t, s.pool.Add(transfer(5, 0, 2, 0)), txpool.ErrUnderpriced)
	require.Zero(t, recovered, "doc.go: prices are checked before signatures")
}
