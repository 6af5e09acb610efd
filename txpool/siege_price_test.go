package txpool

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// If bytes are scarce, one long transaction takes the places of many short
// ones: it must pay for all of them.
func TestSiegeBytes(t *testing.T) {
	const room = 64 * 1024
	for name, junk := range map[string]func(i int, price int64) *types.Transaction{
		"data":        func(i int, price int64) *types.Transaction { return padded(i, 0, price, 12_000) },
		"access list": func(i int, price int64) *types.Transaction { return listing(i, 0, price, 1, 300) },
		"authorizations": func(i int, price int64) *types.Transaction {
			return setCode(i, 0, price, make([]types.SetCodeAuthorization, 16)...)
		},
	} {
		for _, price := range []int64{8, 20} {
			t.Run(fmt.Sprint(name, price), func(t *testing.T) {
				s := newSiege(t, 1000, narrow(15_000, room))
				s.fill(room - 1500)
				for i := range 20 {
					s.offer(junk(s.rogue(i, rich), price))
				}
				require.LessOrEqual(t, s.Stats().PendingBytes, uint64(room))
				s.judge(1)
				s.admits(500, price+1)
			})
		}
	}
}

// A replacement may be a quarter longer; ten of them must not grow past the room, nor push out more
// than they pay.
func TestSiegeGrowingReplacements(t *testing.T) {
	const room = 64 * 1024
	s := newSiege(t, 1000, narrow(15_000, room))
	s.fill(room - 5000)
	size, price := 500, int64(8)
	for range 12 {
		for i := range 3 {
			s.offer(padded(s.rogue(i, rich), 0, price, size))
		}
		size, price = size*5/4-20, price*9/8+1
		require.LessOrEqual(t, s.Stats().PendingBytes, uint64(room))
	}
	s.judge(1)
}

// A transaction that requests a whole block and uses little of it must not keep others out of
// blocks for more than one block each.
func TestSiegeGasLimits(t *testing.T) {
	const block = 30_000_000
	t.Run("all of a block", func(t *testing.T) {
		s := newSiege(t, 16, func(c *Config) { c.MaxTxGas = 0 })
		for i := range 8 {
			s.honour(tx(i, 0, 5))
		}
		for i := range 8 {
			s.add(hungry(s.rogue(i, 1e9), 0, 6, block))
		}
		for range 8 { // a builder that drains again for the gas that is left
			left := uint64(block)
			for {
				b := s.drain(Budget{Gas: left})
				txs := b.Transactions()
				b.Cancel()
				if len(txs) == 0 || left < 2*txGas {
					break
				}
				s.produce(Budget{Gas: left})
				for _, tx := range txs {
					left -= used(tx)
				}
			}
		}
		require.Empty(t, s.honest, "victims that are not in a block after 8 blocks")
	})
	t.Run("a little more than what is left", func(t *testing.T) {
		const crowd = 4200 // more than a drain looks at
		s := newSiege(t, crowd+100, func(c *Config) { c.SurgeSlope, c.MaxTxGas = 0, 0 })
		for i := range 20 {
			s.honour(tx(i, 0, 5))
		}
		var txs []*types.Transaction
		for i := range crowd {
			txs = append(txs, hungry(s.rogue(i, 1e9), 0, 6, block))
		}
		require.Equal(t, crowd, s.offerAll(txs...))
		blocks := 0
		for ; len(s.honest) > 0 && blocks < 20; blocks++ {
			s.produce(Budget{Gas: block})     // one of the crowd
			s.produce(Budget{Gas: block / 2}) // the rest of the block
		}
		require.Zero(t, len(s.honest), "after %d blocks, each with 21,000 gas of the attacker, who paid %.0f gwei in all", blocks, s.paid)
	})
}

// A floor that follows what blocks included must not let one small transaction per block shut the
// door on all others.
func TestSiegeFloorPump(t *testing.T) {
	s := newSiege(t, 400, func(c *Config) { c.FloorWindow = 20 })
	who := s.rogue(0, rich)
	for nonce := range uint64(60) {
		s.offer(tx(who, nonce, 200))
		s.produce(Budget{Gas: 30_000_000})
	}
	perBlock := s.paid / 60
	refused := 200 - s.offer(fair(200)...)
	require.Less(t, float64(refused)*5*txGas, max(perBlock, 1), "an empty pool refuses %d of 200 at 5 to 7 gwei: floor %d; the attacker pays %.0f gwei a block", refused, s.Stats().Floor, perBlock)
}

// Honest traffic by itself, in blocks that are nearly empty, must not price itself out.
func TestSiegeFloorRatchet(t *testing.T) {
	s := newSiege(t, 100, func(c *Config) { c.FloorWindow = 20 })
	nonces, refused, last := make(map[int]uint64), 0, 0
	for block := range 100 {
		last = 0
		for i := range 20 {
			tx := tx(i, nonces[i], int64(3+i)) // 3 to 22 gwei
			if s.Add(tx) == nil {
				nonces[i]++
			} else {
				refused++
				last++
			}
		}
		s.produce(Budget{Gas: 30_000_000})
		if block == 99 {
			t.Logf("floor %d wei, %d refused in all, %d of 20 in the last block, blocks 1.4 %% full", s.Stats().Floor, refused, last)
		}
	}
	require.LessOrEqual(t, last, 2, "blocks and pool are empty, and yet honest users are refused")
}

// Caps that just pay the base fee: when it rises by an eighth, those are worthless, and whom they
// displaced is gone.
func TestSiegeThinCaps(t *testing.T) {
	for _, price := range []int64{8, 100} {
		t.Run(fmt.Sprint(price), func(t *testing.T) {
			s := newSiege(t, 8)
			s.setBaseFee(price)
			for i := range 8 {
				s.honour(capped(i, 0, 5, 3*price+5))
			}
			for i := range 8 {
				s.offer(capped(s.rogue(i, rich), 0, 6, price+6))
			}
			s.setBaseFee(price * 9 / 8)
			s.judge(1)
		})
	}
}

// A transaction below the floor is refused before its signature is checked.
func TestSiegeFloorBeforeSignature(t *testing.T) {
	recovered := 0
	s := newSiege(t, 16, func(c *Config) {
		c.FloorWindow = 1
		c.Sender = func(tx *types.Transaction) (common.Address, error) { recovered++; return types.Sender(signer, tx) }
	})
	for range 30 {
		s.Reset(Head{Included: []Block{{GasUsed: 30_000_000, Transactions: []*types.Transaction{tx(1, 0, 100)}}}})
	}
	require.Greater(t, s.Stats().Floor, uint64(10*gwei))
	recovered = 0
	require.ErrorIs(t, s.Add(tx(5, 0, 2)), ErrUnderpriced)
	require.Zero(t, recovered, "doc.go: prices are checked before signatures")
}
