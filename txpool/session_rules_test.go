package txpool

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// runs takes all transactions of a session, each with its gas limit, and requires
// them in order.
func runs(t *testing.T, s *Session, want ...*types.Transaction) {
	t.Helper()
	var have []*types.Transaction
	for tx := s.Next(); tx != nil; tx = s.Next() {
		have = append(have, tx)
	}
	require.Equal(t, hashes(want), hashes(have))
}

// A session takes no transaction of a sender whose earlier one was postponed.
// The postponed one is not exempt from the caps.
func TestSessionPutsSenderAside(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(0, 1, 9), tx(1, 0, 5))
	s := p.Build(context.Background(), Budget{})
	require.Equal(t, tx(0, 0, 9).Hash(), s.Next().Hash())
	s.Later()
	runs(t, s, tx(1, 0, 5))
	require.Len(t, s.Skipped(), 2)
	require.Equal(t, []SkipReason{SkipLater, SkipAncestor}, []SkipReason{s.Skipped()[0].Reason, s.Skipped()[1].Reason})
	require.Zero(t, p.Stats().Exempt)
	require.NoError(t, s.Cancel())
	require.Zero(t, p.Stats().Exempt, "there was no bundle")
	require.NoError(t, p.Check())
}

// A sender's next transaction goes after better ones of senders that the session
// has not visited yet.
func TestSessionVisitsBeforeItTakes(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	want := []*types.Transaction{tx(0, 0, 20)}
	for i := range 12 {
		want = append(want, tx(1+i, 0, 10))
	}
	want = append(want, tx(0, 1, 1))
	add(t, p, want...)
	runs(t, p.Build(context.Background(), Budget{}), want...)
}

// A newcomer of a sender that the session knows goes after better ones.
func TestSessionFindsThePlaceOfNewcomers(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 10), tx(1, 0, 8))
	s := p.Build(context.Background(), Budget{})
	require.Equal(t, tx(0, 0, 10).Hash(), s.Next().Hash())
	add(t, p, tx(0, 1, 5), tx(2, 0, 9))
	runs(t, s, tx(2, 0, 9), tx(1, 0, 8), tx(0, 1, 5))
}

// A sender that left during a session does not disturb one that came in its
// place.
func TestSessionWithAReusedAccount(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	var want []*types.Transaction
	for i := range 20 {
		add(t, p, tx(i, 0, 10))
		want = append(want, tx(i, 0, 10))
	}
	s := p.Build(context.Background(), Budget{})
	require.Equal(t, want[0].Hash(), s.Next().Hash())
	require.NoError(t, p.Remove(want[1].Hash()))
	add(t, p, tx(30, 0, 1))
	runs(t, s, append(want[2:], tx(30, 0, 1))...)
}

// A session does not take a transaction that the state does not allow any more,
// and lists it.
func TestSessionReadsAccounts(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 9), tx(1, 0, 5))
	w.nonce(0, 1)
	s := p.Build(context.Background(), Budget{})
	runs(t, s, tx(1, 0, 5))
	require.Len(t, s.Skipped(), 1)
	require.Equal(t, SkipChanged, s.Skipped()[0].Reason)
	require.Equal(t, tx(0, 0, 9).Hash(), s.Skipped()[0].Tx.Hash())
}

// Each answer renews the lease. It does not expire while the session's context
// lives, and expires when that is done. Next then returns nil.
func TestSessionLease(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 9), tx(1, 0, 5))
	ctx, cancel := context.WithCancel(t.Context())
	s := p.Build(ctx, Budget{})
	require.NotNil(t, s.Next())
	w.advance(30 * time.Second)
	s.Used(txGas, 100)
	require.Equal(t, w.clock().Add(time.Minute), s.Lease().Expires())
	w.advance(2 * time.Minute)
	p.CleanupExpired()
	require.Same(t, s.Lease(), p.Lease(s.Lease().ID()))
	require.Equal(t, w.clock().Add(time.Minute), s.Lease().Expires())
	cancel()
	require.Nil(t, s.Next())
	w.advance(2 * time.Minute)
	p.CleanupExpired()
	require.Nil(t, p.Lease(s.Lease().ID()))
	require.NoError(t, p.Check())
}

// A session fills its data availability to the last byte.
func TestSessionFillsDataAvailability(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.DASize = func(*types.Transaction) uint64 { return 10 } })
	add(t, p, tx(0, 0, 9), tx(1, 0, 5), tx(2, 0, 3))
	runs(t, p.Build(context.Background(), Budget{DABytes: 20}), tx(0, 0, 9), tx(1, 0, 5))
}

// A sender's later transactions have the places of their prices when the session
// ends.
func TestPlacesAfterASession(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 9), tx(1, 0, 5))
	s := p.Build(context.Background(), Budget{Count: 1})
	require.NoError(t, p.Remove(tx(1, 0, 5).Hash()))
	require.Equal(t, tx(0, 0, 2).Hash(), s.Next().Hash())
	add(t, p, tx(2, 0, 6))
	lease, err := s.Seal()
	require.NoError(t, err)
	require.NoError(t, p.Check())
	require.Equal(t, hashes([]*types.Transaction{tx(0, 1, 9), tx(2, 0, 6)}), hashes(p.Candidates()))
	require.NoError(t, lease.Commit())
}

// The best few by a Score are the same whether a session finds them by its heap or
// Candidates sorts everything.
func TestSessionFollowsTheScore(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.Score = func(c Candidate) int64 { return int64(c.Tip/gwei) % 7 } })
	for i := range 60 {
		add(t, p, tx(i, 0, int64(1+i*17%41)), tx(i, 1, int64(1+i*29%41)))
	}
	for i := 0; i < 60; i += 7 {
		require.NoError(t, p.Remove(tx(i, 1, int64(1+i*29%41)).Hash()))
	}
	require.NoError(t, p.Check())
	all := hashes(p.Candidates())
	for _, count := range []int{1, 5, 30} {
		l := p.Drain(Budget{Count: count})
		require.Equal(t, all[:count], hashes(l.Transactions()))
		require.NoError(t, l.Release())
	}
}

// A transaction that failed is refused, and its sender's next one waits for the
// nonce.
func TestSessionFail(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(0, 1, 9))
	s := p.Build(context.Background(), Budget{})
	require.NotNil(t, s.Next())
	s.Fail(errors.New("reverted"))
	require.Nil(t, s.Next())
	require.ErrorIs(t, p.Add(tx(0, 0, 9)), ErrQuarantined)
	require.NoError(t, s.Cancel())
	require.Equal(t, "-q", statuses(p, 0, 2))
}

// A session counts the gas that a transaction used, and not its limit.
func TestSessionCountsUsedGas(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	large := sign(0, &types.LegacyTx{GasPrice: weiOf(9), Gas: 40_000, To: &common.Address{1}})
	add(t, p, large, tx(1, 0, 5), tx(2, 0, 3))
	s := p.Build(context.Background(), Budget{Gas: 2 * txGas})
	require.Equal(t, large.Hash(), s.Next().Hash())
	s.Used(txGas, large.Size())
	runs(t, s, tx(1, 0, 5))
}

// If one session takes a sender's first transaction, one that began later takes
// the next one, in any order.
func TestLaterSessionTakesTheNext(t *testing.T) {
	for _, score := range []func(Candidate) int64{nil, byTipAndSize} {
		p := newPool(t, newWorld(), func(c *Config) { c.Score = score })
		add(t, p, tx(0, 0, 5), tx(0, 1, 5), tx(0, 2, 5))
		first, second := p.Build(context.Background(), Budget{}), p.Build(context.Background(), Budget{})
		require.Equal(t, tx(0, 0, 5).Hash(), first.Next().Hash())
		require.Equal(t, tx(0, 1, 5).Hash(), second.Next().Hash())
	}
}

// A session passed over a sender's large transaction. When another session has
// taken that one, it takes the next one, which fits.
func TestSessionTakesWhatFollowsALargeOne(t *testing.T) {
	for _, score := range []func(Candidate) int64{nil, byTipAndSize} {
		p := newPool(t, newWorld(), func(c *Config) { c.Score = score })
		large := sign(0, &types.LegacyTx{GasPrice: weiOf(5), Gas: 1_000_000, To: &common.Address{1}})
		add(t, p, large, tx(0, 1, 5), tx(1, 0, 4))
		first, second := p.Build(context.Background(), Budget{}), p.Build(context.Background(), Budget{Gas: 100_000})
		require.Equal(t, tx(1, 0, 4).Hash(), second.Next().Hash())
		second.Used(txGas, 0)
		require.Equal(t, large.Hash(), first.Next().Hash())
		require.Equal(t, tx(0, 1, 5).Hash(), second.Next().Hash())
	}
}

// A session by score follows a new base fee.
func TestSessionFollowsTheBaseFee(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.Score = byTipAndSize })
	p.Reset(Head{BaseFee: weiOf(18)})
	better := capped(1, 0, 19, 20) // pays 2 now
	add(t, p, capped(0, 0, 9, 100), better, capped(2, 0, 5, 100))
	s := p.Build(context.Background(), Budget{})
	require.Equal(t, capped(0, 0, 9, 100).Hash(), s.Next().Hash())
	p.Reset(Head{BaseFee: weiOf(1)})
	require.Equal(t, better.Hash(), s.Next().Hash())
	require.Equal(t, capped(2, 0, 5, 100).Hash(), s.Next().Hash())
}

// A session does not take a transaction of a sender after a later one, however the earlier one
// comes back.
func TestSessionTakesNoncesInOrder(t *testing.T) {
	for name, back := range map[string]func(p *Pool, a *Session){
		"later":   func(_ *Pool, a *Session) { a.Later() },
		"cancel":  func(_ *Pool, a *Session) { require.NoError(t, a.Cancel()) },
		"release": func(_ *Pool, a *Session) { l, _ := a.Seal(); require.NoError(t, l.Release()) },
		"fail": func(p *Pool, a *Session) {
			a.Fail(nil)
			require.NoError(t, p.Add(tx(0, 0, 20)))
		},
		"revert": func(p *Pool, a *Session) {
			require.NoError(t, a.Commit())
			p.Reset(Head{Reverted: []Block{{Transactions: []*types.Transaction{tx(0, 0, 9)}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, newWorld(), nil)
			add(t, p, tx(0, 0, 9), tx(0, 1, 8))
			a := p.Build(context.Background(), Budget{})
			require.NotNil(t, a.Next())
			b := p.Build(context.Background(), Budget{})
			require.Equal(t, uint64(1), b.Next().Nonce())
			back(p, a)
			require.Nil(t, b.Next())
			require.NoError(t, p.Check())
			require.Equal(t, hashes([]*types.Transaction{tx(0, 1, 8)}), hashes(b.Lease().Transactions()))
		})
	}
}

// A session that has all it may take remembers no newcomers.
func TestFullSessionRemembersNone(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) { return common.BigToAddress(tx.Value()), nil }
	})
	require.NoError(t, p.Add(asking(0, txGas)))
	s := p.Build(context.Background(), Budget{Count: 1})
	require.NotNil(t, s.Next())
	s.Used(txGas, 100)
	for i := range 500 {
		better := types.NewTx(&types.DynamicFeeTx{
			ChainID: chainID, GasTipCap: weiOf(3), GasFeeCap: weiOf(3), Gas: txGas, To: &common.Address{1}, Value: weiOf(int64(i) + 2),
		})
		require.NoError(t, p.Add(better))
	}
	require.LessOrEqual(t, len(s.senders), 1)
}
