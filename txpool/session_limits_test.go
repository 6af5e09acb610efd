package txpool

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// crowd returns a pool with a transaction of each of n senders, all with the same
// gas limit.
func crowd(t *testing.T, n int, gas uint64) *Pool {
	t.Helper()
	p := newPool(t, newWorld(), func(c *Config) {
		c.MaxPending, c.MaxBytes = n, 1<<40
		c.Sender = func(tx *types.Transaction) (common.Address, error) { return common.BigToAddress(tx.Value()), nil }
	})
	for i := range n {
		require.NoError(t, p.Add(asking(i, gas)))
	}
	return p
}

// asking makes an unsigned transaction of a sender in a crowd.
func asking(i int, gas uint64) *types.Transaction {
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: chainID, GasTipCap: weiOf(2), GasFeeCap: weiOf(2), Gas: gas, To: &common.Address{1}, Value: big.NewInt(int64(i) + 1),
	})
}

// If no transaction fits, Next gives up after a fixed number of senders. The
// session still takes a newcomer that fits.
func TestNextGivesUp(t *testing.T) {
	const n = maxMisses + 2000
	p := crowd(t, n, 2*txGas)
	s := p.Build(context.Background(), Budget{Gas: txGas})
	require.Nil(t, s.Next())
	require.LessOrEqual(t, s.misses, maxMisses+stride)
	require.Empty(t, s.senders, "senders that do not fit cost no memory")
	before := s.misses
	require.Nil(t, s.Next())
	require.Equal(t, before, s.misses, "the second call visits none again")
	fits := asking(n, txGas)
	require.NoError(t, p.Remove(asking(0, 2*txGas).Hash()))
	require.NoError(t, p.Add(fits))
	require.Equal(t, fits.Hash(), s.Next().Hash())
	require.NoError(t, s.Commit())
	require.NoError(t, p.Check())
}

// Two sessions never have nonces of two senders in opposite orders. Otherwise
// neither of their blocks could run before the other.
func TestSessionsTieNoKnot(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(1, 0, 8), tx(1, 1, 7), tx(0, 1, 6))
	a, b := p.Build(context.Background(), Budget{}), p.Build(context.Background(), Budget{})
	require.Equal(t, tx(0, 0, 9).Hash(), a.Next().Hash())
	require.Equal(t, tx(1, 0, 8).Hash(), b.Next().Hash())
	require.Equal(t, tx(1, 1, 7).Hash(), b.Next().Hash())
	require.Equal(t, tx(0, 1, 6).Hash(), a.Next().Hash())
	add(t, p, tx(1, 2, 5), tx(0, 2, 4))
	require.Equal(t, tx(0, 2, 4).Hash(), a.Next().Hash(), "nonce 1 of the other sender is in a later session")
	require.NoError(t, p.Check())
	require.NoError(t, a.Commit())
	require.NoError(t, b.Cancel())
	require.NoError(t, p.Check())
	require.Equal(t, "---", statuses(p, 0, 3))
	require.Equal(t, "ppp", statuses(p, 1, 3))
}

// When a later session gives a transaction back, the earlier one takes it.
func TestSessionTakesWhatALaterOneReturns(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(0, 1, 8))
	a, b := p.Build(context.Background(), Budget{}), p.Build(context.Background(), Budget{})
	require.NotNil(t, b.Next())
	require.Nil(t, a.Next(), "nonce 0 is in a later session")
	require.NoError(t, b.Cancel())
	require.Equal(t, tx(0, 0, 9).Hash(), a.Next().Hash())
	require.Equal(t, tx(0, 1, 8).Hash(), a.Next().Hash())
}

// Sessions that a host forgets cost little: at most maxSessions take
// transactions, and one whose budget is used up keeps nothing.
func TestForgottenSessions(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9))
	full := p.Build(context.Background(), Budget{Count: 1})
	require.NotNil(t, full.Next())
	require.Nil(t, full.Next())
	var all []*Session
	for range maxSessions + 3 {
		all = append(all, p.Build(context.Background(), Budget{}))
	}
	add(t, p, tx(1, 0, 9), tx(2, 0, 9))
	require.Len(t, p.core.sessions, maxSessions)
	require.Empty(t, full.senders, "newcomers cost nothing in a session that takes none")
	require.Nil(t, all[2].Next(), "it gave way to later ones")
	require.NotNil(t, all[3].Next())
	require.NoError(t, all[2].Cancel())
	require.NoError(t, full.Commit())
	require.NoError(t, p.Check())
}

// A sender that was passed over because its transaction did not fit is considered
// again if it replaces it by one that does.
func TestReplacementThatFits(t *testing.T) {
	for _, budget := range []uint64{45_000, 60_000} { // it never fits, or not any more
		p := newPool(t, newWorld(), nil)
		large := sign(0, &types.LegacyTx{GasPrice: weiOf(2), Gas: 50_000, To: &common.Address{1}})
		add(t, p, large, tx(1, 0, 5))
		s := p.Build(context.Background(), Budget{Gas: budget})
		require.Equal(t, tx(1, 0, 5).Hash(), s.Next().Hash())
		require.Nil(t, s.Next())
		add(t, p, tx(0, 0, 9))
		require.Equal(t, tx(0, 0, 9).Hash(), s.Next().Hash())
	}
}

// After a commit that failed, the lease is open, and the error of Cancel is not
// that of a closed one.
func TestCancelAfterFailedCommit(t *testing.T) {
	m := new(memory)
	p := newPool(t, newWorld(), journaled(m))
	add(t, p, tx(0, 0, 9))
	s := p.Build(context.Background(), Budget{})
	require.NotNil(t, s.Next())
	m.broken = errNoDisk
	require.ErrorIs(t, s.Commit(), ErrJournal)
	m.broken = nil
	err := s.Cancel()
	require.ErrorIs(t, err, ErrSessionEnded)
	require.NotErrorIs(t, err, ErrLeaseClosed)
	require.NoError(t, s.Lease().Release())
	require.ErrorIs(t, s.Cancel(), ErrLeaseClosed)
	require.Equal(t, "p", statuses(p, 0, 1))
}

// A session that is open for long remembers no senders that have left, except
// those that it has taken or put aside.
func TestIdleSessionForgets(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(1, 0, 8))
	s := p.Build(context.Background(), Budget{})
	require.Equal(t, tx(0, 0, 9).Hash(), s.Next().Hash())
	s.Fail(nil)
	require.Equal(t, tx(1, 0, 8).Hash(), s.Next().Hash())
	for i := range 50 {
		newcomer := tx(2+i, 0, 50)
		add(t, p, newcomer)
		require.NoError(t, p.Remove(newcomer.Hash()))
	}
	require.Len(t, s.senders, 2)
	require.Empty(t, s.heads)
	add(t, p, tx(0, 0, 99), tx(2, 0, 7))
	runs(t, s, tx(2, 0, 7))
}

// A newcomer finds room in a full pool behind a bounded number of transactions that
// cannot be displaced (I9).
func TestSearchForRoomIsBounded(t *testing.T) {
	for n, admitted := range map[int]bool{maxPassed - 1: true, maxPassed: false} {
		p := newPool(t, newWorld(), func(c *Config) {
			c.MaxPending, c.MaxParked, c.MaxQueued = n-1, 1, 1
			c.Sender = func(tx *types.Transaction) (common.Address, error) { return common.BigToAddress(tx.Value()), nil }
		})
		p.Reset(Head{BaseFee: weiOf(3)})
		add(t, p, asking(0, txGas)) // better than the same ones that come later
		var back []*types.Transaction
		for i := range n {
			back = append(back, asking(1+i, txGas))
		}
		require.Empty(t, p.Reset(Head{Reverted: []Block{{Transactions: back}}}))
		newcomer := types.NewTx(&types.LegacyTx{GasPrice: weiOf(50), Gas: txGas, To: &common.Address{1}, Value: big.NewInt(int64(n) + 2)})
		if err := p.Add(newcomer); admitted {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrPoolFull)
		}
	}
}
