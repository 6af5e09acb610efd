package txpool

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// One transaction per block that requests all of the block's gas and uses 21,000
// must not keep others out, whatever it pays.
func TestSiegeSessionHog(t *testing.T) {
	const transfers, blocks = 50, 10
	const block = transfers * txGas
	included := func(hogs func(*siege)) (honest int, paid float64) {
		s := newSiege(t, 2*transfers*blocks, func(c *Config) { roomy(c); c.BlockGasLimit = block })
		s.honour(fair(transfers * blocks)...)
		hogs(s)
		for range blocks {
			s.session(Budget{Gas: block}, nil, nil)
		}
		return transfers*blocks - len(s.honest), s.paid
	}
	alone, _ := included(func(*siege) {})
	require.Equal(t, transfers*blocks, alone)
	for _, price := range []int64{4, 6, 100} { // below, among and above the others
		t.Run(fmt.Sprint(price), func(t *testing.T) {
			honest, paid := included(func(s *siege) {
				for i := range blocks {
					s.add(hungry(s.rogue(i, rich), 0, price, block))
				}
			})
			require.GreaterOrEqual(t, 100*honest, 95*alone, "in %d blocks %d of %d honest transactions; the attacker pays %.0f gwei", blocks, honest, alone, paid)
		})
	}
}

// Transactions that request much gas fill the pool and evict honest ones. In each
// block, one newcomer that pays more goes first. Within as many blocks as there
// are of them, they pay at least the displaced fees, and honest newcomers are in
// the next block. If MaxTxGas is below the block's limit, they start behind the
// newcomers, and pay.
func TestSiegeSessionHogs(t *testing.T) {
	const slots = 50
	for _, c := range []struct {
		block, most, limit uint64
		newcomers          bool
	}{
		{30_000_000, 30_000_000, 30_000_000, false},
		{30_000_000, 30_000_000, 15_000_001, true},
		{30_000_000, 30_000_000, 1 << 24, true}, // EIP-7825
		{30_000_000, 30_000_000, 3_000_000, true},
		{16_000_000, 8_000_000, 8_000_000, true},
	} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			s := besieged(t, slots, roomy, func(cfg *Config) { cfg.BlockGasLimit, cfg.MaxTxGas = c.block, c.most })
			for i := range slots {
				s.offer(hungry(s.rogue(i, rich), 0, 8, c.limit))
			}
			lost, _ := s.lost()
			require.Positive(t, lost, "the attack does nothing")
			for n := range slots {
				newcomer := tx(500+n, 0, 10)
				if c.newcomers {
					s.honour(newcomer)
				}
				s.session(Budget{Gas: c.block}, nil, nil)
				require.NotContains(t, s.honest, newcomer.Hash(), "an honest newcomer is not in block %d", n)
			}
			require.GreaterOrEqual(t, s.paid, lost, "in %d blocks the attacker pays %.0f gwei; it displaced %.0f", slots, s.paid, lost)
		})
	}
}

// A host that does not report the gas that its blocks used must not let a few
// transactions with a high gas limit raise the floor.
func TestSiegeSessionFloor(t *testing.T) {
	const block = 30_000_000
	for _, hogs := range []int{1, 5} {
		t.Run(fmt.Sprint(hogs), func(t *testing.T) {
			s := newSiege(t, 400, func(c *Config) { c.FloorWindow = 20; c.MaxTxGas = block })
			nonce := uint64(0)
			for i := range hogs {
				s.rogue(i, 100*rich)
			}
			for range 40 {
				var txs []*types.Transaction
				for i := range hogs {
					txs = append(txs, hungry(attacker+i, nonce, 200, block))
				}
				nonce++
				s.offer(txs...)
				b := s.drain(Budget{})
				require.Len(t, b.Transactions(), hogs)
				for _, tx := range b.Transactions() {
					require.NoError(t, s.run(tx))
				}
				s.head(Block{Transactions: txs})
			}
			refused := 100 - s.offer(fair(100)...)
			require.Zero(t, refused, "an empty pool refuses %d of 100 at 5 to 7 gwei: floor %d wei; the attacker pays %.0f gwei a block", refused, s.Stats().Floor, s.paid/40)
			require.EqualValues(t, gwei, s.Stats().Floor)
		})
	}
}

// Postponed transactions give way to better ones like all others, and are
// offered once in a session.
func TestSiegeSessionPostponed(t *testing.T) {
	const slots = 8
	for _, when := range []string{"before the end", "after the end"} {
		t.Run(when, func(t *testing.T) {
			s := newSiege(t, slots, roomy)
			for i := range slots / 2 {
				s.offer(chain(s.rogue(i, rich), 0, 2, int64(5+i%3))...)
			}
			for block := range 3 {
				b := s.build(Budget{})
				offered := make(map[common.Hash]int)
				for tx := b.Next(); tx != nil; tx = b.Next() {
					offered[tx.Hash()]++
					require.Equal(t, 1, offered[tx.Hash()], "offered again")
					require.Zero(t, tx.Nonce(), "a successor of a postponed transaction is offered")
					b.Later()
				}
				require.Len(t, offered, slots/2)
				require.Zero(t, s.Stats().Exempt)
				if block == 2 && when == "before the end" {
					s.displaceAll(slots)
				}
				require.Empty(t, b.Transactions())
				s.head(Block{})
			}
			if when == "after the end" {
				s.displaceAll(slots)
			}
		})
	}
}

// displaceAll checks that better newcomers take all places of a full pool.
func (s *siege) displaceAll(slots int) {
	require.Equal(s.t, slots, s.Stats().Pending)
	for i := range slots {
		s.honour(tx(i, 0, 100))
	}
	require.Equal(s.t, slots, s.Stats().Pending)
	for _, tx := range offered(s) {
		require.Contains(s.t, s.honest, tx.Hash(), "a postponed transaction of %d gwei stays", tx.GasPrice().Int64()/gwei)
	}
}

// A transaction that fails costs a block one offer, and not one for each of its
// successors, nor for those that its sender adds meanwhile. The work of a block
// grows with the offered transactions, and not with those behind failures.
func TestSiegeSessionFailures(t *testing.T) {
	const attackers, blocks, each = 10, 5, 20
	s := newSiege(t, 1000, roomy)
	for i := range attackers {
		s.offer(chain(s.rogue(i, rich), 0, 16, 100)...)
	}
	price := int64(100)
	for block := range blocks {
		for i := range each {
			s.honour(tx(i, uint64(block), 5))
		}
		s.reads = 0
		failed := 0
		theirs := func(tx *types.Transaction) bool {
			if s.mine[senderOf(tx)] {
				failed++
				require.LessOrEqual(t, failed, attackers, "failures of %d attackers, who pay %.0f gwei", attackers, s.paid)
			}
			return s.mine[senderOf(tx)]
		}
		included, offered := s.session(Budget{Gas: 30_000_000}, theirs, func() {
			price++
			for i := range attackers { // another first one, if it is missing
				_ = s.Add(tx(attacker+i, 0, price))
			}
		})
		require.Len(t, included, each, "honest transactions in block %d", block)
		require.Equal(t, attackers, failed, "the attack does nothing")
		require.Equal(t, len(included)+failed, offered)
		require.LessOrEqual(t, s.reads, 3*(offered+attackers), "reads of State for %d offers", offered)
	}
	require.Zero(t, s.paid)
}

// flooded is a pool whose bytes are nearly used up by well-paid transactions,
// while a high base fee keeps the given ones waiting. It returns the base fee
// at which those can run, in gwei.
func flooded(s *siege, waiting ...*types.Transaction) (low int64) {
	s.setBaseFee(50)
	before := s.Stats().Parked
	for i := range floodedBig {
		s.honour(padded(300+i, 0, 1000, 14_000))
	}
	s.add(waiting...)
	require.Equal(s.t, before+len(waiting), s.Stats().Parked)
	return 1
}

// floodedRoom is the room of floodedPool. The transactions of flooded leave room
// for eleven transfers, and not for another large one.
const (
	floodedBig  = 230
	floodedRoom = floodedBig*14_980 + 13*1024
)

func floodedPool(c *Config) {
	c.SurgeSlope = 0
	c.MaxTxSize, c.MaxBytes = 15_000, floodedRoom
}

// Large transactions that wait for room, however many, do not hide smaller ones
// for which there is room. The work of an Add does not grow with them.
func TestSiegeSessionWaiting(t *testing.T) {
	const small = 6
	work := make(map[int]int)
	for _, large := range []int{1, 16, 17, 200} {
		t.Run(fmt.Sprint(large), func(t *testing.T) {
			events := 0
			s := newSiege(t, 1000, floodedPool, observed(func(Event) { events++ }))
			var waiting []*types.Transaction
			for i := range large {
				waiting = append(waiting, padded(s.rogue(i, rich), 0, 9, 13_000))
			}
			for i := range small {
				tx := tx(i, 0, 5)
				s.honest[tx.Hash()] = tx
				waiting = append(waiting, tx)
			}
			s.setBaseFee(flooded(s, waiting...))
			pending := 0
			for i := range small {
				pending += s.inLine(i)
			}
			require.Equal(t, small, pending, "of %d small transactions that there is room for, %d can run while %d large ones wait, for free", small, pending, large)
			require.LessOrEqual(t, s.Stats().PendingBytes, uint64(floodedRoom))
			s.reads, events = 0, 0
			for i := range 5 {
				s.add(tx(100+i, 0, 5))
			}
			work[large] = s.reads + events
			require.Equal(t, work[1], work[large], "reads of State and events of five Adds while %d wait", large)
		})
	}
}

// One sender's waiting transaction with many successors hides no other.
func TestSiegeSessionWaitingChain(t *testing.T) {
	s := newSiege(t, 1000, floodedPool)
	who := s.rogue(0, rich)
	waiting := append([]*types.Transaction{padded(who, 0, 9, 13_000)}, chain(who, 1, 15, 9)...)
	for i := range 6 {
		waiting = append(waiting, tx(i, 0, 5))
	}
	s.setBaseFee(flooded(s, waiting...))
	for i := range 6 {
		require.Equal(t, 1, s.inLine(i), "sender %d waits behind the chain of another one, who pays %.0f gwei", i, s.paid)
	}
}
