package txpool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

var errTest = errors.New("the test says so")

// byData makes senders of the first data bytes: no signatures.
func byData(c *Config) {
	c.Sender = func(tx *types.Transaction) (common.Address, error) { return common.BytesToAddress(tx.Data()), nil }
	c.MaxPending, c.MaxQueued, c.MaxParked = 1_000_000, 1_000_000, 1_000_000
	c.MaxBytes = 1 << 32
}

// from makes an unsigned transaction of sender i for a pool that is configured byData.
func from(i int, nonce, gas uint64, tip int64) *types.Transaction {
	return types.NewTx(&types.LegacyTx{
		Nonce: nonce, GasPrice: weiOf(tip), Gas: gas, To: &common.Address{1},
		Data: []byte{1, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)},
	})
}

// An observer that panics costs the one event that it panicked at.
func TestObserverPanics(t *testing.T) {
	bad := tx(0, 0, 2).Hash()
	p := newPool(t, newWorld(), func(c *Config) {
		c.Observe = func(e Event) {
			if e.Tx.Hash() == bad {
				panic("no")
			}
		}
	})
	s := p.Subscribe(SubscribeOptions{})
	require.Panics(t, func() { _ = p.Add(tx(0, 0, 2)) })
	add(t, p, tx(1, 0, 2))
	e, err := s.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, tx(1, 0, 2).Hash(), e.Tx.Hash())
}

// A call delivers a limited share of the events that others cause meanwhile.
// All events are still delivered, once and in order.
func TestNoCallIsHeldToTellForOthers(t *testing.T) {
	const each, callers = 3000, 4
	var last sync.Map // by sender: next nonce
	var told atomic.Int64
	all := make(chan struct{})
	p := newPool(t, newWorld(), func(c *Config) {
		byData(c)
		c.MaxPerSender = each
		c.Observe = func(e Event) {
			next, _ := last.LoadOrStore(e.Sender, uint64(0))
			if e.Tx.Nonce() != next {
				t.Errorf("nonce %d told, want %d", e.Tx.Nonce(), next)
			}
			last.Store(e.Sender, e.Tx.Nonce()+1)
			if told.Add(1) == each*callers {
				close(all)
			}
		}
	})
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for n := range uint64(each) {
				if err := p.Add(from(i, n, 30_000, 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	<-all
}

// deliverSome leaves to a goroutine what is more than its share.
func TestTellSomeHandsOver(t *testing.T) {
	released, done := make(chan struct{}), make(chan struct{})
	var told atomic.Int64
	p := newPool(t, newWorld(), func(c *Config) {
		byData(c)
		c.Observe = func(Event) {
			if told.Load() == 10 {
				<-released // the caller does not deliver
			}
			if told.Add(1) == 100 {
				close(done)
			}
		}
	})
	for i := range 100 {
		require.NoError(t, p.step(func(c *core) error {
			e, err := p.cfg.inspect(from(i, 0, 30_000, 1))
			require.NoError(t, err)
			one := candidate{tx: e.tx, entry: e, from: common.Address{byte(i)}, known: newWorld().get(common.Address{}), read: c.generation}
			c.admit(&one)
			return one.err
		}))
	}
	p.deliverSome(10)
	require.EqualValues(t, 10, told.Load())
	close(released)
	<-done
}

// A failed journal is tried again by the next Add, which changes nothing while
// the journal fails. Missed records are written first.
func TestJournalRecovers(t *testing.T) {
	m := new(memory)
	p := newPool(t, newWorld(), func(c *Config) {
		tiny(4, 4)(c)
		c.Journal = m
	})
	for i := range 4 {
		add(t, p, tx(i, 0, 5))
	}
	m.broken = errTest
	require.ErrorIs(t, p.Add(tx(0, 0, 9)), ErrJournal) // this is how the pool finds out
	before := p.Stats()
	for i := range 4 {
		require.ErrorIs(t, p.Add(tx(i, 0, 10)), ErrJournal)
		require.ErrorIs(t, p.Add(tx(10+i, 0, 10)), errTest)
	}
	require.Equal(t, before, p.Stats())
	l := p.Drain(Budget{Count: 1})
	require.ErrorIs(t, l.Commit(), ErrJournal, "a commit is in the journal first")
	require.Len(t, l.Transactions(), 1)
	m.broken = nil
	require.NoError(t, l.Commit())
	add(t, p, tx(20, 0, 7))
	again := newPool(t, newWorld(), nil)
	restored, err := again.Restore(m.replay)
	require.NoError(t, err)
	require.Empty(t, restored.Poisoned)
	require.Equal(t, p.Size(), again.Size())
	for _, tx := range p.Candidates() {
		require.NotNil(t, again.Get(tx.Hash()))
	}
}
