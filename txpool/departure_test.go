package txpool

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// marks reports which of some transactions have a departure, as a string of
// 'd' and '-'.
func marks(p *Pool, txs []*types.Transaction) string {
	s := make([]byte, len(txs))
	for i, tx := range txs {
		s[i] = '-'
		if _, known := p.Departure(tx.Hash()); known {
			s[i] = 'd'
		}
	}
	return string(s)
}

// The pool remembers a number of departures. The oldest one is
// forgotten first, also after a restart and if all of them happened at one time.
func TestDeparturesAreBounded(t *testing.T) {
	const most = 8
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	p.core.departures.most = most
	var left []*types.Transaction
	leave := func(i int) {
		tx := tx(i, 0, 2)
		add(t, p, tx)
		require.NoError(t, p.Remove(tx.Hash()))
		left = append(left, tx)
	}
	for i := range most {
		leave(i)
	}
	require.Equal(t, "dddddddd", marks(p, left))
	leave(most)
	require.Equal(t, "-dddddddd", marks(p, left))
	for n := range 3 {
		p = newPool(t, w, journaled(m))
		p.core.departures.most = most
		_, err := p.Restore(m.replay)
		require.NoError(t, err)
		leave(most + 1 + n)
		require.Equal(t, "dddddddd", marks(p, left[n+2:]))
		require.NotContains(t, marks(p, left[:n+2]), "d")
	}
}

// A transaction that left twice is remembered by its newest departure, after
// the older one is forgotten too.
func TestDepartureTwice(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	p.core.departures.most = 2
	twice := tx(0, 0, 2)
	for range 2 {
		add(t, p, twice)
		require.NoError(t, p.Remove(twice.Hash()))
		w.advance(time.Second)
	}
	add(t, p, tx(1, 0, 2))
	require.NoError(t, p.Remove(tx(1, 0, 2).Hash()))
	require.Equal(t, "dd", marks(p, []*types.Transaction{twice, tx(1, 0, 2)}))
}

// Departures that are too old take no memory after CleanupExpired.
func TestDeparturesArePruned(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2))
	require.NoError(t, p.Remove(tx(0, 0, 2).Hash()))
	w.advance(departureTime)
	p.CleanupExpired()
	require.Empty(t, p.core.departures.byHash)
	require.Empty(t, p.core.departures.queue)
}

// A departure that has happened is known before it is written down.
func TestDepartureBeforeItIsWritten(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2))
	p.mu.Lock()
	p.core.apply(dropping(p.core.all[tx(0, 0, 2).Hash()], ErrRemoved))
	p.mu.Unlock()
	d, known := p.Departure(tx(0, 0, 2).Hash())
	require.True(t, known)
	require.ErrorIs(t, d.Reason, ErrRemoved)
}

// A transaction that leaves the pool and is added again by the same batch has no
// departure: not while it is in the pool, and not when a lease is committed with
// it.
func TestDepartureOfATransactionThatIsBack(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxQueued = 2 })
	displaced := tx(0, 2, 2)
	add(t, p, tx(0, 1, 2))
	// The second transaction displaces the first one, because sender 0 has most
	// behind a gap. The third fills the gap of sender 1 and makes room again.
	errs := p.AddAll([]*types.Transaction{displaced, tx(1, 1, 2), tx(1, 0, 2), displaced, tx(0, 0, 2)})
	require.Equal(t, make([]error, 5), errs)
	require.NoError(t, p.Check())
	require.Equal(t, StatusPending, p.Status(displaced.Hash()))
	require.Equal(t, "-", marks(p, []*types.Transaction{displaced}))
	require.NoError(t, p.Drain(Budget{}).Commit())
	require.Equal(t, StatusUnknown, p.Status(displaced.Hash()))
	require.Equal(t, "-", marks(p, []*types.Transaction{displaced}), "it was included")
}

// A transaction that is removed and then included by a block of another node has
// no departure, also after a restart.
func TestDepartureEndsWithInclusion(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 2))
	require.NoError(t, p.Remove(tx(0, 0, 2).Hash()))
	w.nonce(0, 1)
	p.Reset(Head{Included: []Block{{Transactions: []*types.Transaction{tx(0, 0, 2)}}}})
	require.Equal(t, "-", marks(p, []*types.Transaction{tx(0, 0, 2)}))
	p = newPool(t, w, journaled(m))
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, "-", marks(p, []*types.Transaction{tx(0, 0, 2)}))
}

// A transaction that left and is then held aside has no departure.
func TestDepartureEndsWhenHeld(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2))
	require.NoError(t, p.Remove(tx(0, 0, 2).Hash()))
	w.broken[addr(0)] = errNoDisk
	require.Len(t, p.Reset(Head{Reverted: []Block{{Transactions: []*types.Transaction{tx(0, 0, 2)}}}}), 1)
	require.Equal(t, StatusHeld, p.Status(tx(0, 0, 2).Hash()))
	require.Equal(t, "-", marks(p, []*types.Transaction{tx(0, 0, 2)}))
}

// A transaction that comes back with a nonce that is used up has a departure
// with this reason, also after a restart.
func TestDepartureOfWhatCannotComeBack(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	w.nonce(0, 1)
	lost := tx(0, 0, 2)
	displaced := p.Reset(Head{Reverted: []Block{{Transactions: []*types.Transaction{lost}}}})
	require.Len(t, displaced, 1)
	for range 2 {
		d, known := p.Departure(lost.Hash())
		require.True(t, known)
		require.Equal(t, Dropped, d.Kind)
		require.Equal(t, common.Hash{}, d.By)
		require.ErrorIs(t, d.Reason, ErrNonceTooLow)
		p = newPool(t, w, journaled(m))
		_, err := p.Restore(m.replay)
		require.NoError(t, err)
	}
}

// listed is an error of a comparable type with a value that is not comparable.
type listed struct{ value any }

func (listed) Error() string { return "one of several problems" }

// A builder that gives no reason, or one that is not comparable, gets a
// departure like any other.
func TestRejectForAnyReason(t *testing.T) {
	for name, test := range map[string]struct {
		reason error
		want   string
	}{
		"none":           {nil, ErrQuarantined.Error()},
		"not comparable": {listed{[]int{1}}, "one of several problems"},
	} {
		for kind, reject := range map[string]func(*Pool, *Session, common.Hash){
			"session": func(_ *Pool, s *Session, _ common.Hash) { s.Fail(test.reason) },
			"lease":   func(_ *Pool, s *Session, hash common.Hash) { require.NoError(t, s.Lease().Reject(hash, test.reason)) },
			"pool":    func(p *Pool, _ *Session, hash common.Hash) { require.NoError(t, p.Reject(hash, test.reason)) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				p := newPool(t, newWorld(), nil)
				add(t, p, tx(0, 0, 5))
				s := p.Build(t.Context(), Budget{})
				hash := s.Next().Hash()
				reject(p, s, hash)
				d, known := p.Departure(hash)
				require.True(t, known)
				require.EqualError(t, d.Reason, test.want)
				require.NoError(t, p.Check())
			})
		}
	}
}

// A departure whose label is as long as a byte can tell is read, and one whose
// label is longer than the record is poisoned.
func TestDepartureLabelLength(t *testing.T) {
	head := append([]byte{recordDeparted}, make([]byte, common.HashLength+8)...)
	long := append(append(slices.Clone(head), 'D', 255), bytes.Repeat([]byte{'x'}, 255+3)...)
	short := append(slices.Clone(head), 'D', 255, 'x')
	p := newPool(t, newWorld(), nil)
	restored, err := p.Restore(func(read func([]byte) error) error { return errors.Join(read(long), read(short)) })
	require.NoError(t, err)
	require.Len(t, restored.Poisoned, 1)
	require.Equal(t, short, restored.Poisoned[0].Record)
}
