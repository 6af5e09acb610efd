package txpool_test

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// A sender that pays more for its next transaction during a session goes before
// others from then on.
func TestReplacedDuringSession(t *testing.T) {
	h := newHost(t, nil)
	require.NoError(t, h.pool.Add(transfer(0, 0, 9, 0)))
	require.NoError(t, h.pool.Add(transfer(1, 0, 8, 0)))
	require.NoError(t, h.pool.Add(transfer(2, 0, 5, 0)))
	s := h.pool.Build(context.Background(), txpool.Budget{})
	require.Equal(t, transfer(0, 0, 9, 0).Hash(), s.Next().Hash())
	better := transfer(2, 0, 20, 0)
	require.NoError(t, h.pool.Add(better))
	require.Equal(t, better.Hash(), s.Next().Hash())
}

// firstByTip is the order by tip, with first transactions of a sender before all
// others.
func firstByTip(c txpool.Candidate) int64 {
	if c.Tx.Nonce() == 0 {
		return int64(c.Tip) + 1000*gwei
	}
	return int64(c.Tip)
}

// A score follows the base fee, also that of a transaction whose place in the
// pool does not change, because an earlier one of its sender pays less.
func TestScoreFollowsBaseFee(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.Score = firstByTip })
	child, other := dynamic(0, 1, 50, 50), dynamic(1, 1, 12, 90)
	for _, tx := range []*types.Transaction{dynamic(0, 0, 1, 90), child, dynamic(1, 0, 1, 90), other} {
		require.NoError(t, h.pool.Add(tx))
	}
	h.pool.Reset(txpool.Head{BaseFee: big.NewInt(40 * gwei)}) // the child's tip is 10 now
	txs := h.pool.Drain(txpool.Budget{}).Transactions()
	require.Len(t, txs, 4)
	require.Equal(t, other.Hash(), txs[2].Hash())
	require.Equal(t, child.Hash(), txs[3].Hash())
}
