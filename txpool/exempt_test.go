package txpool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// Bundles fail again and again, and newcomers fill the pool each time. The pool
// never holds more than the sum of its caps and the transactions that were
// committed at one time, and loses no transaction that came back.
func TestExemptMemoryIsBounded(t *testing.T) {
	const limit, block, depth = 8, 4, 3
	w := newWorld()
	p := newPool(t, w, func(c *Config) {
		c.MaxPending, c.MaxParked, c.MaxQueued, c.MaxPerSender = limit, limit, limit, 1000
	})
	next, price := 0, int64(2)
	fill := func() { // each pays more than all before it, and is drained first
		for range 4 * limit {
			price++
			_ = p.Add(tx(next%64, uint64(next/64), price)) // most are refused
			next++
		}
	}
	back := make(map[common.Hash]bool)
	for range 12 {
		var queue []Block
		for range depth {
			fill()
			l := p.Drain(Budget{Count: block})
			queue = append(queue, Block{Transactions: l.Transactions()})
			require.NoError(t, l.Commit())
		}
		fill()
		require.Empty(t, p.Reset(Head{Reverted: queue}))
		require.NoError(t, p.Check())
		for _, b := range queue {
			for _, tx := range b.Transactions {
				back[tx.Hash()] = true
			}
		}
		require.LessOrEqual(t, p.Size(), 3*limit+depth*block)
	}
	require.Greater(t, len(back), 2*limit)
	for hash := range back {
		require.NotEqual(t, StatusUnknown, p.Status(hash))
	}
}

// A transaction of a failed block is still exempt after a restart: better newcomers do not displace
// it. Behind a poor parent that can be displaced it stays too.
func TestExemptAfterARestart(t *testing.T) {
	w, m := newWorld(), new(memory)
	small := func(c *Config) { journaled(m)(c); c.MaxPending = 2 }
	p := newPool(t, w, small)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	l := p.Drain(Budget{})
	block := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	require.Empty(t, p.Reset(Head{Reverted: []Block{block}}))
	require.NoError(t, p.Reject(tx(0, 0, 2).Hash(), errors.New("reverted")))
	add(t, p, tx(0, 0, 3))
	p = newPool(t, w, small)
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 1, p.Stats().Exempt)
	add(t, p, tx(1, 0, 9), tx(2, 0, 9), tx(3, 0, 10))
	require.Equal(t, StatusUnknown, p.Status(tx(0, 0, 3).Hash()))
	require.Equal(t, StatusQueued, p.Status(tx(0, 1, 2).Hash()))
}

// Transactions that wait for room do not take the room of transactions whose
// predecessor comes back.
func TestRevertKeepsTheRoom(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxPending = 3 })
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	l := p.Drain(Budget{Count: 1})
	block := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	add(t, p, tx(0, 3, 2), tx(1, 1, 2), tx(1, 0, 9)) // the second of sender 1 waits for room
	require.Equal(t, StatusParked, p.Status(tx(1, 1, 2).Hash()))
	require.Equal(t, "-pp", statuses(p, 0, 3))
	require.Empty(t, p.Reset(Head{Reverted: []Block{block}}))
	require.NoError(t, p.Check())
	require.Equal(t, "ppp", statuses(p, 0, 3))
	require.Equal(t, StatusParked, p.Status(tx(1, 1, 2).Hash()))
}

// checkedWhile returns a configuration with a journal whose Precheck refuses nonce 1 while refuse
// is true.
func checkedWhile(m *memory, refuse *bool) func(*Config) {
	return func(c *Config) {
		journaled(m)(c)
		c.Precheck = func(tx *types.Transaction) error {
			if *refuse && tx.Nonce() == 1 {
				return errors.New("not now")
			}
			return nil
		}
	}
}

// A lease is open across a restart, and its transactions may be in a bundle. So they are
// in the lease again, although a check refuses them now.
func TestLeaseKeepsWhatIsRefusedNow(t *testing.T) {
	w, m := newWorld(), new(memory)
	refuse := true
	checked := checkedWhile(m, &refuse)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	id := p.Drain(Budget{}).ID()
	p = newPool(t, w, checked)
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 2), tx(0, 1, 2)}), hashes(p.Lease(id).Transactions()))
	require.NoError(t, p.Lease(id).Commit())
	refuse = false
	p = newPool(t, w, checked)
	_, err = p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, StatusUnknown, p.Status(tx(0, 1, 2).Hash()))
}

// If the account of a transaction in an open lease cannot be read, Restore fails: the
// transaction must not be built into a second bundle.
func TestRestoreNeedsTheAccountsOfLeases(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 9), tx(1, 0, 9))
	id := p.Drain(Budget{Count: 1}).ID()
	w.broken[addr(0)] = errNoDisk
	p = newPool(t, w, journaled(m))
	_, err := p.Restore(m.replay)
	require.ErrorIs(t, err, errNoDisk)
	delete(w.broken, addr(0))
	w.broken[addr(1)] = errNoDisk // which no lease has
	p = newPool(t, w, journaled(m))
	restored, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 1, restored.Leases)
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 9)}), hashes(p.Lease(id).Transactions()))
}

// A transaction that is held aside and then in a block leaves without a departure.
func TestHeldAsideIsIncluded(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2))
	l := p.Drain(Budget{})
	block := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	w.nonce(0, 1)
	p.Reset(Head{Included: []Block{block}})
	w.nonce(0, 0)
	w.broken[addr(0)] = errors.New("no disk")
	displaced := p.Reset(Head{Reverted: []Block{block}})
	require.Len(t, displaced, 1)
	require.ErrorIs(t, displaced[0].Err, ErrState)
	require.Equal(t, displaced, p.Held())
	require.Empty(t, p.Reset(Head{Included: []Block{block}}))
	require.Empty(t, p.Held())
	_, known := p.Departure(tx(0, 0, 2).Hash())
	require.False(t, known)
}

// An account that was funded by a reverted block keeps its transactions. They wait for the balance,
// and run when the transfer has run again.
func TestUnfundedByARevert(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(1, 0)
	funding := tx(0, 0, 2)
	add(t, p, funding)
	require.NoError(t, p.Drain(Budget{}).Commit())
	first := Block{Transactions: []*types.Transaction{funding}}
	w.nonce(0, 1)
	w.balance(1, 1e18)
	p.Reset(Head{Included: []Block{first}})

	add(t, p, tx(1, 0, 2))
	l := p.Drain(Budget{})
	second := Block{Transactions: l.Transactions()}
	require.NoError(t, l.Commit())
	add(t, p, tx(1, 1, 2), tx(1, 2, 2))
	w.nonce(0, 0)
	w.balance(1, 0)
	require.Empty(t, p.Reset(Head{Reverted: []Block{first, second}}))
	require.NoError(t, p.Check())
	require.Equal(t, []Status{StatusParked, StatusParked, StatusParked},
		[]Status{p.Status(tx(1, 0, 2).Hash()), p.Status(tx(1, 1, 2).Hash()), p.Status(tx(1, 2, 2).Hash())})
	require.ErrorIs(t, p.Add(tx(1, 3, 2)), ErrInsufficientFunds)

	l = p.Drain(Budget{})
	require.Equal(t, hashes([]*types.Transaction{funding}), hashes(l.Transactions()))
	require.NoError(t, l.Commit())
	w.nonce(0, 1)
	w.balance(1, 1e18)
	require.Empty(t, p.Reset(Head{Included: []Block{first}}))
	require.NoError(t, p.Check())
	require.Equal(t, hashes([]*types.Transaction{tx(1, 0, 2), tx(1, 1, 2), tx(1, 2, 2)}), hashes(p.Candidates()))
}

// A restart with smaller caps keeps everything. Transactions above them are
// exempt; the others are not.
func TestRestartWithSmallerCaps(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	var all []*types.Transaction
	for i := range 6 {
		for n := range uint64(4) {
			all = append(all, tx(i, n, 2), tx(i, n+10, 2))
		}
	}
	add(t, p, all...)
	again := newPool(t, w, func(c *Config) {
		journaled(m)(c)
		c.MaxPending, c.MaxQueued, c.MaxPerSender, c.MinGasPrice = 5, 5, 1, 3*gwei
	})
	restored, err := again.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, Restored{Transactions: len(all)}, restored)
	require.NoError(t, again.Check())
	for _, tx := range all {
		require.NotEqual(t, StatusUnknown, again.Status(tx.Hash()))
	}
	require.Equal(t, len(all)-6, again.Stats().Exempt, "one of each sender is within the caps")
	require.Zero(t, again.Stats().Pending, "none pays the floor")
}

// A transaction that a check refuses after a restart is held aside, across another restart too,
// until its lifetime is over.
func TestHeldAside(t *testing.T) {
	w, m := newWorld(), new(memory)
	add(t, newPool(t, w, journaled(m)), tx(0, 0, 2), tx(0, 1, 2))
	refuse := func(c *Config) {
		journaled(m)(c)
		c.Precheck = func(tx *types.Transaction) error {
			if tx.Nonce() == 0 {
				return errors.New("sanctioned")
			}
			return nil
		}
	}
	for range 2 {
		p := newPool(t, w, refuse)
		restored, err := p.Restore(m.replay)
		require.NoError(t, err)
		require.Equal(t, 1, restored.Transactions)
		require.Len(t, restored.Displaced, 1)
		require.True(t, restored.Displaced[0].Held)
		require.Equal(t, StatusHeld, p.Status(tx(0, 0, 2).Hash()))
		fresh := new(memory)
		require.NoError(t, p.Rotate(fresh))
		m.records = fresh.records
	}
	p := newPool(t, w, refuse)
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	w.advance(time.Hour)
	require.Equal(t, 2, p.CleanupExpired())
	d, known := p.Departure(tx(0, 0, 2).Hash())
	require.True(t, known)
	require.ErrorIs(t, d.Reason, ErrExpired)
	_, err = newPool(t, w, refuse).Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, StatusUnknown, p.Status(tx(0, 0, 2).Hash()))
}

// A pool without receivers of events remembers departures too.
func TestDeparturesWithoutAListener(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2))
	require.NoError(t, p.Remove(tx(0, 0, 2).Hash()))
	d, known := p.Departure(tx(0, 0, 2).Hash())
	require.True(t, known)
	require.ErrorIs(t, d.Reason, ErrRemoved)
}

// Departures have the reason and the time. The pool remembers a limited number
// for a limited time, also across a restart and in a new journal.
func TestDepartures(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	replaced, removed, rejected := tx(0, 0, 2), tx(1, 0, 2), tx(2, 0, 2)
	add(t, p, replaced, removed, rejected, tx(0, 0, 3))
	require.NoError(t, p.Remove(removed.Hash()))
	at := w.clock()
	w.advance(time.Minute)
	require.NoError(t, p.Reject(rejected.Hash(), fmt.Errorf("execution reverted: %0300d", 1)))
	look := func(p *Pool) {
		t.Helper()
		d, known := p.Departure(replaced.Hash())
		require.True(t, known)
		require.Equal(t, tx(0, 0, 3).Hash(), d.By)
		require.Equal(t, Replaced, d.Kind)
		d, known = p.Departure(removed.Hash())
		require.True(t, known)
		require.ErrorIs(t, d.Reason, ErrRemoved)
		require.True(t, at.Equal(d.At))
		d, known = p.Departure(rejected.Hash())
		require.True(t, known)
		require.ErrorContains(t, d.Reason, "execution reverted")
		require.Len(t, d.Reason.Error(), maxReason)
		_, known = p.Departure(tx(0, 0, 3).Hash())
		require.False(t, known, "it is in the pool")
	}
	look(p)
	for range 2 { // from the journal, and from one that Rotate wrote
		again := newPool(t, w, journaled(m))
		_, err := again.Restore(m.replay)
		require.NoError(t, err)
		look(again)
		fresh := new(memory)
		require.NoError(t, again.Rotate(fresh))
		m.records = fresh.records
		p = again
	}
	add(t, p, removed)
	_, known := p.Departure(removed.Hash())
	require.False(t, known, "it is in the pool again")
	p.core.departures.most = 4
	add(t, p, tx(3, 0, 2), tx(3, 0, 3), tx(3, 0, 4), tx(3, 0, 5))
	_, known = p.Departure(replaced.Hash())
	require.False(t, known, "four are newer")
	_, known = p.Departure(tx(3, 0, 2).Hash())
	require.True(t, known)
	w.advance(24 * time.Hour)
	_, known = p.Departure(tx(3, 0, 2).Hash())
	require.False(t, known, "a day is over")
}
