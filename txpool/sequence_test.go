package txpool

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// status returns where sender i's nonces stand, as one letter each: p pending, q queued, k parked,
// l leased, a dash for none.
func statuses(p *Pool, i int, nonces int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := make([]byte, nonces)
	for n := range s {
		s[n] = '-'
	}
	if a := p.core.accounts[addr(i)]; a != nil {
		for _, e := range a.txs {
			s[e.nonce] = "qkp"[e.status]
			if e.lease != nil {
				s[e.nonce] = 'l'
			}
		}
	}
	return string(s)
}

// TestT1NoGap: a sender's ready transactions are consecutive from its account nonce, through
// promotion and demotion.
func TestT1NoGap(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 1, 2), tx(0, 3, 2))
	require.Equal(t, "-q-q", statuses(p, 0, 4))
	add(t, p, tx(0, 0, 2))
	require.Equal(t, "pp-q", statuses(p, 0, 4))
	nonce, known := p.NextNonce(addr(0))
	require.True(t, known)
	require.EqualValues(t, 2, nonce)
	add(t, p, tx(0, 2, 2))
	require.Equal(t, "pppp", statuses(p, 0, 4))
	require.NoError(t, p.Remove(tx(0, 1, 2).Hash()))
	require.Equal(t, "p-qq", statuses(p, 0, 4))
	add(t, p, tx(0, 1, 5))
	require.Equal(t, "pppp", statuses(p, 0, 4))
	w.nonce(0, 2)
	p.Reset(Head{})
	require.Equal(t, "--pp", statuses(p, 0, 4))
	require.NoError(t, p.Check())
}

// Caps of a sender: one that could run takes the place of the last one behind a gap, so that a
// wrong order is no trap.
func TestSenderLimit(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxPerSender = 3 })
	add(t, p, tx(0, 1, 2), tx(0, 2, 2), tx(0, 3, 2))
	refuse(t, p, tx(0, 4, 9), ErrSenderLimit, "account limit exceeded: address "+addr(0).Hex()+" has 3 transactions, limit 3")
	add(t, p, tx(0, 0, 2))
	require.Equal(t, "ppp-", statuses(p, 0, 4))
	refuse(t, p, tx(0, 3, 9), ErrSenderLimit)
	add(t, p, tx(0, 2, 9)) // replacing is always possible
}

// Transactions expire.
func TestExpiry(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(1, 3, 2))
	w.advance(30 * time.Minute)
	add(t, p, tx(0, 1, 2))
	require.Zero(t, p.CleanupExpired())
	l := p.Drain(Budget{Count: 1})
	w.advance(30 * time.Minute)
	require.NoError(t, l.Commit())
	require.Equal(t, 1, p.CleanupExpired(), "the queued one; a committed one is gone anyway")
	require.Equal(t, "-p", statuses(p, 0, 2))
	w.advance(30 * time.Minute)
	require.Equal(t, 1, p.CleanupExpired())
	require.Zero(t, p.Size())
	w.advance(30 * time.Minute)
	require.Zero(t, p.CleanupExpired())
	require.Zero(t, p.Stats().Senders, "what was committed and never shown is forgotten")
}

// The events tell a transaction's life.
func TestEvents(t *testing.T) {
	var got []string
	w := newWorld()
	p := newPool(t, w, func(c *Config) {
		c.Observe = func(e Event) { got = append(got, e.Kind.String()) }
		c.MaxPending = 2
	})
	expect := func(want ...string) {
		t.Helper()
		require.Equal(t, want, got)
		got = nil
	}
	add(t, p, tx(0, 1, 2))
	expect("queued")
	add(t, p, tx(0, 0, 2))
	expect("pending", "promoted")
	add(t, p, tx(0, 0, 4))
	expect("replaced", "pending")
	add(t, p, tx(1, 0, 3))
	expect("dropped", "pending")
	l := p.Drain(Budget{Count: 1})
	require.NoError(t, l.Commit())
	expect("included")
	require.NoError(t, p.Remove(tx(1, 0, 3).Hash()))
	expect("dropped")
}

// Private transactions run like others and are not shown.
func TestPrivate(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	s, all := p.Subscribe(SubscribeOptions{}), p.Subscribe(SubscribeOptions{Private: true})
	defer s.Close()
	defer all.Close()
	require.NoError(t, p.AddPrivate(tx(0, 0, 9)))
	require.ErrorIs(t, p.AddPrivate(tx(2, 0, 0)), ErrUnderpriced)
	add(t, p, tx(1, 0, 2))
	require.Equal(t, hashes([]*types.Transaction{tx(1, 0, 2)}), hashes(p.Candidates()))
	pending, _ := p.Content()
	require.Len(t, pending, 1)
	e, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, addr(1), e.Sender)
	e, err = all.Next(t.Context())
	require.NoError(t, err)
	require.True(t, e.Private)
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 9), tx(1, 0, 2)}), hashes(p.Drain(Budget{}).Transactions()))
}

func TestReading(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2), tx(0, 2, 2), tx(1, 0, 3))
	require.Equal(t, 3, p.Size())
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	require.Equal(t, StatusQueued, p.Status(tx(0, 2, 2).Hash()))
	require.Equal(t, StatusUnknown, p.Status(tx(0, 1, 2).Hash()))
	l := p.Drain(Budget{Count: 1})
	require.Equal(t, StatusLeased, p.Status(tx(1, 0, 3).Hash()))
	require.Equal(t, "leased", StatusLeased.String())
	pending, queued := p.Content()
	require.Len(t, pending, 2)
	require.Len(t, queued, 1)
	run, held := p.ContentFrom(addr(0))
	require.Len(t, run, 1)
	require.Len(t, held, 1)
	s := p.Stats()
	require.Equal(t, []int{2, 0, 1, 1, 1, 2, 3}, []int{s.Pending, s.Parked, s.Queued, s.Leased, s.Leases, s.Senders, s.Size()})
	require.Empty(t, p.Candidates()[1:])
	require.NoError(t, l.Release())
	_, known := p.NextNonce(addr(5))
	require.False(t, known)
	require.ErrorIs(t, p.Remove(tx(5, 0, 2).Hash()), ErrNotFound)
}
