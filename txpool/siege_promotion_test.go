package txpool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// Long transactions that wait behind a gap, or parked, must not displace many short ones when they
// come in line.
func TestSiegePromotedBytes(t *testing.T) {
	const room = 64 * 1024
	for _, how := range []string{"gap fills", "parent replaced"} {
		t.Run(how, func(t *testing.T) {
			s := newSiege(t, 1000, func(c *txpool.Config) {
				c.MaxTxSize, c.MaxBytes = 15_000, room
			})
			for i := 0; s.pool.Stats().PendingBytes+1500 < room; i++ {
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

// Thin caps that waited must not displace when the gap fills: once the base fee rises by an eighth
// they are worth nothing.
func TestSiegePromotedThinCaps(t *testing.T) {
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

// A transaction grew old behind a gap, for nothing. Children of it must not displace others just
// before it expires.
func TestSiegeExpiringParent(t *testing.T) {
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
}

// At equal prices, the transaction that came in line later gives way, even if
// it was admitted earlier.
func TestSiegePromotedTies(t *testing.T) {
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
