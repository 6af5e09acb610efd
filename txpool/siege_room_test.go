package txpool_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// Dear children on a parent that the attacker takes away again.
func TestSiegeTurningParents(t *testing.T) {
	t.Run("the parent is evicted", func(t *testing.T) {
		s := besieged(t, 8, nil)
		addAll(s, transfer(s.rogue(0, rich), 0, 6, 0))
		addAll(s, chain(attacker, 1, 7, 1000, 0)...)
		for i := range 8 {
			addAll(s, transfer(s.rogue(1+i, rich), 0, 7, 0))
		}
		s.judge(1)
		s.admits(500, 9)
	})
	t.Run("the parent fails in building", func(t *testing.T) {
		s := besieged(t, 8, nil)
		addAll(s, chain(s.rogue(0, rich), 0, 8, 8, 0)...)
		pending, _ := s.pool.ContentFrom(address(attacker))
		require.NotEmpty(t, pending)
		require.NoError(t, s.pool.Reject(pending[0].Hash(), errors.New("failed")))
		s.admits(500, 9)
		require.Zero(t, s.pool.Stats().Pending-8+len(pending)-1, "its children cannot run")
	})
	t.Run("the parent expires", func(t *testing.T) {
		s := newSiege(t, 8, nil)
		addAll(s, transfer(s.rogue(0, rich), 0, 8, 0))
		s.now = s.now.Add(59 * time.Minute)
		addAll(s, chain(attacker, 1, 7, 8, 0)...)
		s.now = s.now.Add(2 * time.Minute)
		require.Zero(t, s.pool.CleanupExpired(), "its children are young, and pay")
		for i := range 8 {
			s.admits(i, 9)
		}
		s.judge(1)
		s.now = s.now.Add(time.Hour)
		s.pool.CleanupExpired()
		require.Zero(t, s.pool.Size())
	})
	t.Run("the parent was included elsewhere and reverted", func(t *testing.T) {
		s := besieged(t, 8, nil)
		parent := transfer(s.rogue(0, rich), 0, 1, 0)
		before := s.chain.copy()
		s.force(parent)
		addAll(s, chain(attacker, 1, 8, 8, 0)...)
		s.chain, s.paid = before, 0
		s.pool.Reset(txpool.Head{Reverted: []txpool.Block{{Transactions: []*types.Transaction{parent}}}})
		s.admits(500, 9)
		s.judge(1)
	})
}

// The rooms of transactions that cannot run cost nothing to fill. A transaction
// that enters them for a moment must come back.
func TestSiegeHeldRooms(t *testing.T) {
	t.Run("parked by a base fee that rises for a block", func(t *testing.T) {
		s := besieged(t, 8, nil)
		s.setBaseFee(2) // all victims still pay it
		for i := range 40 {
			addAll(s, dynamic(s.rogue(i, rich), 0, 1, 1)) // never pays it
			addAll(s, dynamic(attacker+i, 1, 1000, 1000)) // and a dear child, as worthless
		}
		s.setBaseFee(8) // a block of others' making
		s.setBaseFee(2)
		s.judge(1)
		s.admits(500, 9)
	})
	t.Run("queued while a bundle fails", func(t *testing.T) {
		s := newSiege(t, 8, nil)
		for nonce := range uint64(4) {
			s.honour(transfer(0, nonce, 5, 0))
			s.honour(transfer(1, nonce, 5, 0))
		}
		for i := range 40 {
			addAll(s, transfer(s.rogue(i, rich), 1, 1000, 0))
		}
		lease := s.pool.Drain(txpool.Budget{Count: 4})
		for i := range 40 {
			addAll(s, transfer(attacker+i, 2, 1000, 0))
		}
		require.NoError(t, lease.Release())
		s.judge(1)
		s.admits(500, 9)
	})
	t.Run("queued by a reorg", func(t *testing.T) {
		s := newSiege(t, 8, nil)
		before := s.chain.copy()
		first := transfer(0, 0, 5, 0)
		s.force(first)
		for nonce := uint64(1); nonce < 4; nonce++ {
			s.honour(transfer(0, nonce, 5, 0))
		}
		for i := range 40 {
			addAll(s, transfer(s.rogue(i, rich), 1, 1000, 0))
		}
		before[address(attacker)] = s.chain[address(attacker)]
		s.chain = before
		s.pool.Reset(txpool.Head{Reverted: []txpool.Block{{Transactions: []*types.Transaction{first}}}})
		s.judge(1)
		require.Equal(t, 4, s.pool.Stats().Pending)
	})
	t.Run("nonces out of order in one batch", func(t *testing.T) {
		s := newSiege(t, 8, nil)
		for i := range 40 {
			addAll(s, transfer(s.rogue(i, rich), 1, 1000, 0))
		}
		batch := reversed(chain(0, 0, 4, 5, 0))
		accepted := 0
		for _, err := range s.pool.AddAll(batch) {
			if err == nil {
				accepted++
			}
		}
		t.Logf("of 4 honest transactions in reverse order, %d come in while the queue is full of junk", accepted)
		s.admits(500, 5)
	})
}

// A cheap parent does not carry dear children over others, in whatever order they come.
func TestSiegeLowFeeAnchor(t *testing.T) {
	for name, order := range map[string]func([]*types.Transaction) []*types.Transaction{
		"parent first": func(txs []*types.Transaction) []*types.Transaction { return txs }, "children first": reversed,
	} {
		for _, tip := range []int64{4, 5, 6} { // below, at and above the worst
			t.Run(fmt.Sprint(name, tip), func(t *testing.T) {
				s := besieged(t, 8, nil)
				for i := range 4 {
					txs := chain(s.rogue(i, rich), 0, 8, 1000, 0)
					txs[0] = transfer(attacker+i, 0, tip, 0)
					addAll(s, order(txs)...)
				}
				s.judge(1)
				s.admits(500, 9)
			})
		}
	}
}

// Replacements, of many nonces and in batches, cost what they displace and end.
func TestSiegeReplacementFlood(t *testing.T) {
	s := besieged(t, 8, nil)
	accepted := 0
	for price := int64(8); price < 1_000_000; price += price/8 + 1 {
		var batch []*types.Transaction
		for i := range 3 {
			batch = append(batch, chain(s.rogue(i, rich), 0, 3, price, 0)...)
		}
		for _, err := range s.pool.AddAll(batch) {
			if err == nil {
				accepted++
			}
		}
	}
	s.judge(1)
	require.LessOrEqual(t, accepted, 8*11)
	s.chain[address(600)] = txpool.Account{Balance: *wei(2 * rich)}
	s.admits(600, 1_000_001) // a higher price is admitted
}
