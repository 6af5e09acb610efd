package txpool

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

func tiny(pending, queued int) func(*Config) {
	return func(c *Config) {
		c.FloorWindow, c.SurgeSlope = 0, 0
		c.MaxPending, c.MaxQueued, c.MaxParked = pending, queued, queued
	}
}

// TestI1HeldNeverDisplaces: a transaction that cannot run displaces none that
// can, and such transactions have separate caps.
func TestI1HeldNeverDisplaces(t *testing.T) {
	p := newPool(t, newWorld(), tiny(4, 2))
	for i := range 4 {
		add(t, p, tx(i, 0, 2))
	}
	add(t, p, tx(5, 1, 100), tx(4, 1, 100))
	refuse(t, p, tx(4, 2, 1000), ErrPoolFull, "txpool is full: 2 transactions of", "are behind nonce gaps, 1 of them from address")
	refuse(t, p, tx(6, 1, 1000), ErrPoolFull) // it would displace others for nothing
	require.Equal(t, "-q", statuses(p, 5, 2))
	require.Equal(t, "-q", statuses(p, 4, 2))
	require.Equal(t, 4, p.Stats().Pending)
	// Filling the gap makes two run: they take places as any other would.
	add(t, p, tx(4, 0, 100))
	require.Equal(t, "pp", statuses(p, 4, 2))
	require.Equal(t, 4, p.Stats().Pending)
	require.Equal(t, 1, p.Stats().Queued)
}

// TestI3OnlyTailsAreEvicted: the transaction whose chain has the lowest tip is
// evicted, from the end, and only for one that is strictly better (I4).
func TestI3OnlyTailsAreEvicted(t *testing.T) {
	p := newPool(t, newWorld(), tiny(4, 4))
	add(t, p, tx(0, 0, 2), tx(0, 1, 50), tx(0, 2, 60), tx(1, 0, 5))
	add(t, p, tx(2, 0, 10))
	require.Equal(t, "pp-", statuses(p, 0, 3))
	add(t, p, tx(3, 0, 10))
	require.Equal(t, "p--", statuses(p, 0, 3))
	add(t, p, tx(4, 0, 10))
	require.Equal(t, "---", statuses(p, 0, 3))
	refuse(t, p, tx(5, 0, 5), ErrPoolFull, "transaction underpriced: tip 5000000000 wei, want ≥ 5000000001")
	require.ErrorIs(t, p.Add(tx(5, 0, 5)), ErrUnderpriced)
	add(t, p, tx(5, 0, 6))
	require.Zero(t, p.Size()-4)
}

func TestI4RankOfTheNewcomer(t *testing.T) {
	p := newPool(t, newWorld(), tiny(4, 4))
	add(t, p, tx(0, 0, 3), tx(1, 0, 4), tx(2, 0, 5), tx(3, 0, 6))
	refuse(t, p, tx(0, 1, 100), ErrPoolFull) // its own parent pays 3, and no other pays less
	add(t, p, tx(1, 1, 100))
	require.Equal(t, "pp", statuses(p, 1, 2), "the poorest, of another sender, went")
	require.Equal(t, "-", statuses(p, 0, 1))
}

// TestI5OwnAncestorsStay: a newcomer never displaces what it needs.
func TestI5OwnAncestorsStay(t *testing.T) {
	p := newPool(t, newWorld(), tiny(2, 2))
	add(t, p, tx(0, 0, 3), tx(0, 1, 3))
	refuse(t, p, tx(0, 2, 100), ErrPoolFull)
	require.Equal(t, "pp-", statuses(p, 0, 3))
}

// TestI13AgeDoesNotProtect: however old, and whatever the order of draining, the poorer goes.
func TestI13AgeDoesNotProtect(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { tiny(2, 2)(c); c.Score = func(Candidate) int64 { return 0 } })
	add(t, p, tx(0, 0, 1))
	w.advance(59 * time.Minute)
	add(t, p, tx(1, 0, 700))
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 1), tx(1, 0, 700)}), hashes(p.Candidates()), "the earlier arrival goes first")
	add(t, p, tx(2, 0, 2))
	require.Equal(t, "-", statuses(p, 0, 1))
}

// TestI9NoWorkForThePool: the work of an Add does not grow with the pool. It
// reads one account at most.
func TestI9NoWorkForThePool(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	for i := range 60 {
		add(t, p, tx(i, 0, 2))
	}
	require.Equal(t, 60, w.reads)
	add(t, p, tx(0, 1, 2))
	require.Equal(t, 60, w.reads, "known senders are not read again")
}

// TestI15SizeAccounting: access lists and authorizations count as they lie in memory.
func TestI15SizeAccounting(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	plain := tx(0, 0, 2)
	add(t, p, plain)
	require.EqualValues(t, memoryOf(plain), p.Stats().PendingBytes)
	list := make(types.AccessList, 100) // 100 addresses without keys
	padded := sign(1, &types.AccessListTx{ChainID: chainID, GasPrice: big.NewInt(2 * gwei), Gas: 300_000, To: &common.Address{1}, AccessList: list})
	add(t, p, padded)
	require.EqualValues(t, memoryOf(plain)+txMemory+100*accessTupleMemory, p.Stats().PendingBytes)
	auth := setCode(2, 0, 2, delegate(3, 0))
	add(t, p, auth)
	require.EqualValues(t, memoryOf(plain)+txMemory+100*accessTupleMemory+txMemory+delegatingMemory+authorizationMemory+authorityMemory, p.Stats().PendingBytes)
}

// TestT2Bounded: bytes are bounded like counts, and a big newcomer pays for all that it displaces.
func TestT2Bounded(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		tiny(100, 100)(c)
		c.MaxTxSize, c.MaxBytes = 6000, 9000
	})
	for i := range 8 {
		add(t, p, tx(i, 0, int64(10+i)))
	}
	require.LessOrEqual(t, 8*memoryOf(tx(0, 0, 2)), uint64(9000))
	big := func(tip int64) *types.Transaction {
		return sign(20, &types.LegacyTx{GasPrice: big.NewInt(tip * gwei), Gas: 100_000, To: &common.Address{1}, Data: make([]byte, 4000)})
	}
	refuse(t, p, big(13), ErrPoolFull, "tip 13000000000 wei, want ≥")
	refuse(t, p, big(15), ErrPoolFull, "adds at least 915000000000000 wei, want > 1260000000000000 to displace 5 transactions")
	add(t, p, big(21))
	require.LessOrEqual(t, p.Stats().PendingBytes, uint64(9000))
	require.Equal(t, "-", statuses(p, 0, 1))
	require.Equal(t, "p", statuses(p, 7, 1))
}

// Transactions behind a new gap keep their room. Newcomers have theirs.
func TestDemotionOverflows(t *testing.T) {
	p := newPool(t, newWorld(), tiny(10, 2))
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(0, 3, 2), tx(0, 4, 2))
	require.NoError(t, p.Remove(tx(0, 0, 2).Hash()))
	require.Equal(t, "-qqqq", statuses(p, 0, 5))
	require.NoError(t, p.Check())
	add(t, p, tx(1, 1, 2), tx(2, 1, 2))
	refuse(t, p, tx(3, 1, 100), ErrPoolFull)
	add(t, p, tx(0, 0, 2))
	require.Equal(t, "ppppp", statuses(p, 0, 5))
}

// The watermark is the price that a newcomer must pay.
func TestWatermark(t *testing.T) {
	p := newPool(t, newWorld(), tiny(3, 2))
	require.EqualValues(t, gwei, p.Stats().Watermark)
	add(t, p, tx(0, 0, 5), tx(1, 0, 6), tx(2, 0, 7))
	require.Equal(t, uint64(5*gwei+1), p.Stats().Watermark)
	refuse(t, p, tx(3, 0, 5), ErrUnderpriced)
	paying := sign(3, &types.LegacyTx{GasPrice: big.NewInt(5*gwei + 1), Gas: txGas, To: &common.Address{1}})
	add(t, p, paying)
	require.Equal(t, uint64(5*gwei+2), p.Stats().Watermark)
}

// TestI4Parked: under a base fee that shuts all out, those stay that it shuts out last.
func TestI4Parked(t *testing.T) {
	p := newPool(t, newWorld(), tiny(8, 8))
	p.Reset(Head{BaseFee: big.NewInt(3 * gwei)})
	for i := range 8 {
		add(t, p, tx(20+i, 0, 1)) // no builder will ever take it
	}
	add(t, p, tx(40, 0, 2))
	refuse(t, p, tx(41, 0, 1), ErrPoolFull, "maxFeePerGas 1000000000 wei, want > 1000000000 (base fee 3000000000)")
	for i := range 8 {
		add(t, p, tx(i, 0, 5+int64(i%3)))
	}
	p.Reset(Head{BaseFee: big.NewInt(8 * gwei)})
	require.NoError(t, p.Check())
	p.Reset(Head{BaseFee: big.NewInt(3 * gwei)})
	for i := range 8 {
		require.Equal(t, "p", statuses(p, i, 1))
	}
}
