package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

func TestBudgets(t *testing.T) {
	txs := []*types.Transaction{
		hungry(0, 0, 9, 100_000), hungry(0, 1, 9, 21_000), legacy(1, 0, gweis(8), 30_000, 100),
		hungry(2, 0, 7, 21_000), hungry(2, 1, 7, 21_000), hungry(2, 2, 7, 21_000),
	}
	for name, c := range map[string]struct {
		budget Budget
		want   []int
	}{
		"none":     {Budget{}, []int{0, 1, 2, 3, 4, 5}},
		"count":    {Budget{Count: 2}, []int{0, 1}},
		"gas":      {Budget{Gas: 99_000}, []int{2, 3, 4, 5}},
		"bytes":    {Budget{Bytes: txs[0].Size()*3 + 1}, []int{0, 1, 3}},
		"base fee": {Budget{BaseFee: gweis(8)}, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(txs...)
			l := w.drain(c.budget)
			var want []*types.Transaction
			for _, i := range c.want {
				want = append(want, txs[i])
			}
			same(t, want, l.Transactions())
			w.check()
		})
	}
}

// A drain fills its budget of gas and of bytes to the last unit.
func TestBudgetToTheLast(t *testing.T) {
	first, second := tx(0, 0, 3), tx(1, 0, 2)
	for name, budget := range map[string]Budget{
		"gas":   {Gas: first.Gas() + second.Gas()},
		"bytes": {Bytes: first.Size() + second.Size()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(first, second, tx(2, 0, 1))
			same(t, []*types.Transaction{first, second}, w.drain(budget).Transactions())
		})
	}
}

// A session counts the gas that a transaction used, and not its limit.
func TestSessionCountsUsedGas(t *testing.T) {
	w := newWorld(t)
	large := hungry(0, 0, 9, 40_000)
	w.add(large, tx(1, 0, 5), tx(2, 0, 3))
	s := w.build(Budget{Gas: 2 * txGas})
	w.takes(s, large)
	s.Used(txGas, large.Size())
	w.ends(s, tx(1, 0, 5))
}

// A sender that was passed over because its transaction did not fit is considered
// again if it replaces it by one that does.
func TestReplacementThatFits(t *testing.T) {
	for _, budget := range []uint64{45_000, 60_000} { // it never fits, or not any more
		w := newWorld(t)
		w.add(hungry(0, 0, 2, 50_000), tx(1, 0, 5))
		s := w.build(Budget{Gas: budget})
		w.ends(s, tx(1, 0, 5))
		w.add(tx(0, 0, 9))
		w.takes(s, tx(0, 0, 9))
	}
}

// A drain reads accounts again. A transaction whose balance a stranger has
// spent, or that another block has executed, is not put into a bundle and does
// not keep others out.
func TestDrainRechecks(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.add(tx(i, 0, int64(10-i)), tx(i, 1, int64(10-i)))
	}
	w.balance(0, 0)
	w.balance(1, 10*txGas*gwei)
	w.nonce(2, 1)
	l := w.drain(Budget{Count: 4})
	same(t, []*types.Transaction{tx(1, 0, 9), tx(2, 1, 8), tx(3, 0, 7), tx(3, 1, 7)}, l.Transactions())
	for i, want := range []string{"--", "l-", "-l", "ll", "pp"} {
		w.stands(i, want)
	}
}

// A drain skips transactions that do not fit, however many there are.
func TestDrainLooksAtAll(t *testing.T) {
	w := newWorld(t, unsigned, func(c *Config) { c.MaxTxGas = 0 })
	for i := range 400 {
		for n := range uint64(16) {
			require.NoError(t, w.Add(plain(i, n, 30_000_000, 2)))
		}
	}
	for i := range 100 {
		require.NoError(t, w.Add(plain(1000+i, 0, 22_000, 1)))
	}
	l := w.drain(Budget{Gas: 20_000_000})
	require.Len(t, l.Transactions(), 100)
	require.Len(t, w.drain(Budget{}).Transactions(), 6500)
}

// If no transaction fits, Next gives up after a fixed number of senders. The
// session still takes a newcomer that fits.
func TestNextGivesUp(t *testing.T) {
	const n = maxMisses + 2000
	w := newWorld(t, unsigned, func(c *Config) { c.MaxPending = n })
	for i := range n {
		require.NoError(t, w.Add(plain(i, 0, 2*txGas, 2)))
	}
	s := w.build(Budget{Gas: txGas})
	require.Nil(t, s.Next())
	require.LessOrEqual(t, s.misses, maxMisses+stride)
	require.Empty(t, s.senders, "senders that do not fit cost no memory")
	before := s.misses
	require.Nil(t, s.Next())
	require.Equal(t, before, s.misses, "the second call visits none again")
	w.remove(plain(0, 0, 2*txGas, 2))
	w.add(plain(n, 0, txGas, 2))
	w.takes(s, plain(n, 0, txGas, 2))
	s.Cancel()
	w.check()
}
