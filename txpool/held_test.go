package txpool

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// refusing is a Precheck that refuses the next few transactions.
type refusing struct{ next int }

func (r *refusing) check(*types.Transaction) error {
	if r.next > 0 {
		r.next--
		return errors.New("not now")
	}
	return nil
}

func (r *refusing) config(c *Config) { c.Precheck = r.check }

// hold fails a block of transactions whose account cannot be read, so that the
// pool holds all of them aside.
func hold(t *testing.T, w *world, p *Pool, txs ...*types.Transaction) {
	t.Helper()
	add(t, p, txs...)
	l := p.Drain(Budget{})
	block := Block{Transactions: l.Transactions()}
	require.Len(t, block.Transactions, len(txs))
	require.NoError(t, l.Commit())
	w.nonce(0, uint64(len(txs)))
	p.Reset(Head{Included: []Block{block}})
	w.nonce(0, 0)
	w.broken[addr(0)] = errors.New("no disk")
	require.Len(t, p.Reset(Head{Reverted: []Block{block}}), len(txs))
	require.NoError(t, p.Check())
}

// Held transactions take memory, so they count towards the bound of the pool:
// newcomers are refused while they fill the pool, and admitted when they are gone.
func TestHeldAsideIsBounded(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.MaxPending, c.MaxParked, c.MaxQueued = 2, 1, 1 })
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	first := p.Drain(Budget{})
	blocks := []Block{{Transactions: first.Transactions()}}
	require.NoError(t, first.Commit())
	add(t, p, tx(0, 2, 2), tx(0, 3, 2))
	second := p.Drain(Budget{})
	blocks = append(blocks, Block{Transactions: second.Transactions()})
	require.NoError(t, second.Commit())
	w.nonce(0, 4)
	p.Reset(Head{Included: blocks})
	w.nonce(0, 0)
	w.broken[addr(0)] = errors.New("no disk")
	require.Len(t, p.Reset(Head{Reverted: blocks}), 4)
	require.NoError(t, p.Check())
	require.Len(t, p.Held(), 4)
	require.ErrorIs(t, p.Add(tx(1, 0, 9)), ErrPoolFull)
	delete(w.broken, addr(0))
	w.nonce(0, 4)
	p.Reset(Head{Included: blocks})
	require.Empty(t, p.Held())
	require.NoError(t, p.Check())
	require.NoError(t, p.Add(tx(1, 0, 9)))
}

// A transaction that is held aside and sent again is known. Otherwise the pool
// would have two copies of it: one could be displaced by count, and the other
// be reported as dropped after the first was included.
func TestHeldAsideIsKnown(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	hold(t, w, p, tx(0, 0, 2))
	delete(w.broken, addr(0))
	require.ErrorIs(t, p.Add(tx(0, 0, 2)), ErrAlreadyKnown)
	require.Equal(t, StatusHeld, p.Status(tx(0, 0, 2).Hash()))
	require.Empty(t, p.Reset(Head{}))
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	l := p.Drain(Budget{})
	block := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	w.nonce(0, 1)
	require.Empty(t, p.Reset(Head{Included: []Block{block}}))
	_, departed := p.Departure(tx(0, 0, 2).Hash())
	require.False(t, departed)
}

// A transaction that a Reset holds aside and admits after all is not reported.
func TestResetReportsNoHeldOneThatItAdmits(t *testing.T) {
	w, r := newWorld(), new(refusing)
	p := newPool(t, w, r.config)
	add(t, p, tx(0, 0, 2))
	l := p.Drain(Budget{})
	block := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	r.next = 1
	require.Empty(t, p.Reset(Head{Reverted: []Block{block}}))
	require.Zero(t, r.next, "it was refused first")
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	require.Empty(t, p.Held())
}
