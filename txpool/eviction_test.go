package txpool

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// priced makes a transfer with a price in wei and data of zeros.
func priced(i int, wei int64, zeros int) *types.Transaction {
	return legacy(i, 0, big.NewInt(wei), 100_000, zeros)
}

// work returns the least gas of a transfer with data of zeros.
func work(zeros int64) int64 { return txGas + floorGasPerToken*zeros }

// TestI1IdleNeverDisplaces: a transaction that cannot run displaces none that
// can, and such transactions have separate caps.
func TestI1IdleNeverDisplaces(t *testing.T) {
	w := newWorld(t, tiny(4, 2))
	for i := range 4 {
		w.add(tx(i, 0, 2))
	}
	w.add(tx(5, 1, 100), tx(4, 1, 100))
	w.refuse(tx(4, 2, 1000), ErrPoolFull, "txpool is full: 2 transactions of", "are behind nonce gaps, 1 of them from address")
	w.refuse(tx(6, 1, 1000), ErrPoolFull) // it would displace others for nothing
	w.stands(5, "-q")
	w.stands(4, "-q")
	require.Equal(t, 4, w.Stats().Pending)
	// Filling the gap makes two run: they take places as any other would.
	w.add(tx(4, 0, 100))
	w.stands(4, "pp")
	require.Equal(t, 4, w.Stats().Pending)
	require.Equal(t, 1, w.Stats().Queued)
}

// TestI3OnlyTailsAreEvicted: the transaction whose chain has the lowest tip is
// evicted, from the end, and only for one that is strictly better (I4).
func TestI3OnlyTailsAreEvicted(t *testing.T) {
	w := newWorld(t, tiny(4, 4))
	w.add(tx(0, 0, 2), tx(0, 1, 50), tx(0, 2, 60), tx(1, 0, 5), tx(2, 0, 10))
	w.stands(0, "pp-")
	w.add(tx(3, 0, 10))
	w.stands(0, "p--")
	w.add(tx(4, 0, 10))
	w.stands(0, "---")
	w.refuse(tx(5, 0, 5), ErrPoolFull, "transaction underpriced: tip 5000000000 wei, want ≥ 5000000001")
	require.ErrorIs(t, w.Add(tx(5, 0, 5)), ErrUnderpriced)
	w.add(tx(5, 0, 6))
	require.Equal(t, 4, w.Size())
}

func TestI4RankOfTheNewcomer(t *testing.T) {
	w := newWorld(t, tiny(4, 4))
	w.add(tx(0, 0, 3), tx(1, 0, 4), tx(2, 0, 5), tx(3, 0, 6))
	w.refuse(tx(0, 1, 100), ErrPoolFull) // its own parent pays 3, and no other pays less
	w.add(tx(1, 1, 100))
	w.stands(1, "pp")
	w.stands(0, "-") // the poorest, of another sender, went
}

// TestI4Parked: under a base fee that shuts all out, those stay that it shuts out last.
func TestI4Parked(t *testing.T) {
	w := newWorld(t, tiny(8, 8))
	w.baseFee(3)
	for i := range 8 {
		w.add(tx(20+i, 0, 1)) // no builder will ever take it
	}
	w.add(tx(40, 0, 2))
	w.refuse(tx(41, 0, 1), ErrPoolFull, "maxFeePerGas 1000000000 wei, want > 1000000000 (base fee 3000000000)")
	for i := range 8 {
		w.add(tx(i, 0, 5+int64(i%3)))
	}
	w.baseFee(8)
	w.baseFee(3)
	for i := range 8 {
		w.stands(i, "p")
	}
}

// TestI5OwnAncestorsStay: a newcomer never displaces what it needs.
func TestI5OwnAncestorsStay(t *testing.T) {
	w := newWorld(t, tiny(2, 2))
	w.add(tx(0, 0, 3), tx(0, 1, 3))
	w.refuse(tx(0, 2, 100), ErrPoolFull)
	w.stands(0, "pp-")
}

// TestI13AgeDoesNotProtect: however old, and whatever the order of draining, the poorer goes.
func TestI13AgeDoesNotProtect(t *testing.T) {
	w := newWorld(t, tiny(2, 2), by(func(Candidate) int64 { return 0 }))
	w.add(tx(0, 0, 1))
	w.advance(59 * time.Minute)
	w.add(tx(1, 0, 700))
	w.offers(tx(0, 0, 1), tx(1, 0, 700)) // the earlier arrival goes first
	w.add(tx(2, 0, 2))
	w.stands(0, "-")
}

// TestT2Bounded: bytes are bounded like counts, and a big newcomer pays for all that it displaces.
func TestT2Bounded(t *testing.T) {
	w := newWorld(t, tiny(100, 100), narrow(6000, 9000))
	for i := range 8 {
		w.add(tx(i, 0, int64(10+i)))
	}
	require.LessOrEqual(t, 8*memoryOf(tx(0, 0, 2)), uint64(9000))
	big := func(tip int64) *types.Transaction { return priced(20, tip*gwei, 4000) }
	w.refuse(big(13), ErrPoolFull, "tip 13000000000 wei, want ≥")
	w.refuse(big(15), ErrPoolFull, "adds at least 915000000000000 wei, want > 1260000000000000 to displace 5 transactions")
	w.add(big(21))
	require.LessOrEqual(t, w.Stats().PendingBytes, uint64(9000))
	w.stands(0, "-")
	w.stands(7, "p")
}

// The watermark is the price that a newcomer must pay.
func TestWatermark(t *testing.T) {
	w := newWorld(t, tiny(3, 2))
	require.EqualValues(t, gwei, w.Stats().Watermark)
	w.add(tx(0, 0, 5), tx(1, 0, 6), tx(2, 0, 7))
	require.Equal(t, uint64(5*gwei+1), w.Stats().Watermark)
	w.refuse(tx(3, 0, 5), ErrUnderpriced)
	w.add(priced(3, 5*gwei+1, 0))
	require.Equal(t, uint64(5*gwei+2), w.Stats().Watermark)
}

// A newcomer that takes the place of two transactions must be worth more than
// both together.
func TestNewcomerIsWorthMoreThanBoth(t *testing.T) {
	const small, large = 10, 1000
	price := 65_000 * work(large) // about 2 gwei
	first, second := priced(0, price, small), priced(1, price, small)
	w := newWorld(t, narrow(1200, weigh(first, second)))
	w.add(first, second)
	same := 2 * price * work(small) / work(large)
	require.Equal(t, 2*price*work(small), same*work(large))
	w.refuse(priced(2, same, large), ErrPoolFull, "to displace 2 transactions")
	w.add(priced(2, same+1, large))
	require.Equal(t, 1, w.Size())
}

// A newcomer displaces none if it, or one before it, cannot pay the next base
// fee.
func TestNextBaseFee(t *testing.T) {
	w := newWorld(t, tiny(2, 5))
	w.baseFee(16)
	w.add(capped(0, 0, 0, 30), capped(1, 0, 1, 17))
	w.refuse(capped(2, 0, 1, 17), ErrPoolFull, "cannot pay the next base fee")
	w.refuse(capped(1, 1, 5, 40), ErrPoolFull, "cannot pay the next base fee")
	w.add(capped(2, 0, 1, 19))
}

// The caps of bytes may be filled to the last byte. A replacement of the same
// size fits then, and one byte more does not.
func TestBytesToTheLast(t *testing.T) {
	first, second := padded(0, 0, 2, 10), padded(1, 0, 2, 10)
	w := newWorld(t, narrow(150, weigh(first, second)))
	w.add(first, second)
	w.refuse(tx(2, 0, 1), ErrPoolFull)
	w.add(padded(0, 0, 3, 10))
	w.firsts("pp")
}

// Parked ones have their own cap. Those that a base fee has parked keep their room;
// of those that never paid it, the worst leave first.
func TestParkedCap(t *testing.T) {
	w := newWorld(t, tiny(10, 2), func(c *Config) { c.FloorWindow = 1 })
	for i := range 4 {
		w.add(priced(i, gwei+int64(i), 0))
	}
	w.tell(paying(50))
	require.Equal(t, 4, w.Stats().Parked)

	w = newWorld(t, tiny(10, 2))
	w.baseFee(8)
	w.add(capped(0, 0, 2, 3), capped(1, 0, 3, 3), capped(2, 0, 3, 4))
	w.firsts("k-k")
	w.refuse(capped(3, 0, 1, 7), ErrPoolFull) // it pays others' base fee, and the builder less
}

// If a base fee parks more than may be parked, none goes: they could run before.
func TestParkedAboveTheCap(t *testing.T) {
	w := newWorld(t, tiny(4, 1))
	w.returned(tx(0, 0, 2))
	w.add(tx(1, 0, 3), tx(2, 0, 4))
	w.baseFee(8)
	w.firsts("kkk")
}

// A parked newcomer does not displace a transaction whose successors have a higher tip (I3).
func TestParkedParentKeepsItsPlace(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MinGasPrice, c.MaxParked = 1, 16 })
	w.baseFee(10)
	w.add(capped(0, 0, 1, 5))
	for n := range uint64(15) {
		w.add(capped(0, n+1, 50, 100))
	}
	require.Equal(t, 16, w.Stats().Parked)
	w.refuse(capped(1, 0, 2, 6), ErrPoolFull)
	w.add(capped(1, 0, 6, 6)) // more than the chain can ever pay
	w.has(StatusUnknown, capped(0, 15, 50, 100))
	w.has(StatusParked, capped(0, 14, 50, 100))
}

// Transactions that kept their room make way in a full pool for newcomers that
// run.
func TestIdleMakeWayForThoseThatRun(t *testing.T) {
	w := newWorld(t, tiny(6, 2))
	for i := range 10 { // more than all caps together
		w.add(tx(i, 0, 5), tx(i, 1, 5))
		s := w.build(Budget{})
		w.takes(s, tx(i, 0, 5))
		s.Fail(errTest)
		s.Cancel()
	}
	require.Equal(t, 9, w.Stats().Queued, "one had to make way already")
	for i := range 6 {
		w.add(tx(20+i, 0, 2))
	}
	require.Equal(t, 6, w.Stats().Pending)
	require.Equal(t, 4, w.Stats().Queued)
	w.check()
}

// Transactions behind a new gap keep their room. Newcomers have theirs.
func TestDemotionOverflows(t *testing.T) {
	w := newWorld(t, tiny(10, 2))
	w.add(chain(0, 0, 5, 2)...)
	w.remove(tx(0, 0, 2))
	w.stands(0, "-qqqq")
	w.add(tx(1, 1, 2), tx(2, 1, 2))
	w.refuse(tx(3, 1, 100), ErrPoolFull)
	w.add(tx(0, 0, 2))
	w.stands(0, "ppppp")
}

// While a block takes everything that is pending, newcomers find room.
func TestRoomWhenAllLocked(t *testing.T) {
	w := newWorld(t, tiny(4, 4))
	for i := range 4 {
		w.add(tx(i, 0, 5))
	}
	s := w.drain(Budget{})
	require.Len(t, s.Transactions(), 4)
	require.EqualValues(t, gwei, w.Stats().Watermark)
	for i := range 4 {
		w.add(tx(4+i, 0, 2))
	}
	s.Cancel()
	require.Equal(t, 8, w.Stats().Pending, "none is dropped by count")
}

// An eviction does not move locked transactions.
func TestEvictedBeforeALocked(t *testing.T) {
	w := newWorld(t, tiny(2, 2))
	w.add(tx(0, 0, 1), tx(0, 1, 2))
	s := w.drain(Budget{})
	require.NoError(t, w.Reject(tx(0, 0, 1).Hash(), errTest))
	w.add(tx(0, 0, 2))
	w.add(tx(1, 0, 9), tx(2, 0, 9))
	w.stands(0, "-l")
	w.firsts("-pp")
	require.Len(t, s.Transactions(), 1)
}

// A newcomer finds room in a full pool behind a bounded number of transactions that
// cannot be displaced (I9).
func TestSearchForRoomIsBounded(t *testing.T) {
	for n, admitted := range map[int]bool{maxPassed - 1: true, maxPassed: false} {
		w := newWorld(t, unsigned, tiny(n-1, 1))
		w.baseFee(3)
		w.add(plain(0, 0, txGas, 2)) // better than the same ones that come later
		var back []*types.Transaction
		for i := range n {
			back = append(back, plain(1+i, 0, txGas, 2))
		}
		require.Empty(t, w.fails(back...))
		if err := w.Add(plain(n+1, 0, txGas, 50)); admitted {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrPoolFull)
		}
	}
}
