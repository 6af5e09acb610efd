package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// TestI2Overdraft: the balance covers everything a sender has here at once: pending, queued,
// parked, locked, and of the same batch.
func TestI2Overdraft(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 10*txGas*gwei)
	errs := w.AddAll([]*types.Transaction{tx(0, 0, 4), tx(0, 2, 4), tx(0, 1, 4), tx(0, 1, 2)})
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], ErrInsufficientFunds)
	require.NoError(t, errs[3])
	w.drain(Budget{})
	w.refuse(tx(0, 3, 1), ErrInsufficientFunds, "have 210000000000000 want 231000000000000, including 210000000000000 for other transactions")
	w.set(0, func(a *Account) { a.Nonce, a.Balance = 3, *uint256.NewInt(txGas * gwei) })
	w.reset(Head{Included: []Block{blockOf(tx(0, 0, 4), tx(0, 1, 2), tx(0, 2, 4))}, Touched: []common.Address{addr(0)}})
	w.add(tx(0, 3, 1))
}

// When a balance falls, the end of the chain goes first.
func TestBalanceDrift(t *testing.T) {
	w := newWorld(t)
	w.add(chain(0, 0, 3, 10)...)
	w.balance(0, 2*unit)
	require.Len(t, w.reset(Head{}), 1)
	w.stands(0, "pp-")
}

// A new balance must cover what a session has locked. One that just covers everything drops
// nothing.
func TestNewBalanceCoversLocked(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 3*unit)
	w.add(tx(0, 0, 10), tx(0, 1, 10))
	w.drain(Budget{Count: 1})
	w.balance(0, 2*unit)
	w.observes(0)
	w.stands(0, "lp")
	w.balance(0, unit)
	w.observes(0)
	w.stands(0, "l-")
}

// A balance that was spent is free again when the block fails, and a
// balance that just covers everything is not short.
func TestBalanceThatJustCovers(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 3*unit)
	w.add(tx(0, 0, 10), tx(0, 1, 10))
	w.balance(0, 2*unit)
	w.reset(Head{})
	require.False(t, w.core.accounts[addr(0)].short())
	block := w.commit(Budget{})
	require.Empty(t, w.fails(block.Transactions...))
	w.stands(0, "pp")
	w.balance(0, 3*unit)
	w.reset(Head{})
	w.add(tx(0, 2, 10))
	w.refuse(tx(0, 3, 1), ErrInsufficientFunds)
}

// A reverted transaction costs nothing although its account cannot be read.
func TestRevertedCostsNothing(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 10), tx(0, 1, 10))
	w.commit(Budget{Count: 1})
	w.breaks(0)
	require.Len(t, w.fails(tx(0, 0, 10)), 1)
}

// A replacement that costs less leaves enough for a later transaction, which came back and
// waits for the balance.
func TestCheaperReplacementPaysForALaterOne(t *testing.T) {
	w := newWorld(t)
	w.returned(valued(0, 0, 10, 30*txGas), tx(0, 1, 10), tx(0, 2, 10))
	w.balance(0, 5*unit)
	require.Empty(t, w.reset(Head{}))
	w.stands(0, "ppk")
	w.add(tx(0, 0, 12))
	w.stands(0, "ppp")
}

// A transaction that the builder postpones while the balance does not cover it stays.
func TestReturnedIntoAShortBalance(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 10), tx(0, 1, 10))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 10), tx(0, 1, 10))
	w.balance(0, unit)
	w.observes(0)
	s.Later()
	w.stands(0, "lk")
	w.balance(0, unit+1)
	w.observes(0)
	w.stands(0, "lk")
}

// A transaction that comes back behind another one, for which the balance then
// suffices, does not make that one exempt.
func TestReturnedBehindAnother(t *testing.T) {
	w := newWorld(t)
	w.balance(0, unit)
	w.breaks(0)
	require.Len(t, w.fails(tx(0, 1, 10)), 1)
	w.repairs()
	w.add(tx(0, 0, 10))
	require.Zero(t, w.cleanup())
	w.stands(0, "pk")
	require.Equal(t, 1, w.Stats().Exempt)
}

// A transaction that comes back from being held takes the balance that a later
// one of its sender counted on. Both stay: the later one waits for the balance.
func TestHeldReturnsIntoAShortBalance(t *testing.T) {
	w := newWorld(t)
	w.balance(0, unit)
	w.setAside(tx(0, 0, 10))
	w.repairs()
	w.add(tx(0, 1, 10))
	require.Zero(t, w.cleanup())
	w.stands(0, "pk")
	w.balance(0, unit+1)
	require.Empty(t, w.reset(Head{}))
	w.stands(0, "pk")
}

// A transaction that the balance does not cover after a restart stays, and waits
// for the balance.
func TestRestartWithASmallerBalance(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 10), tx(0, 1, 10))
	w.balance(0, unit)
	w.restart()
	w.stands(0, "pk")
	w.balance(0, unit+1)
	require.Empty(t, w.reset(Head{}))
	w.stands(0, "pk")
}

// An account that was funded by a reverted block keeps its transactions. They wait for the balance,
// and run when the transfer has run again.
func TestUnfundedByARevert(t *testing.T) {
	w := newWorld(t)
	w.balance(1, 0)
	funding := tx(0, 0, 2)
	w.add(funding)
	first := w.commit(Budget{})
	w.balance(1, 1e18)
	w.include(first)

	w.add(tx(1, 0, 2))
	second := w.commit(Budget{})
	w.add(tx(1, 1, 2), tx(1, 2, 2))
	w.nonce(0, 0)
	w.set(1, func(a *Account) { *a = Account{} })
	require.Empty(t, w.reset(Head{Reverted: []Block{first, second}}))
	w.stands(1, "kkk")
	w.refuse(tx(1, 3, 2), ErrInsufficientFunds)

	same(t, first.Transactions, w.commit(Budget{}).Transactions)
	w.balance(1, 1e18)
	require.Empty(t, w.include(first))
	w.offers(chain(1, 0, 3, 2)...)
}

// A Reset with failed blocks keeps what the balance does not cover, and the next
// one without such blocks, or a drain, does not.
func TestKeepingEndsWithTheReset(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 10), tx(0, 1, 10))
	require.Empty(t, w.reset(Head{Reverted: []Block{{}}}))
	w.balance(0, unit)
	same(t, chain(0, 0, 1, 10), w.drain(Budget{}).Transactions())
	w.has(StatusUnknown, tx(0, 1, 10))
}
