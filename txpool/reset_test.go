package txpool

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// Included transactions leave, whether or not the pool drained them. Other
// transactions with the same nonce leave too.
func TestResetIncluded(t *testing.T) {
	w := newWorld()
	left := make(map[common.Hash]Kind)
	p := newPool(t, w, func(c *Config) {
		c.Observe = func(e Event) {
			if e.Kind == Included || e.Kind == Dropped {
				left[e.Tx.Hash()] = e.Kind
			}
		}
	})
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(1, 0, 2), tx(1, 1, 2))
	w.nonce(0, 1)
	w.nonce(1, 1)
	p.Reset(Head{Included: []Block{{Transactions: []*types.Transaction{tx(0, 0, 2), tx(1, 0, 9)}}}, Touched: []common.Address{addr(0), addr(1)}})
	require.Equal(t, "-p", statuses(p, 0, 2))
	require.Equal(t, "-p", statuses(p, 1, 2))
	require.Equal(t, map[common.Hash]Kind{tx(0, 0, 2).Hash(): Included, tx(1, 0, 2).Hash(): Dropped}, left)
	require.NoError(t, p.Check())
}

// A leased transaction that another block includes leaves the lease.
func TestResetIncludesLeased(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	l := p.Drain(Budget{})
	w.nonce(0, 1)
	p.Reset(Head{Included: []Block{{Transactions: []*types.Transaction{tx(0, 0, 2)}}}})
	require.Equal(t, hashes([]*types.Transaction{tx(0, 1, 2)}), hashes(l.Transactions()))
	require.NoError(t, l.Release())
	require.Equal(t, "-p", statuses(p, 0, 2))
	require.NoError(t, p.Check())
}

// TestI12Reinjection: reverted transactions come back by the same rules, nonces first.
func TestI12Reinjection(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.MaxQueued = 1 })
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(1, 0, 2))
	first := p.Drain(Budget{Count: 3})
	block := Block{Transactions: first.Transactions()}
	require.NoError(t, first.Commit())
	w.nonce(0, 2)
	w.nonce(1, 1)
	p.Reset(Head{Included: []Block{block}})
	add(t, p, tx(0, 2, 2), tx(0, 3, 2), tx(0, 4, 2))
	// The block is undone. Sender 1's is overtaken by another one in the new chain.
	w.nonce(0, 0)
	refused := p.Reset(Head{Reverted: []Block{block}, Included: []Block{{Transactions: []*types.Transaction{tx(1, 0, 7)}}}})
	require.Equal(t, "ppppp", statuses(p, 0, 5), "the gap was not held against those behind it")
	require.Len(t, refused, 1)
	require.Equal(t, tx(1, 0, 2).Hash(), refused[0].Tx.Hash())
	require.ErrorIs(t, refused[0].Err, ErrNonceTooLow)
	require.NoError(t, p.Check())
}

// A committed bundle that fails before the state ever showed it gives its nonces back.
func TestRevertCommitted(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	b1, b2 := p.Drain(Budget{Count: 1}), p.Drain(Budget{Count: 1})
	txs := b2.Transactions()
	require.NoError(t, b1.Commit())
	require.NoError(t, b2.Commit())
	require.Equal(t, "--p", statuses(p, 0, 3))
	require.Empty(t, p.Reset(Head{Reverted: []Block{{Transactions: txs}}}))
	require.Equal(t, "-pp", statuses(p, 0, 3))
	refuse(t, p, tx(0, 0, 9), ErrNonceTooLow)
}

// A transaction that is reverted and included in one call moved to another block, whether the
// state shows it already or not.
func TestResetMovesBetweenBlocks(t *testing.T) {
	for _, shown := range []bool{true, false} {
		w := newWorld()
		p := newPool(t, w, nil)
		add(t, p, tx(0, 0, 2), tx(0, 1, 2))
		l := p.Drain(Budget{Count: 1})
		block := Block{Transactions: l.Transactions()}
		require.NoError(t, l.Commit())
		if shown {
			w.nonce(0, 1)
		}
		require.Empty(t, p.Reset(Head{Reverted: []Block{block}, Included: []Block{block}}))
		require.Equal(t, "-p", statuses(p, 0, 2))
		require.NoError(t, p.Check())
	}
}

// The nonces of a reverted block are free again, also if its transactions do not come back. If the
// sender uses one, the transaction that is held aside leaves as replaced.
func TestRevertFreesNonces(t *testing.T) {
	refuse := false
	p := newPool(t, newWorld(), func(c *Config) {
		c.Precheck = func(tx *types.Transaction) error {
			if refuse {
				return errors.New("not now")
			}
			return nil
		}
	})
	old := tx(0, 0, 2)
	add(t, p, old)
	l := p.Drain(Budget{})
	block := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	refuse = true
	displaced := p.Reset(Head{Reverted: []Block{block}})
	require.Len(t, displaced, 1)
	require.True(t, displaced[0].Held)
	require.EqualError(t, displaced[0].Err, "not now")
	require.Equal(t, StatusHeld, p.Status(old.Hash()))
	require.Equal(t, displaced, p.Held())
	refuse = false
	add(t, p, tx(0, 0, 3))
	require.Equal(t, "p", statuses(p, 0, 1))
	displaced = p.Reset(Head{})
	require.Len(t, displaced, 1)
	require.ErrorIs(t, displaced[0].Err, ErrReplaced)
	d, known := p.Departure(old.Hash())
	require.True(t, known)
	require.Equal(t, Replaced, d.Kind)
	require.Equal(t, tx(0, 0, 3).Hash(), d.By)
	require.Empty(t, p.Held())
}

// If the bundle of a later nonce fails while an earlier nonce is leased, the earlier
// one is not used: its transaction comes back.
func TestRevertBehindALease(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	first, second := p.Drain(Budget{Count: 1}), p.Drain(Budget{Count: 1})
	require.NoError(t, second.Commit())
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 1, 2))}}))
	require.Equal(t, "lp", statuses(p, 0, 2))
	require.NoError(t, first.Release())
	require.Equal(t, "pp", statuses(p, 0, 2))
	require.NoError(t, p.Check())
}
