package txpool_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// session builds a block by a session, commits it and calls Reset. A transaction
// fails if it does not run, or if fails reports so. after is called after each
// failure. session returns the block and the number of transactions that Next
// returned.
func (s *siege) session(budget txpool.Budget, fails func(*types.Transaction) bool, after func()) (block []*types.Transaction, offered int) {
	b := s.pool.Build(context.Background(), budget)
	gasUsed := uint64(0)
	for tx := b.Next(); tx != nil; tx = b.Next() {
		offered++
		if fails != nil && fails(tx) || s.run(tx) != nil {
			b.Fail(errors.New("it failed"))
			if after != nil {
				after()
			}
			continue
		}
		b.Used(used(tx), tx.Size())
		gasUsed += used(tx)
		block = append(block, tx)
	}
	_, err := b.Seal()
	require.NoError(s.t, err)
	require.NoError(s.t, b.Commit())
	s.headOf(txpool.Block{Transactions: block, GasUsed: gasUsed, GasLimit: budget.Gas})
	return block, offered
}

// headOf makes a block the new head.
func (s *siege) headOf(block txpool.Block) {
	s.now = s.now.Add(6 * time.Second)
	block.BaseFee = big.NewInt(s.baseFee * gwei)
	s.pool.Reset(txpool.Head{Included: []txpool.Block{block}, BaseFee: block.BaseFee})
}

// roomy removes the limits that a test is not about.
func roomy(c *txpool.Config) {
	c.SurgeSlope = 0
	c.MaxBytes = 1 << 30
}

// One transaction per block that requests all of the block's gas and uses 21,000
// must not keep others out, whatever it pays.
func TestSiegeSessionHog(t *testing.T) {
	const transfers, blocks = 50, 10
	const block = transfers * gas
	waiting := func(s *siege) {
		for i := range transfers * blocks {
			s.honour(transfer(i, 0, int64(5+i%3), 0))
		}
	}
	included := func(hogs func(*siege)) (honest int, paid float64) {
		s := newSiege(t, 2*transfers*blocks, func(c *txpool.Config) { roomy(c); c.BlockGasLimit = block })
		waiting(s)
		hogs(s)
		for range blocks {
			s.session(txpool.Budget{Gas: block}, nil, nil)
		}
		return transfers*blocks - len(s.honest), s.paid
	}
	alone, _ := included(func(*siege) {})
	require.Equal(t, transfers*blocks, alone)
	for _, price := range []int64{4, 6, 100} { // below, among and above the others
		t.Run(fmt.Sprint(price), func(t *testing.T) {
			honest, paid := included(func(s *siege) {
				for i := range blocks {
					require.NoError(t, s.pool.Add(hungry(s.rogue(i, rich), 0, price, block)))
				}
			})
			require.GreaterOrEqual(t, 100*honest, 95*alone, "in %d blocks %d of %d honest transactions; the attacker pays %.0f gwei", blocks, honest, alone, paid)
		})
	}
}

// Transactions that request much gas fill the pool and evict honest ones. Within
// as many blocks as there are of them, they pay at least the displaced fees, and
// honest newcomers are in the next block.
func TestSiegeSessionHogs(t *testing.T) {
	const slots, block = 50, 30_000_000
	for _, c := range []struct {
		limit     uint64
		newcomers bool
	}{
		{block, false},
		{block/2 + 1, true},
		{1 << 24, true}, // EIP-7825
		{block / 10, true},
	} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			s := besieged(t, slots, func(cfg *txpool.Config) { roomy(cfg); cfg.BlockGasLimit, cfg.MaxTxGas = block, block })
			for i := range slots {
				addAll(s, hungry(s.rogue(i, rich), 0, 8, c.limit))
			}
			lost := 0.0
			for hash, tx := range s.honest {
				if s.pool.Get(hash) == nil {
					lost += fee(tx, 0)
				}
			}
			require.Positive(t, lost, "the attack does nothing")
			for n := range slots {
				newcomer := transfer(500+n, 0, 10, 0)
				if c.newcomers {
					s.honour(newcomer)
				}
				s.session(txpool.Budget{Gas: block}, nil, nil)
				require.NotContains(t, s.honest, newcomer.Hash(), "an honest newcomer is not in block %d", n)
			}
			require.GreaterOrEqual(t, s.paid, lambda*lost, "in %d blocks the attacker pays %.0f gwei; it displaced %.0f", slots, s.paid, lost)
		})
	}
}

// A host that does not report the gas that its blocks used must not let a few
// transactions with a high gas limit raise the floor.
func TestSiegeSessionFloor(t *testing.T) {
	const block = 30_000_000
	for _, hogs := range []int{1, 5} {
		t.Run(fmt.Sprint(hogs), func(t *testing.T) {
			s := newSiege(t, 400, func(c *txpool.Config) { c.FloorWindow = 20; c.MaxTxGas = block })
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
				addAll(s, txs...)
				lease := s.pool.Drain(txpool.Budget{})
				require.Len(t, lease.Transactions(), hogs)
				for _, tx := range lease.Transactions() {
					require.NoError(t, s.run(tx))
				}
				require.NoError(t, lease.Commit())
				s.headOf(txpool.Block{Transactions: txs})
			}
			refused := 0
			for i := range 100 {
				if s.pool.Add(transfer(i, 0, int64(5+i%3), 0)) != nil {
					refused++
				}
			}
			require.Zero(t, refused, "an empty pool refuses %d of 100 at 5 to 7 gwei: floor %d wei; the attacker pays %.0f gwei a block", refused, s.pool.Stats().Floor, s.paid/40)
			require.EqualValues(t, gwei, s.pool.Stats().Floor)
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
				addAll(s, chain(s.rogue(i, rich), 0, 2, int64(5+i%3), 0)...)
			}
			for block := range 3 {
				b := s.pool.Build(context.Background(), txpool.Budget{})
				offered := make(map[common.Hash]int)
				for tx := b.Next(); tx != nil; tx = b.Next() {
					offered[tx.Hash()]++
					require.Equal(t, 1, offered[tx.Hash()], "offered again")
					require.Zero(t, tx.Nonce(), "a successor of a postponed transaction is offered")
					b.Later()
				}
				require.Len(t, offered, slots/2)
				require.Zero(t, s.pool.Stats().Exempt)
				if block == 2 && when == "before the end" {
					s.displaceAll(slots)
				}
				lease, err := b.Seal()
				require.NoError(t, err)
				require.Empty(t, lease.Transactions())
				require.NoError(t, lease.Commit())
				s.headOf(txpool.Block{})
			}
			if when == "after the end" {
				s.displaceAll(slots)
			}
		})
	}
}

// displaceAll checks that better newcomers take all places of a full pool.
func (s *siege) displaceAll(slots int) {
	require.Equal(s.t, slots, s.pool.Stats().Pending)
	for i := range slots {
		s.honour(transfer(i, 0, 100, 0))
	}
	require.Equal(s.t, slots, s.pool.Stats().Pending)
	for _, tx := range s.pool.Candidates() {
		require.Contains(s.t, s.honest, tx.Hash(), "a postponed transaction of %d gwei stays", tx.GasPrice().Int64()/gwei)
	}
}

// counted returns a siege whose pool counts the reads of State.
func counted(t require.TestingT, slots int, change func(*txpool.Config)) (s *siege, reads *int) {
	var cfg txpool.Config
	s = newSiege(t, slots, func(c *txpool.Config) {
		roomy(c)
		if change != nil {
			change(c)
		}
		cfg = *c
	})
	reads = new(int)
	pool, err := txpool.New(cfg, txpool.StateFunc(func(who common.Address) (txpool.Account, error) {
		*reads++
		return s.chain.get(who), nil
	}))
	require.NoError(t, err)
	s.pool = pool
	return s, reads
}

// A transaction that fails costs a block one offer, and not one for each of its
// successors, nor for those that its sender adds meanwhile. The work of a block
// grows with the offered transactions, and not with those behind failures.
func TestSiegeSessionFailures(t *testing.T) {
	const attackers, blocks, each = 10, 5, 20
	s, reads := counted(t, 1000, nil)
	for i := range attackers {
		addAll(s, chain(s.rogue(i, rich), 0, 16, 100, 0)...)
	}
	price := int64(100)
	for block := range blocks {
		for i := range each {
			s.honour(transfer(i, uint64(block), 5, 0))
		}
		*reads = 0
		failed := 0
		theirs := func(tx *types.Transaction) bool {
			from, err := types.Sender(signer, tx)
			require.NoError(t, err)
			if s.mine[from] {
				failed++
				require.LessOrEqual(t, failed, attackers, "failures of %d attackers, who pay %.0f gwei", attackers, s.paid)
			}
			return s.mine[from]
		}
		included, offered := s.session(txpool.Budget{Gas: 30_000_000}, theirs, func() {
			price++
			for i := range attackers { // another first one, if it is missing
				_ = s.pool.Add(transfer(attacker+i, 0, price, 0))
			}
		})
		require.Len(t, included, each, "honest transactions in block %d", block)
		require.Equal(t, attackers, failed, "the attack does nothing")
		require.Equal(t, len(included)+failed, offered)
		require.LessOrEqual(t, *reads, 3*(offered+attackers), "reads of State for %d offers", offered)
	}
	require.Zero(t, s.paid)
}

// flooded is a pool whose bytes are nearly used up by well-paid transactions,
// while a high base fee keeps the given ones waiting. It returns the base fee
// at which those can run, in gwei.
func flooded(s *siege, waiting ...*types.Transaction) (low int64) {
	s.setBaseFee(50)
	before := s.pool.Stats().Parked
	for i := range floodedBig {
		s.honour(padded(300+i, 0, 1000, 14_000))
	}
	for _, tx := range waiting {
		require.NoError(s.t, s.pool.Add(tx))
	}
	require.Equal(s.t, before+len(waiting), s.pool.Stats().Parked)
	return 1
}

// floodedRoom is the room of floodedPool. The transactions of flooded leave room
// for eleven transfers, and not for another large one.
const (
	floodedBig  = 230
	floodedRoom = floodedBig*14_980 + 13*1024
)

func floodedPool(c *txpool.Config) {
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
			s, reads := counted(t, 1000, func(c *txpool.Config) {
				floodedPool(c)
				c.Observe = func(txpool.Event) { events++ }
			})
			var waiting []*types.Transaction
			for i := range large {
				waiting = append(waiting, padded(s.rogue(i, rich), 0, 9, 13_000))
			}
			for i := range small {
				tx := transfer(i, 0, 5, 0)
				s.honest[tx.Hash()] = tx
				waiting = append(waiting, tx)
			}
			s.setBaseFee(flooded(s, waiting...))
			pending := 0
			for i := range small {
				txs, _ := s.pool.ContentFrom(address(i))
				pending += len(txs)
			}
			require.Equal(t, small, pending, "of %d small transactions that there is room for, %d can run while %d large ones wait, for free", small, pending, large)
			require.LessOrEqual(t, s.pool.Stats().PendingBytes, uint64(floodedRoom))
			*reads, events = 0, 0
			for i := range 5 {
				require.NoError(t, s.pool.Add(transfer(100+i, 0, 5, 0)))
			}
			work[large] = *reads + events
			require.Equal(t, work[1], work[large], "reads of State and events of five Adds while %d wait", large)
		})
	}
}

// One sender's waiting transaction with many successors hides no other.
func TestSiegeSessionWaitingChain(t *testing.T) {
	s, _ := counted(t, 1000, floodedPool)
	who := s.rogue(0, rich)
	waiting := []*types.Transaction{padded(who, 0, 9, 13_000)}
	for nonce := uint64(1); nonce < 16; nonce++ {
		waiting = append(waiting, transfer(who, nonce, 9, 0))
	}
	for i := range 6 {
		waiting = append(waiting, transfer(i, 0, 5, 0))
	}
	s.setBaseFee(flooded(s, waiting...))
	for i := range 6 {
		txs, _ := s.pool.ContentFrom(address(i))
		require.Len(t, txs, 1, "sender %d waits behind the chain of another one, who pays %.0f gwei", i, s.paid)
	}
}

// A large transaction comes back, or another one takes its place, while its
// successor is still leased. It then waits in a pool whose bytes are used up.
// The small one behind both must not come in before it. Reset once tried that
// without end.
func TestSiegeSessionReturned(t *testing.T) {
	for _, how := range []string{"Return", "Reject"} {
		t.Run(how, func(t *testing.T) {
			s, _ := counted(t, 1000, floodedPool)
			who := s.rogue(0, rich)
			large, middle, small := padded(who, 0, 40, 13_000), transfer(who, 1, 40, 0), transfer(who, 2, 40, 0)
			addAll(s, large, middle)
			lease := s.pool.Drain(txpool.Budget{})
			require.Len(t, lease.Transactions(), 2)
			if how == "Return" {
				require.NoError(t, lease.Return(large.Hash()))
			} else {
				require.NoError(t, lease.Reject(large.Hash(), errors.New("it failed")))
				large = padded(who, 0, 45, 13_000)
				require.NoError(t, s.pool.Add(large))
			}
			require.NoError(t, s.pool.Add(small))
			b := s.pool.Build(context.Background(), txpool.Budget{})
			require.Nil(t, b.Next(), "its block would come after that of the next nonce")
			s.setBaseFee(flooded(s))
			require.Equal(t, txpool.StatusLeased, s.pool.Status(middle.Hash()))
			require.NotEqual(t, txpool.StatusPending, s.pool.Status(large.Hash()), "there is no room for it")
			require.NotEqual(t, txpool.StatusPending, s.pool.Status(small.Hash()), "it cannot run before the large one")
			require.NoError(t, s.pool.Check())
			require.NoError(t, b.Cancel())
			require.NoError(t, lease.Release())
			s.setBaseFee(1)
			require.NoError(t, s.pool.Check())
		})
	}
}

// A running session takes newcomers that are better than the rest. It takes
// worse ones later, in their order.
func TestSiegeSessionNewcomers(t *testing.T) {
	s := newSiege(t, 100, roomy)
	for i := range 5 {
		s.honour(transfer(i, 0, int64(10-i), 0)) // 10 to 6 gwei
	}
	b := s.pool.Build(context.Background(), txpool.Budget{Gas: 30_000_000})
	var prices []int64
	next := func() {
		tx := b.Next()
		require.NotNil(t, tx)
		prices = append(prices, tx.GasPrice().Int64()/gwei)
		b.Used(gas, tx.Size())
	}
	next()
	next()
	s.honour(transfer(5, 0, 50, 0))
	s.honour(transfer(6, 0, 3, 0))
	s.honour(transfer(0, 1, 20, 0)) // of a sender that the session has taken from
	s.honour(transfer(4, 1, 60, 0)) // behind the sender's transaction of 6 gwei
	for range 7 {
		next()
	}
	require.Nil(t, b.Next())
	s.honour(transfer(7, 0, 2, 0)) // after the end of the line
	next()
	require.Nil(t, b.Next())
	require.Equal(t, []int64{10, 9, 50, 20, 8, 7, 6, 60, 3, 2}, prices)
	require.NoError(t, b.Commit())
}
