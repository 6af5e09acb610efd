package txpool

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// TestT3Deterministic: equal pools and budgets, equal drains, whatever the order of maps.
func TestT3Deterministic(t *testing.T) {
	drain := func() ([]common.Hash, []Skip) {
		w := newWorld()
		p := newPool(t, w, nil)
		for n := range 5 {
			for i := range 20 {
				add(t, p, tx(i, uint64(n), int64(1+(i*7+n*3)%5)))
			}
		}
		l := p.Drain(Budget{Count: 50, Gas: 1_000_000})
		return hashes(l.Transactions()), l.Skipped()
	}
	first, skipped := drain()
	require.Len(t, first, 47)
	for range 3 {
		again, skippedAgain := drain()
		require.Equal(t, first, again)
		require.Len(t, skippedAgain, len(skipped))
	}
}

// Best first, per sender by nonce; a rich child follows its poor parent at once.
func TestOrder(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 9), tx(1, 0, 5), tx(2, 0, 5), tx(3, 0, 2), tx(1, 1, 1))
	want := hashes([]*types.Transaction{tx(1, 0, 5), tx(2, 0, 5), tx(0, 0, 2), tx(0, 1, 9), tx(3, 0, 2), tx(1, 1, 1)})
	require.Equal(t, want, hashes(p.Candidates()))
	require.Equal(t, want, hashes(p.Drain(Budget{}).Transactions()))
}

func TestBudgets(t *testing.T) {
	data := func(i int, nonce uint64, tip int64, gas uint64, bytes int) *types.Transaction {
		return sign(i, &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(tip * gwei), Gas: gas, To: &common.Address{1}, Data: make([]byte, bytes)})
	}
	txs := []*types.Transaction{data(0, 0, 9, 100_000, 0), data(0, 1, 9, 21_000, 0), data(1, 0, 8, 30_000, 100), data(2, 0, 7, 21_000, 0), data(2, 1, 7, 21_000, 0), data(2, 2, 7, 21_000, 0)}
	for name, c := range map[string]struct {
		budget  Budget
		want    []int
		reasons []SkipReason
	}{
		"none":     {Budget{}, []int{0, 1, 2, 3, 4, 5}, nil},
		"count":    {Budget{Count: 2}, []int{0, 1}, nil},
		"gas":      {Budget{Gas: 99_000}, []int{2, 3, 4, 5}, []SkipReason{SkipGas, SkipAncestor}},
		"bytes":    {Budget{Bytes: txs[0].Size()*3 + 1}, []int{0, 1, 3}, []SkipReason{SkipBytes, SkipBytes, SkipAncestor}},
		"da":       {Budget{DABytes: txs[0].Size()*2 + 1}, []int{0, 1}, []SkipReason{SkipDABytes, SkipDABytes, SkipAncestor, SkipAncestor}},
		"base fee": {Budget{BaseFee: big.NewInt(8 * gwei)}, []int{0, 1, 2}, []SkipReason{SkipBaseFee, SkipAncestor, SkipAncestor}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, newWorld(), nil)
			add(t, p, txs...)
			l := p.Drain(c.budget)
			var want []common.Hash
			for _, i := range c.want {
				want = append(want, txs[i].Hash())
			}
			require.Equal(t, want, hashes(l.Transactions()))
			var reasons []SkipReason
			for _, s := range l.Skipped() {
				reasons = append(reasons, s.Reason)
			}
			require.Equal(t, c.reasons, reasons)
			require.NoError(t, p.Check())
		})
	}
}

// A budget into which no transaction fits does not cost the whole pool.
func TestSkipsAreBounded(t *testing.T) {
	p := bigPool(t, 10_000)
	fill(t, p, unsigned(5000, func(i int) uint64 { return uint64(i) }, func(int) uint64 { return 0 }, func(int) int64 { return 2 * gwei }))
	l := p.Drain(Budget{Gas: 29_999})
	require.Empty(t, l.Transactions())
	require.Len(t, l.Skipped(), maxSkips)
}

// TestT4NoLoss: a drained transaction comes back unless it was enqueued,
// included or invalid.
func TestT4NoLoss(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(1, 0, 3))
	l := p.Drain(Budget{Count: 3})
	require.Equal(t, "llp", statuses(p, 0, 3))
	refuse(t, p, tx(0, 1, 9), ErrInBundle, "transaction is in a bundle")
	require.ErrorIs(t, p.Remove(tx(0, 1, 2).Hash()), ErrInBundle)
	require.NoError(t, l.Return(tx(0, 1, 2).Hash()))
	require.ErrorIs(t, l.Return(tx(0, 1, 2).Hash()), ErrNotLeased)
	require.Equal(t, "lpp", statuses(p, 0, 3))
	require.NoError(t, l.Release())
	require.Equal(t, "ppp", statuses(p, 0, 3))
	require.ErrorIs(t, l.Release(), ErrLeaseClosed)
	require.ErrorIs(t, l.Commit(), ErrLeaseClosed)
	require.ErrorIs(t, l.Reject(tx(0, 0, 2).Hash(), errors.New("x")), ErrLeaseClosed)
	require.Equal(t, 4, p.Size())
	l = p.Drain(Budget{})
	require.NoError(t, l.Commit())
	require.ErrorIs(t, l.Commit(), ErrLeaseClosed)
	require.Zero(t, p.Size())
	require.NoError(t, p.Check())
}

// The overlay: bundle B-2 goes on where B-1 ends, while that is only submitted; and nonces that
// were committed are used up before the host's state shows it.
func TestOverlay(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	for n := range uint64(6) {
		add(t, p, tx(0, n, 2))
	}
	first := p.Drain(Budget{Count: 2})
	second := p.Drain(Budget{Count: 2})
	require.Equal(t, hashes([]*types.Transaction{tx(0, 2, 2), tx(0, 3, 2)}), hashes(second.Transactions()))
	require.Equal(t, "llllpp", statuses(p, 0, 6))
	require.Equal(t, []*Lease{first, second}, p.Leases())
	require.Same(t, second, p.Lease(second.ID()))
	require.NoError(t, first.Commit())
	require.Equal(t, "--llpp", statuses(p, 0, 6))
	refuse(t, p, tx(0, 1, 9), ErrNonceTooLow, "tx: 1 state: 2")
	nonce, _ := p.NextNonce(addr(0))
	require.EqualValues(t, 6, nonce)
	// The second one fails: it comes back, and its place is next.
	require.NoError(t, second.Release())
	require.Equal(t, "--pppp", statuses(p, 0, 6))
	// The state catches up; nothing changes.
	w.nonce(0, 2)
	p.Reset(Head{Included: []Block{{Transactions: first.Transactions()}}})
	require.Equal(t, "--pppp", statuses(p, 0, 6))
	require.NoError(t, p.Check())
}

// TestI14Quarantine: a transaction that fails in building leaves and is refused
// for a while; its successors wait.
func TestI14Quarantine(t *testing.T) {
	w := newWorld()
	var reasons []error
	p := newPool(t, w, func(c *Config) {
		c.Observe = func(e Event) {
			if e.Kind == Dropped {
				reasons = append(reasons, e.Reason)
			}
		}
	})
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	l := p.Drain(Budget{})
	why := errors.New("it reverts")
	require.NoError(t, l.Reject(tx(0, 0, 2).Hash(), why))
	require.Equal(t, []error{why}, reasons)
	require.ErrorIs(t, l.Reject(tx(0, 0, 2).Hash(), why), ErrNotLeased)
	require.NoError(t, l.Release())
	require.Equal(t, "-q", statuses(p, 0, 2))
	refuse(t, p, tx(0, 0, 2), ErrQuarantined, "transaction failed in building", "try again in 10m0s")
	add(t, p, tx(0, 0, 3)) // another one of the same nonce is fine
	require.Equal(t, "pp", statuses(p, 0, 2))
	w.advance(10 * time.Minute)
	require.NoError(t, p.Remove(tx(0, 0, 3).Hash()))
	add(t, p, tx(0, 0, 2))
	require.NoError(t, p.Reject(tx(0, 1, 2).Hash(), why), "without a lease too")
	require.ErrorIs(t, p.Reject(tx(0, 1, 2).Hash(), why), ErrNotFound)
}

// A lease that is neither committed nor released comes back by itself.
func TestLeaseExpires(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2))
	l := p.Drain(Budget{})
	require.Equal(t, w.clock().Add(time.Minute), l.Expires())
	w.advance(time.Minute - 1)
	p.CleanupExpired()
	require.Equal(t, "l", statuses(p, 0, 1))
	w.advance(1)
	p.CleanupExpired()
	require.Equal(t, "p", statuses(p, 0, 1))
	require.ErrorIs(t, l.Commit(), ErrLeaseClosed)
}

// A drain reads accounts again. A transaction whose balance a stranger has
// spent, or that another block has executed, is not put into a bundle and does
// not keep others out.
func TestDrainRechecks(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	for i := range 6 {
		add(t, p, tx(i, 0, int64(10-i)), tx(i, 1, int64(10-i)))
	}
	w.balance(0, 0)
	w.balance(1, 10*txGas*gwei)
	w.nonce(2, 1)
	l := p.Drain(Budget{Count: 4})
	require.Equal(t, hashes([]*types.Transaction{tx(1, 0, 9), tx(2, 1, 8), tx(3, 0, 7), tx(3, 1, 7)}), hashes(l.Transactions()))
	require.Equal(t, []string{"--", "l-", "-l", "ll", "pp"}, []string{statuses(p, 0, 2), statuses(p, 1, 2), statuses(p, 2, 2), statuses(p, 3, 2), statuses(p, 4, 2)})
	for _, s := range l.Skipped() {
		require.Equal(t, SkipChanged, s.Reason)
	}
	require.NoError(t, p.Check())
}

// A snapshot stays as it is, whatever happens.
func TestSnapshot(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2), tx(1, 0, 3))
	s := p.Snapshot()
	add(t, p, tx(2, 0, 9), tx(0, 0, 5))
	require.NoError(t, p.Drain(Budget{}).Commit())
	var got []*types.Transaction
	for tx := range s.All() {
		got = append(got, tx)
	}
	require.Equal(t, hashes([]*types.Transaction{tx(1, 0, 3), tx(0, 0, 2)}), hashes(got))
}

// A leased transaction stays in its lease whatever happens to its predecessors,
// and no transaction overtakes a lower nonce.
func TestLeaseInTheMiddle(t *testing.T) {
	p := newPool(t, newWorld(), tiny(4, 4))
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 100))
	a, b := p.Drain(Budget{Count: 1}), p.Drain(Budget{Count: 1})
	require.NoError(t, a.Release())
	require.Equal(t, "plp", statuses(p, 0, 3))
	require.NoError(t, p.Check())
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 2), tx(0, 2, 100)}), hashes(p.Candidates()))
	l := p.Drain(Budget{Count: 1})
	require.Empty(t, l.Transactions(), "its block would come after that of the next nonce")
	require.Equal(t, SkipOrder, l.Skipped()[0].Reason)
	require.NoError(t, l.Release())
	add(t, p, tx(1, 0, 9), tx(2, 0, 9), tx(3, 0, 9), tx(4, 0, 9)) // only unleased, new ones go
	require.Equal(t, "pl-", statuses(p, 0, 3))
	require.Len(t, b.Transactions(), 1)
	require.NoError(t, b.Release())
	require.NoError(t, p.Check())
}

// A drain skips transactions that do not fit, however many there are.
func TestDrainLooksAtAll(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { byData(c); c.MaxTxGas = 0 })
	for i := range 400 {
		for n := range uint64(16) {
			require.NoError(t, p.Add(from(i, n, 30_000_000, 2)))
		}
	}
	for i := range 100 {
		require.NoError(t, p.Add(from(1000+i, 0, 22_000, 1)))
	}
	l := p.Drain(Budget{Gas: 20_000_000})
	require.Len(t, l.Transactions(), 100)
	require.Len(t, l.Skipped(), maxSkips)
	require.NoError(t, l.Release())
	require.Len(t, p.Drain(Budget{}).Transactions(), 6500)
}

// A transaction that one round skipped and a later one took does not count as skipped.
func TestSkippedIsNotTaken(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 9), tx(1, 0, 5), tx(2, 0, 4))
	w.balance(0, 0)
	l := p.Drain(Budget{Count: 2})
	require.Len(t, l.Transactions(), 2)
	for _, skip := range l.Skipped() {
		require.NotContains(t, l.Transactions(), skip.Tx)
	}
}

// A host's func that panics in the middle of a drain leaves nothing leased.
func TestDrainSurvivesPanic(t *testing.T) {
	w := newWorld()
	var boom bool
	cfg := DefaultConfig(chainID)
	byData(&cfg)
	p, err := New(cfg, StateFunc(func(a common.Address) (Account, error) {
		if boom && a == common.BytesToAddress(from(200, 0, 0, 0).Data()) {
			panic("no")
		}
		return w.Account(a)
	}))
	require.NoError(t, err)
	for i := range 300 {
		require.NoError(t, p.Add(from(i, 0, 30_000, 1)))
	}
	boom = true
	require.Panics(t, func() { p.Drain(Budget{}) })
	boom = false
	require.NoError(t, p.Check())
	require.Zero(t, p.Stats().Leased)
	require.Len(t, p.Candidates(), 300)
	require.Len(t, p.Drain(Budget{}).Transactions(), 300)
}

// A host that was down for longer than the lifetime of a lease can still commit
// it: neither Reset nor Build releases it before the host has had that time.
func TestRestoredLeaseLivesAgain(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 5))
	lease := p.Drain(Budget{})
	require.Len(t, lease.Transactions(), 1)

	w.advance(10 * time.Minute) // the process is down
	again := newPool(t, w, journaled(m))
	restored, err := again.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 1, restored.Leases)
	again.Reset(Head{})
	require.Empty(t, again.Drain(Budget{}).Transactions(), "they are in a bundle")
	require.NotNil(t, again.Lease(lease.ID()))
	require.NoError(t, again.Lease(lease.ID()).Commit())
	require.NoError(t, again.Check())
}

// A sealed lease gives a transaction back, and the journal refuses the record. The host gets an
// error, because a restart would open the lease with the transaction.
func TestReturnReportsTheJournal(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 9), tx(1, 0, 8), tx(2, 0, 7))
	l := p.Drain(Budget{})
	m.broken = errNoDisk
	require.ErrorIs(t, l.Return(tx(1, 0, 8).Hash()), ErrJournal)
	require.ErrorIs(t, l.Reject(tx(2, 0, 7).Hash(), nil), ErrJournal)
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 9)}), hashes(l.Transactions()))
	m.broken = nil
	require.NoError(t, p.Flush())
	p = newPool(t, w, journaled(m))
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.NoError(t, p.Lease(l.ID()).Commit())
	require.Equal(t, StatusPending, p.Status(tx(1, 0, 8).Hash()))
}
