package txpool_test

import (
	"math"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// Long transactions that wait behind a gap displace many short ones when the gap fills (shrink looks at rank only).
func TestFoundBytesByPromotion(t *testing.T) {
	const room = 16 * 1024
	for _, how := range []string{"gap fills", "parent replaced"} {
		t.Run(how, func(t *testing.T) {
			s := newSiege(t, 1000, func(c *txpool.Config) {
				c.MaxTxSize, c.MaxPendingBytes, c.MaxQueuedBytes, c.MaxParkedBytes = 15_000, room, room, room
			})
			for i := 0; s.pool.Stats().PendingBytes+300 < room; i++ {
				s.honour(transfer(i, 0, int64(5+i%3), 0))
			}
			who := s.rogue(0, rich)
			switch how {
			case "gap fills":
				addAll(s, padded(who, 1, 8, 14_000))
				addAll(s, transfer(who, 0, 8, 0))
			default:
				s.setBaseFee(4)
				addAll(s, dynamic(who, 0, 3, 3), padded(who, 1, 12, 14_000))
				require.Equal(t, 2, s.pool.Stats().Parked)
				addAll(s, dynamic(who, 0, 8, 12))
			}
			s.judge(1)
		})
	}
}

// Thin caps that were queued displace when the gap fills; the base fee rises an eighth: they are worth nothing.
func TestFoundThinCapsByPromotion(t *testing.T) {
	const price = 100
	s := newSiege(t, 8, nil)
	s.setBaseFee(price)
	for i := range 8 {
		s.honour(dynamic(i, 0, 5, 3*price+5))
	}
	who := s.rogue(0, rich)
	for nonce := uint64(1); nonce < 8; nonce++ {
		addAll(s, dynamic(who, nonce, 6, price+6))
	}
	addAll(s, dynamic(who, 0, 6, 3*price))
	s.setBaseFee(price * 9 / 8)
	s.judge(1)
}

// A transaction in the middle of the chain is about to expire: it is made old for nothing behind a gap. Its children displace, then it goes.
func TestFoundExpiringParent(t *testing.T) {
	t.Run("attack", func(t *testing.T) {
		s := newSiege(t, 16, nil)
		who := s.rogue(0, rich)
		addAll(s, transfer(who, 1, 8, 0)) // waits behind a gap, for nothing
		s.now = s.now.Add(59*time.Minute + 50*time.Second)
		for i := range 16 {
			s.honour(transfer(i, 0, int64(5+i%3), 0))
		}
		addAll(s, chain(who, 2, 14, 8, 0)...)
		addAll(s, transfer(who, 0, 8, 0))
		require.Equal(t, 16, s.inLine(who))
		s.now = s.now.Add(10 * time.Second)
		s.pool.CleanupExpired()
		s.judge(1)
	})
}

// MinReadyPerSender: promoted poor children displace rich surplus.
func TestFoundQuotaByPromotion(t *testing.T) {
	s := newSiege(t, 8, func(c *txpool.Config) { c.MinReadyPerSender = 2; c.SurgeSlope = 0 })
	for nonce := range uint64(6) {
		s.honour(transfer(0, nonce, 100, 0))
	}
	s.honour(transfer(1, 0, 2, 0))
	s.honour(transfer(2, 0, 2, 0))
	who := s.rogue(0, rich)
	addAll(s, transfer(who, 1, 1, 0))
	addAll(s, transfer(who, 0, 3, 0))
	s.judge(1)
}

func TestFoundQuotaByBaseFee(t *testing.T) {
	s := newSiege(t, 8, func(c *txpool.Config) { c.MinReadyPerSender = 1; c.SurgeSlope = 0 })
	s.setBaseFee(2)
	for i := range 7 {
		addAll(s, dynamic(s.rogue(i, rich), 0, 1, 1))
	}
	for nonce := range uint64(8) {
		s.honour(transfer(0, nonce, 100, 0))
	}
	s.setBaseFee(1)
	s.judge(1)
}

// Ties: equal rank, children that came early.
func TestFoundPromotionTies(t *testing.T) {
	s := newSiege(t, 8, nil)
	who := s.rogue(0, rich)
	addAll(s, chain(who, 1, 7, 5, 0)...)
	for i := range 8 {
		s.honour(transfer(i, 0, 5, 0))
	}
	addAll(s, transfer(who, 0, 6, 0))
	lost := 0
	for h := range s.honest {
		if s.pool.Get(h) == nil {
			lost++
		}
	}
	require.LessOrEqual(t, lost, 1, "children with the same tip as residents displaced them: a newcomer must beat the worst strictly (I4)")
}

// Under the current floor, and yet the signature is recovered.
func TestFoundFloorBeforeSignature(t *testing.T) {
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

func TestFoundWatermarkWhenAllLeased(t *testing.T) {
	s := newSiege(t, 4, func(c *txpool.Config) { c.SurgeSlope = 0 })
	for i := range 4 {
		s.honour(transfer(i, 0, 5, 0))
	}
	s.pool.Drain(txpool.Budget{})
	require.EqualValues(t, uint64(math.MaxUint64), s.pool.Stats().Watermark)
}

// random search: an attacker with all tricks on small pools
func TestFoundDuplicateSkips(t *testing.T) {
	s := newSiege(t, 16, nil)
	s.honour(transfer(0, 0, 9, 0))
	s.honour(hungry(1, 0, 8, 1_000_000))
	s.mu.Lock()
	s.chain[address(0)] = txpool.Account{} // drifted
	s.mu.Unlock()
	l := s.pool.Drain(txpool.Budget{Gas: 100_000})
	require.Empty(t, l.Transactions())
	seen := map[common.Hash]int{}
	for _, k := range l.Skipped() {
		seen[k.Tx.Hash()]++
		require.Equal(t, 1, seen[k.Tx.Hash()], "%v twice among the skipped: %v", k.Reason, l.Skipped())
	}
}
