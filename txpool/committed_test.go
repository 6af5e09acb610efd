package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

const unit = 21_000 * 10 * gwei // cost of tx(i, n, 10)

// A host whose state is always a bundle behind, on a balance that covers little at a time: each
// committed transaction is owed until the state shows it, and not for longer.
func TestCommittedIsOwedUntilShown(t *testing.T) {
	w := newWorld()
	w.balance(0, 2*unit)
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 10))
	require.NoError(t, p.Drain(Budget{}).Commit())
	for n := uint64(1); n < 40; n++ {
		add(t, p, tx(0, n, 10))
		refuse(t, p, tx(0, n+1, 10), ErrInsufficientFunds)
		require.NoError(t, p.Drain(Budget{}).Commit())
		w.nonce(0, n)
		p.Reset(Head{})
	}
}

// The same if all transactions arrived together: none is dropped while the
// balance shrinks as expected.
func TestCommittedShownOneByOne(t *testing.T) {
	w := newWorld()
	w.balance(0, 10*unit)
	p := newPool(t, w, nil)
	for n := range uint64(10) {
		add(t, p, tx(0, n, 10))
	}
	for n := range uint64(10) {
		require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
		w.nonce(0, n)
		w.balance(0, (10-n)*unit)
		p.Reset(Head{})
		require.NoError(t, p.Check())
		require.Equal(t, int(9-n), p.Stats().Pending)
	}
}

// A bundle that fails gives back what it owed, so that the sender can afford the same again.
func TestRevertedIsNotOwed(t *testing.T) {
	w := newWorld()
	w.balance(0, 2*unit)
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	require.Empty(t, p.Reset(Head{Reverted: []Block{{Transactions: []*types.Transaction{tx(0, 1, 10)}}}}))
	require.Equal(t, "-p", statuses(p, 0, 2))
	require.NoError(t, p.Check())
}

// An authorization in a committed bundle throttles its authority until the state shows what it did.
func TestI7CommittedAuthorization(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w, m := newWorld(), new(memory)
		p := newPool(t, w, journaled(m))
		add(t, p, setCode(2, 0, 20, delegate(1, 0)))
		require.NoError(t, p.Drain(Budget{}).Commit())
		if restart {
			p = newPool(t, w, journaled(m))
			_, err := p.Restore(m.replay)
			require.NoError(t, err)
		}
		add(t, p, tx(1, 0, 2))
		refuse(t, p, tx(1, 1, 2), ErrDelegatedLimit)
		w.nonce(2, 1)
		p.Reset(Head{})
		require.Empty(t, p.core.authorizations)
		add(t, p, tx(1, 1, 2)) // the authorization did not apply
	}
}

// A restart remembers which nonces are used by bundles that the state does not
// show yet, their cost, and which of them were reverted.
func TestRestoreCommitted(t *testing.T) {
	w, m := newWorld(), new(memory)
	w.balance(0, 6*unit)
	w.set(1, func(a *Account) { a.Balance = *uint256.NewInt(2 * unit) })
	p := newPool(t, w, journaled(m))
	for n := range uint64(6) {
		add(t, p, tx(0, n, 10))
	}
	add(t, p, tx(1, 0, 11))
	for range 5 {
		require.NoError(t, p.Drain(Budget{Count: 1}).Commit()) // both senders
	}
	require.Empty(t, p.Reset(Head{Reverted: []Block{{Transactions: []*types.Transaction{tx(0, 3, 10)}}}}))
	w.nonce(0, 1)
	w.balance(0, 5*unit)
	w.nonce(1, 1)
	again := newPool(t, w, journaled(m))
	restored, err := again.Restore(m.replay)
	require.NoError(t, err)
	require.Empty(t, restored.Displaced)
	require.Equal(t, 3, restored.Transactions)
	require.NoError(t, again.Check())
	require.Equal(t, "---ppp", statuses(again, 0, 6))
	refuse(t, again, tx(0, 2, 20), ErrNonceTooLow)
	refuse(t, again, tx(0, 6, 10), ErrInsufficientFunds)
	// A new journal written by Rotate has the same content.
	short := new(memory)
	require.NoError(t, again.Rotate(short))
	third := newPool(t, w, nil)
	_, err = third.Restore(short.replay)
	require.NoError(t, err)
	require.Equal(t, "---ppp", statuses(third, 0, 6))
	refuse(t, third, tx(0, 2, 20), ErrNonceTooLow)
	w.nonce(0, 3)
	w.balance(0, 3*unit)
	third.Reset(Head{})
	require.NoError(t, third.Check())
	require.Equal(t, "---ppp", statuses(third, 0, 6))
}

// The process died while a lease was being committed: the lease is open again.
func TestRestoreInTheMiddleOfCommit(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 10), tx(0, 1, 10), tx(0, 2, 10))
	require.NoError(t, p.Drain(Budget{Count: 2}).Commit())
	n := len(m.records)
	require.Equal(t, []byte{recordOpened, recordCommitting, recordCommitted}, []byte{m.records[n-3][0], m.records[n-2][0], m.records[n-1][0]})
	for cut, want := range map[int]string{n - 2: "llp", n - 1: "llp", n: "--p"} {
		died := &memory{records: m.records[:cut]}
		again := newPool(t, w, nil)
		_, err := again.Restore(died.replay)
		require.NoError(t, err)
		require.Equal(t, want, statuses(again, 0, 3), "after %d records", cut)
		for _, l := range again.Leases() {
			require.NoError(t, l.Commit())
		}
		require.Equal(t, "--p", statuses(again, 0, 3), "after %d records", cut)
		refuse(t, again, tx(0, 1, 20), ErrNonceTooLow)
	}
}

// If the state cannot be read at a restart, committed transactions still count.
func TestRestoreCommittedWithoutState(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 10))
	require.NoError(t, p.Drain(Budget{}).Commit())
	w.broken[addr(0)] = errTest
	again := newPool(t, w, nil)
	_, err := again.Restore(m.replay)
	require.NoError(t, err)
	delete(w.broken, addr(0))
	refuse(t, again, tx(0, 0, 20), ErrNonceTooLow)
	add(t, again, tx(0, 1, 10))
	require.Equal(t, "-p", statuses(again, 0, 2))
}
