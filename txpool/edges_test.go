package txpool

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// A transaction that fills a gap takes the place of the sender's last one that
// may go: it waits behind a gap, is in no lease and did not come back.
func TestSenderLimitMakesWay(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxPerSender = 3 })
	add(t, p, tx(0, 0, 2), tx(0, 2, 2), tx(0, 4, 2))
	refuse(t, p, tx(0, 3, 9), ErrSenderLimit) // it would wait too
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 4, 2))}}))
	add(t, p, tx(0, 1, 9)) // the last one came back
	require.Equal(t, "pp--q", statuses(p, 0, 5))
	refuse(t, p, tx(0, 2, 9), ErrSenderLimit)

	add(t, p, tx(1, 0, 2), tx(1, 2, 2), tx(1, 4, 2))
	add(t, p, tx(1, 1, 9))
	require.Equal(t, "ppp--", statuses(p, 1, 5))
	refuse(t, p, tx(1, 3, 9), ErrSenderLimit)
}

// A sender that is above its limit, because transactions came back, makes no way
// for a newcomer.
func TestSenderAboveItsLimitMakesNoWay(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxPerSender = 3 })
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	l := p.Drain(Budget{})
	block := blockOf(l.Transactions()...)
	require.NoError(t, l.Commit())
	add(t, p, tx(0, 3, 2), tx(0, 4, 2))
	require.Empty(t, p.Reset(Head{Reverted: []Block{block}}))
	require.Equal(t, "pp-qq", statuses(p, 0, 5))
	refuse(t, p, tx(0, 2, 9), ErrSenderLimit)
}

// The window of replacements begins with the first one. Later ones do not
// prolong it.
func TestReplacementWindowBeginsOnce(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	price := int64(20)
	replace := func() {
		price += price/8 + 1
		add(t, p, tx(0, 0, price))
	}
	add(t, p, tx(0, 0, price))
	replace()
	w.advance(40 * time.Second)
	for range maxReplacements - 1 {
		replace()
	}
	refuse(t, p, tx(0, 0, 999), ErrReplaceTooOften)
	w.advance(20 * time.Second)
	replace()
}

// A balance that was committed once is free again when the bundle fails, and a
// balance that just covers everything is not short.
func TestBalanceThatJustCovers(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, 3*unit)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	w.balance(0, 2*unit)
	p.Reset(Head{})
	require.False(t, p.core.accounts[addr(0)].short())
	l := p.Drain(Budget{})
	block := blockOf(l.Transactions()...)
	require.NoError(t, l.Commit())
	require.Empty(t, p.Reset(Head{Reverted: []Block{block}, Touched: nil}))
	require.Equal(t, "pp", statuses(p, 0, 2))
	w.balance(0, 3*unit)
	p.Reset(Head{})
	add(t, p, tx(0, 2, 10))
	refuse(t, p, tx(0, 3, 1), ErrInsufficientFunds)
}

// A drain fills its budget of gas and of bytes to the last unit.
func TestBudgetToTheLast(t *testing.T) {
	first, second := tx(0, 0, 3), tx(1, 0, 2)
	for name, budget := range map[string]Budget{
		"gas":   {Gas: first.Gas() + second.Gas()},
		"bytes": {Bytes: first.Size() + second.Size()},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, newWorld(), nil)
			add(t, p, first, second, tx(2, 0, 1))
			require.Equal(t, hashes([]*types.Transaction{first, second}), hashes(p.Drain(budget).Transactions()))
		})
	}
}

// A drain reads each account. It sees that the account was delegated meanwhile.
func TestDrainSeesTheDelegation(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	w.set(0, func(a *Account) { a.Delegated = true })
	require.Len(t, p.Drain(Budget{}).Transactions(), 1)
	require.Equal(t, "lkk", statuses(p, 0, 3))
}

// A leased transaction does not expire, and the sender's later transactions stay as
// long.
func TestLeasedDoesNotExpire(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.LeaseLifetime = 10 * time.Hour })
	add(t, p, tx(0, 0, 2))
	l := p.Drain(Budget{})
	w.advance(2 * time.Hour)
	require.Zero(t, p.CleanupExpired())
	require.Len(t, l.Transactions(), 1)
}

// A lease that was released is exempt after a restart, as before it.
func TestReleasedIsExemptAfterARestart(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, func(c *Config) { journaled(m)(c); c.MaxPending = 2 })
	returned(t, p, tx(0, 0, 2), tx(1, 0, 2))
	p = newPool(t, w, func(c *Config) { journaled(m)(c); c.MaxPending = 2 })
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 2, p.Stats().Exempt)
}

// A floor from the journal is moved into the range of the new configuration.
func TestRestoredFloorIsInRange(t *testing.T) {
	for _, floor := range []uint64{1, 9000 * gwei} {
		w, m := newWorld(), new(memory)
		m.records = [][]byte{encode(recordPrices, &prices{base: 1, floor: floor, average: floor})}
		p := newPool(t, w, func(c *Config) { journaled(m)(c); c.MinGasPrice = 2 * gwei })
		_, err := p.Restore(m.replay)
		require.NoError(t, err)
		require.Equal(t, min(max(floor, 2*gwei), 2000*gwei), p.Stats().Floor)
	}
}

// A held transaction that a block includes does not come back with a restart.
func TestHeldAndIncludedAfterARestart(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	hold(t, w, p, tx(0, 0, 2))
	p.Reset(Head{Included: []Block{blockOf(tx(0, 0, 2))}})
	p = newPool(t, w, journaled(m))
	restored, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, Restored{}, restored)
	require.Empty(t, p.Held())
}

// A Reset that names an account reads it again, also if the pool has nothing of
// it but the answer of an earlier look.
func TestTouchedAccountIsReadAgain(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, 0)
	refuse(t, p, tx(0, 0, 2), ErrInsufficientFunds)
	w.balance(0, 1e18)
	refuse(t, p, tx(0, 0, 2), ErrInsufficientFunds)
	p.Reset(Head{Touched: []common.Address{addr(0)}})
	add(t, p, tx(0, 0, 2))
}

// A Reset with failed blocks keeps what the balance does not cover, and the next
// one without such blocks, or a drain, does not.
func TestKeepingEndsWithTheReset(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	require.Empty(t, p.Reset(Head{Reverted: []Block{{}}}))
	w.balance(0, unit)
	l := p.Drain(Budget{})
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 10)}), hashes(l.Transactions()))
	require.Equal(t, StatusUnknown, p.Status(tx(0, 1, 10).Hash()))
}

// Failed blocks reset the floor to its value before them.
func TestFloorGoesBack(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.FloorWindow, c.BlockGasLimit = 2, txGas })
	full := blockOf(tx(0, 0, 100))
	p.Reset(Head{Included: []Block{full}})
	require.Greater(t, p.Stats().Floor, uint64(gwei))
	p.Reset(Head{Reverted: []Block{full}})
	require.EqualValues(t, gwei, p.Stats().Floor)
}

// A transaction that came back never gives way to one behind a gap, and no sender
// gives way to another with the same number of transactions.
func TestQueueOfReturned(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxQueued = 3 })
	add(t, p, tx(0, 1, 2), tx(0, 2, 2), tx(0, 3, 2))
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 3, 2))}}))
	add(t, p, tx(1, 1, 2)) // there is room for three besides
	add(t, p, tx(2, 1, 2)) // sender 0 has most: its last one that may go
	require.Equal(t, "-q-q", statuses(p, 0, 4))
	refuse(t, p, tx(2, 2, 9), ErrPoolFull) // all have as many
}

// An authorization of a transaction that came back is not checked again when the
// transaction runs.
func TestReturnedAuthorizationRuns(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	carrier := setCode(2, 0, 20, delegate(1, 0))
	returned(t, p, carrier)
	p.Reset(Head{BaseFee: weiOf(30)})
	require.Equal(t, "k", statuses(p, 2, 1))
	add(t, p, capped(1, 0, 2, 40), capped(1, 1, 2, 40))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(1)}))
	require.NoError(t, p.Check())
	require.Equal(t, "p", statuses(p, 2, 1))
}
