package txpool

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// memory is a journal that can fail.
type memory struct {
	records [][]byte
	broken  error
}

func (m *memory) Append(records ...[]byte) error {
	if m.broken != nil {
		return m.broken
	}
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
	}
	return nil
}

func (m *memory) replay(f func([]byte) error) error {
	for _, r := range m.records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func journaled(m *memory) func(*Config) {
	return func(c *Config) { c.Journal = m }
}

// A restart restores transactions, whether they are private, their age, and
// open leases.
func TestRestore(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(1, 0, 5), tx(1, 0, 7), tx(2, 1, 2), tx(3, 0, 3), tx(4, 0, 8))
	require.NoError(t, p.AddPrivate(tx(5, 0, 2)))
	committed := p.Drain(Budget{Count: 1})
	require.NoError(t, committed.Commit())
	w.nonce(4, 1)
	released := p.Drain(Budget{Count: 1})
	require.NoError(t, released.Release())
	open := p.Drain(Budget{Count: 3})
	require.NoError(t, open.Return(tx(0, 0, 2).Hash()))
	require.NoError(t, p.Remove(tx(2, 1, 2).Hash()))
	w.advance(time.Minute)

	again := newPool(t, w, journaled(m))
	restored, err := again.Restore(m.replay)
	require.NoError(t, err)
	require.NoError(t, again.Check())
	require.Equal(t, Restored{Transactions: 6, Leases: 1}, restored)
	require.Equal(t, hashes(p.Candidates()), hashes(again.Candidates()))
	l := again.Lease(open.ID())
	require.NotNil(t, l)
	require.Equal(t, hashes(open.Transactions()), hashes(l.Transactions()))
	require.True(t, w.clock().Add(time.Minute).Equal(l.Expires()), "a full lifetime")
	w.advance(58 * time.Minute)
	require.Zero(t, again.CleanupExpired(), "the lease is over, the transactions are 59 minutes old")
	w.advance(time.Minute)
	require.Equal(t, 6, again.CleanupExpired())
	next := again.Drain(Budget{})
	require.Greater(t, next.ID(), open.ID())
}

// One that was included meanwhile is not taken again, and not tried at the next restart.
func TestRestoreRefuses(t *testing.T) {
	w, m := newWorld(), new(memory)
	add(t, newPool(t, w, journaled(m)), tx(0, 0, 2), tx(1, 0, 2))
	w.nonce(0, 1)
	restored, err := newPool(t, w, journaled(m)).Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 1, restored.Transactions)
	require.Len(t, restored.Displaced, 1)
	require.ErrorIs(t, restored.Displaced[0].Err, ErrNonceTooLow)
	restored, err = newPool(t, w, journaled(m)).Restore(m.replay)
	require.NoError(t, err)
	require.Empty(t, restored.Displaced)
}

// A poisoned record is put aside and everything else is restored. A transaction that makes a check
// panic is held aside, and comes back when the check is repaired.
func TestRestorePoisoned(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 2), tx(1, 0, 3), tx(2, 0, 4))
	m.records = append(m.records, []byte{}, []byte("what is this"), []byte{recordAdded, 0, 1}, []byte{recordLeft, 1}, []byte{recordCommitted, 0, 0, 0, 0, 0, 0, 0, 9}, []byte{recordOpened, 1})
	panics := func(c *Config) {
		journaled(m)(c)
		c.Precheck = func(tx *types.Transaction) error {
			if tx.GasTipCap().Int64() == 3*gwei {
				panic("boom")
			}
			return nil
		}
	}
	again := newPool(t, w, panics)
	restored, err := again.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 2, restored.Transactions)
	require.Len(t, restored.Poisoned, 6)
	require.ErrorIs(t, restored.Poisoned[5].Err, errPanic)
	require.Equal(t, StatusHeld, again.Status(tx(1, 0, 3).Hash()))
	require.Len(t, restored.Displaced, 1)
	require.True(t, restored.Displaced[0].Held)
	require.NoError(t, again.Check())
	restored, err = newPool(t, w, panics).Restore(m.replay)
	require.NoError(t, err)
	require.Len(t, restored.Poisoned, 6, "nothing is forgotten")
	repaired := newPool(t, w, journaled(m))
	restored, err = repaired.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, 3, restored.Transactions)
	require.Len(t, restored.Poisoned, 5)
	fresh := new(memory)
	require.NoError(t, repaired.Rotate(fresh))
	restored, err = newPool(t, w, journaled(fresh)).Restore(fresh.replay)
	require.NoError(t, err)
	require.Equal(t, 3, restored.Transactions)
	require.Len(t, restored.Poisoned, 5, "Rotate copies what could not be read")
}

// A transaction that cannot be written to the journal is not stored.
func TestJournalFails(t *testing.T) {
	m := new(memory)
	p := newPool(t, newWorld(), journaled(m))
	add(t, p, tx(0, 0, 2))
	m.broken = errors.New("disk full")
	err := p.Add(tx(1, 0, 2))
	require.ErrorIs(t, err, ErrJournal)
	require.ErrorContains(t, err, "disk full")
	require.ErrorIs(t, p.AddAll([]*types.Transaction{tx(2, 0, 2)})[0], ErrJournal)
	require.Equal(t, 1, p.Size())
	replayed := errors.New("torn")
	_, err = newPool(t, newWorld(), nil).Restore(func(func([]byte) error) error { return replayed })
	require.ErrorIs(t, err, replayed)
}

// A host can begin a new journal.
func TestRotate(t *testing.T) {
	w, m, fresh := newWorld(), new(memory), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(1, 0, 5), tx(2, 3, 2))
	l := p.Drain(Budget{Count: 2})
	require.NoError(t, p.Rotate(fresh))
	require.Len(t, fresh.records, 2+4+1, "the last lease's number, prices, transactions, the lease")
	again := newPool(t, w, journaled(fresh))
	restored, err := again.Restore(fresh.replay)
	require.NoError(t, err)
	require.Equal(t, Restored{Transactions: 4, Leases: 1}, restored)
	require.Equal(t, hashes(l.Transactions()), hashes(again.Lease(l.ID()).Transactions()))
	require.Equal(t, p.Stats(), again.Stats())
}

// Whatever a journal holds, Restore neither panics nor breaks the pool.
func FuzzRestore(f *testing.F) {
	m := new(memory)
	p := newPool(f, newWorld(), journaled(m))
	add(f, p, tx(0, 0, 2), tx(0, 1, 2), tx(1, 3, 2))
	l := p.Drain(Budget{Count: 2})
	_ = l.Return(tx(0, 1, 2).Hash())
	_ = l.Commit()
	var all []byte
	for _, r := range m.records {
		f.Add(r)
		all = append(append(all, byte(len(r))), r...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &memory{records: [][]byte{data}}
		for rest := data; len(rest) > 0; { // and as many records
			n := min(int(rest[0]), len(rest)-1)
			m.records = append(m.records, rest[1:1+n])
			rest = rest[1+n:]
		}
		p := newPool(t, newWorld(), journaled(new(memory)))
		if _, err := p.Restore(m.replay); err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		p.CleanupExpired()
		require.NoError(t, p.Check())
	})
}

// Whatever comes over the wire is an error or a transaction, and never a panic.
func FuzzAddRaw(f *testing.F) {
	for _, tx := range []*types.Transaction{tx(0, 0, 2), capped(0, 3, 2, 9), setCode(0, 0, 2, delegate(1, 0)),
		sign(1, &types.AccessListTx{ChainID: chainID, GasPrice: tx(0, 0, 2).GasPrice(), Gas: 30_000, AccessList: types.AccessList{{StorageKeys: []common.Hash{{1}}}}})} {
		raw, err := tx.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := newPool(t, newWorld(), nil)
		hash, err := p.AddRaw(raw)
		if (err == nil) != (p.Get(hash) != nil) {
			t.Fatalf("AddRaw said %v, stored: %v", err, p.Get(hash) != nil)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// journalFunc makes a function a Journal.
type journalFunc func(records ...[]byte) error

func (f journalFunc) Append(records ...[]byte) error { return f(records...) }
