package txpool

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// errNoDisk is the error of an account that cannot be read.
var errNoDisk = errors.New("no disk")

// blockOf returns a block of some transactions.
func blockOf(txs ...*types.Transaction) Block { return Block{Transactions: txs} }

// returned adds transactions, leases all that can run, and releases them: they
// came back and are exempt from the caps.
func returned(t *testing.T, p *Pool, txs ...*types.Transaction) {
	t.Helper()
	add(t, p, txs...)
	require.NoError(t, p.Drain(Budget{}).Release())
	require.Equal(t, len(txs), p.Stats().Exempt)
	require.NoError(t, p.Check())
}

// weigh returns what transactions take in memory.
func weigh(txs ...*types.Transaction) (bytes uint64) {
	for _, tx := range txs {
		bytes += memoryOf(tx)
	}
	return bytes
}

// narrow limits the bytes of the transactions that can run.
func narrow(bytes uint64) func(*Config) {
	return func(c *Config) { c.MaxTxSize, c.MaxBytes = 150, bytes }
}

// A newcomer is refused if every transaction that it could displace is better.
// A worse one that came back is no victim.
func TestReturnedIsNoVictim(t *testing.T) {
	p := newPool(t, newWorld(), tiny(2, 2))
	returned(t, p, tx(0, 0, 2))
	add(t, p, tx(1, 0, 5), tx(2, 0, 6))
	refuse(t, p, tx(3, 0, 4), ErrPoolFull, "want ≥ 5000000001")
	add(t, p, tx(3, 0, 7))
	require.Equal(t, "p-pp", statuses(p, 0, 1)+statuses(p, 1, 1)+statuses(p, 2, 1)+statuses(p, 3, 1))
}

// Transactions that came back do not count towards the cap of bytes: newcomers
// have all of it.
func TestReturnedTakesNoBytesOfTheCap(t *testing.T) {
	newcomers := []*types.Transaction{padded(1, 0, 500), padded(2, 0, 500)}
	p := newPool(t, newWorld(), func(c *Config) { c.MaxTxSize, c.MaxBytes = 1000, weigh(newcomers...) })
	returned(t, p, padded(0, 0, 500))
	add(t, p, newcomers...)
	require.Equal(t, 3, p.Stats().Pending)
	refuse(t, p, padded(3, 0, 1), ErrPoolFull)
}

// A transaction of a failed block that is still in the pool becomes exempt from
// the caps, also if it waits behind a gap.
func TestReturnedIsInThePool(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxPending, c.MaxQueued = 1, 1 })
	add(t, p, tx(0, 0, 2), tx(1, 1, 2))
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 0, 2), tx(1, 1, 2))}}))
	require.NoError(t, p.Check())
	require.Equal(t, 2, p.Stats().Exempt)
	add(t, p, tx(2, 0, 9), tx(3, 1, 9))
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	require.Equal(t, StatusQueued, p.Status(tx(1, 1, 2).Hash()))
}

// A transaction that is held aside and returns with another failed block is in
// the pool only, and not held any more.
func TestHeldReturnsWithAnotherBlock(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	hold(t, w, p, tx(0, 0, 2))
	delete(w.broken, addr(0))
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 0, 2))}}))
	require.Empty(t, p.Held())
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	require.NoError(t, p.Check())
}

// A transaction that was held aside is in the pool only after it came back, and
// the records of a new journal have it once.
func TestHeldIsForgottenWhenAdmitted(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	hold(t, w, p, tx(0, 0, 2))
	delete(w.broken, addr(0))
	require.Zero(t, p.CleanupExpired())
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	require.Empty(t, p.Held())
	require.NoError(t, p.Check())
	dump := new(memory)
	require.NoError(t, p.Rotate(dump))
	copies := 0
	for _, record := range dump.records {
		if record[0] == recordAdded {
			copies++
		}
	}
	require.Equal(t, 1, copies)
}

// A private transaction stays private while it is held aside and when it comes
// back. It does not matter whether its account cannot be read or a check refuses
// it.
func TestHeldStaysPrivate(t *testing.T) {
	extra := new(uint256.Int)
	for name, trouble := range map[string]func(*world, *refusing){
		"account":    func(w *world, _ *refusing) { w.broken[addr(0)] = errNoDisk },
		"check":      func(_ *world, r *refusing) { r.next = 1000 },
		"inspection": func(*world, *refusing) { extra.SetAllOne() },
	} {
		t.Run(name, func(t *testing.T) {
			w, r := newWorld(), new(refusing)
			var events []Event
			p := newPool(t, w, func(c *Config) {
				r.config(c)
				c.Observe = func(e Event) { events = append(events, e) }
				c.ExtraCost = func(*types.Transaction) *uint256.Int { return extra }
			})
			secret, lost := tx(0, 0, 2), tx(0, 1, 2)
			require.NoError(t, p.AddPrivate(secret))
			require.NoError(t, p.AddPrivate(lost))
			require.NoError(t, p.Drain(Budget{}).Commit())
			trouble(w, r)
			require.Len(t, p.Reset(Head{Reverted: []Block{blockOf(secret, lost)}}), 2)
			r.next = 0
			extra.Clear()
			delete(w.broken, addr(0))
			p.Reset(Head{})
			require.Equal(t, StatusPending, p.Status(secret.Hash()))
			require.Empty(t, p.Candidates())
			for _, e := range events {
				require.True(t, e.Private || e.Tx == nil, "%v", e.Kind)
			}
		})
	}
}

// The event of a private transaction that is held aside and dropped is private.
func TestHeldDropIsPrivate(t *testing.T) {
	w := newWorld()
	var dropped []Event
	p := newPool(t, w, func(c *Config) {
		c.Observe = func(e Event) {
			if e.Kind == Dropped {
				dropped = append(dropped, e)
			}
		}
	})
	require.NoError(t, p.AddPrivate(tx(0, 0, 2)))
	require.NoError(t, p.Drain(Budget{}).Commit())
	w.broken[addr(0)] = errNoDisk
	require.Len(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 0, 2))}}), 1)
	delete(w.broken, addr(0))
	w.nonce(0, 1)
	p.CleanupExpired()
	require.Len(t, dropped, 1)
	require.True(t, dropped[0].Private)
}

// The lifetime of a transaction that is held aside begins when it was first
// admitted, not with the restart. If its nonce is used up when the lifetime is
// over, the nonce is the reason.
func TestHeldLifetime(t *testing.T) {
	for _, used := range []bool{false, true} {
		w, m := newWorld(), new(memory)
		add(t, newPool(t, w, journaled(m)), tx(0, 0, 2))
		w.advance(40 * time.Minute)
		w.broken[addr(0)] = errNoDisk
		p := newPool(t, w, journaled(m))
		restored, err := p.Restore(m.replay)
		require.NoError(t, err)
		require.Len(t, restored.Displaced, 1)
		w.advance(20*time.Minute - 1)
		require.Zero(t, p.CleanupExpired())
		w.advance(1)
		want := ErrExpired
		if used {
			delete(w.broken, addr(0))
			w.nonce(0, 1)
			want = ErrNonceTooLow
		}
		require.Equal(t, 1, p.CleanupExpired())
		d, known := p.Departure(tx(0, 0, 2).Hash())
		require.True(t, known)
		require.ErrorIs(t, d.Reason, want)
	}
}

// Held returns the newest reason.
func TestHeldReason(t *testing.T) {
	w, r := newWorld(), new(refusing)
	p := newPool(t, w, r.config)
	hold(t, w, p, tx(0, 0, 2))
	require.ErrorIs(t, p.Held()[0].Err, ErrState)
	delete(w.broken, addr(0))
	r.next = 1000
	p.Reset(Head{})
	require.Len(t, p.Held(), 1)
	require.ErrorContains(t, p.Held()[0].Err, "not now")
}

// Transactions that are held aside are tried again in the order in which they
// came.
func TestHeldAreTriedInOrder(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	for i := range 4 {
		w.broken[addr(i)] = errNoDisk
		require.Len(t, p.Reset(Head{Reverted: []Block{blockOf(tx(i, 0, 2))}}), 1)
		w.advance(time.Second)
	}
	clear(w.broken)
	require.Empty(t, p.Reset(Head{}))
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 2), tx(1, 0, 2), tx(2, 0, 2), tx(3, 0, 2)}), hashes(p.Candidates()))
}

// A transaction that comes back from being held takes the balance that a later
// one of its sender counted on. Both stay: the later one waits for the balance.
func TestHeldReturnsIntoAShortBalance(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, unit)
	hold(t, w, p, tx(0, 0, 10))
	delete(w.broken, addr(0))
	add(t, p, tx(0, 1, 10))
	require.Zero(t, p.CleanupExpired())
	require.NoError(t, p.Check())
	require.Equal(t, "pk", statuses(p, 0, 2))
	w.balance(0, unit+1)
	require.Empty(t, p.Reset(Head{}))
	require.Equal(t, "pk", statuses(p, 0, 2))
}

// A private transaction that a newcomer displaced, and that is in the pool again
// because the journal refused the newcomer, is private as before.
func TestDisplacedStaysPrivate(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, func(c *Config) { journaled(m)(c); c.MaxPending = 1 })
	require.NoError(t, p.AddPrivate(tx(0, 0, 2)))
	m.broken = errNoDisk
	require.ErrorIs(t, p.Add(tx(1, 0, 9)), ErrJournal)
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
	require.Empty(t, p.Candidates())
}

// If a base fee parks more than may be parked, none goes: they could run before.
func TestParkedAboveTheCap(t *testing.T) {
	p := newPool(t, newWorld(), tiny(4, 1))
	returned(t, p, tx(0, 0, 2))
	add(t, p, tx(1, 0, 3), tx(2, 0, 4))
	p.Reset(Head{BaseFee: weiOf(8)})
	require.NoError(t, p.Check())
	require.Equal(t, "kkk", statuses(p, 0, 1)+statuses(p, 1, 1)+statuses(p, 2, 1))
}

// A balance pays for leased transactions first: an earlier transaction that comes
// back waits if the rest does not cover it.
func TestLeasedIsPaidFirst(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, 2*unit)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	p.Drain(Budget{Count: 1})
	w.balance(0, unit)
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 0, 10))}}))
	require.NoError(t, p.Check())
	require.Equal(t, "kl", statuses(p, 0, 2))
}

// A transaction that the balance does not cover after a restart stays, and waits
// for the balance.
func TestRestartWithASmallerBalance(t *testing.T) {
	w, m := newWorld(), new(memory)
	add(t, newPool(t, w, journaled(m)), tx(0, 0, 10), tx(0, 1, 10))
	w.balance(0, unit)
	p := newPool(t, w, journaled(m))
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.Equal(t, "pk", statuses(p, 0, 2))
	w.balance(0, unit+1)
	require.Empty(t, p.Reset(Head{}))
	require.NoError(t, p.Check())
	require.Equal(t, "pk", statuses(p, 0, 2))
}

// The replacement of a transaction that came back needs no room in the caps. It
// evicts nothing, also if it makes the transaction run.
func TestReplacementOfReturned(t *testing.T) {
	p := newPool(t, newWorld(), tiny(2, 2))
	returned(t, p, capped(0, 0, 2, 2))
	p.Reset(Head{BaseFee: weiOf(3)})
	add(t, p, tx(1, 0, 8), tx(2, 0, 8))
	add(t, p, capped(0, 0, 4, 6))
	require.Equal(t, "ppp", statuses(p, 0, 1)+statuses(p, 1, 1)+statuses(p, 2, 1))
	require.Equal(t, 1, p.Stats().Exempt)
}

// A replacement that runs, of a transaction that was parked, needs the room of a
// newcomer.
func TestReplacementThatUnparksNeedsRoom(t *testing.T) {
	p := newPool(t, newWorld(), tiny(1, 2))
	p.Reset(Head{BaseFee: weiOf(3)})
	add(t, p, capped(0, 0, 2, 2), tx(1, 0, 20))
	refuse(t, p, capped(0, 0, 4, 8), ErrPoolFull)
	require.Equal(t, "kp", statuses(p, 0, 1)+statuses(p, 1, 1))
	add(t, p, capped(0, 0, 30, 40))
	require.Equal(t, "p-", statuses(p, 0, 1)+statuses(p, 1, 1))
}

// The caps of bytes may be filled to the last byte. A replacement of the same
// size fits then, and one byte more does not.
func TestBytesToTheLast(t *testing.T) {
	first, second := padded(0, 0, 10), padded(1, 0, 10)
	p := newPool(t, newWorld(), narrow(weigh(first, second)))
	add(t, p, first, second)
	refuse(t, p, tx(2, 0, 1), ErrPoolFull)
	same := sign(0, &types.LegacyTx{GasPrice: weiOf(3), Gas: first.Gas(), To: &common.Address{1}, Data: first.Data()})
	require.Equal(t, weigh(first), weigh(same))
	add(t, p, same)
	require.Equal(t, "pp", statuses(p, 0, 1)+statuses(p, 1, 1))
}

// A held transaction counts with its bytes towards the bound of the pool.
func TestHeldTakesBytes(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.MaxTxSize, c.MaxBytes = 1300, 3000 })
	w.broken[addr(0)] = errNoDisk
	big := []*types.Transaction{padded(0, 0, 900), padded(0, 1, 900), padded(0, 2, 900), padded(0, 3, 900)}
	require.Len(t, p.Reset(Head{Reverted: []Block{blockOf(big...)}}), len(big))
	add(t, p, tx(1, 0, 2))
	refuse(t, p, padded(2, 0, 100), ErrPoolFull)
	require.Less(t, weigh(tx(1, 0, 2), padded(2, 0, 100)), uint64(3000))
}

// A pool that is above its bound after a restart with smaller caps takes
// replacements of the same size: they make it no larger.
func TestReplacementAboveTheBound(t *testing.T) {
	for name, smaller := range map[string]func(*Config){
		"count": tiny(1, 1),
		"bytes": func(c *Config) {
			c.MaxTxSize, c.MaxBytes = 150, 150
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := newWorld(), new(memory)
			p := newPool(t, w, journaled(m))
			for i := range 8 {
				add(t, p, tx(i, 0, 2))
			}
			p = newPool(t, w, func(c *Config) { smaller(c); c.Journal = m })
			_, err := p.Restore(m.replay)
			require.NoError(t, err)
			require.Equal(t, 8, p.Size())
			refuse(t, p, tx(8, 0, 9), ErrPoolFull)
			require.Equal(t, weigh(tx(7, 0, 2)), weigh(tx(7, 0, 3)))
			add(t, p, tx(7, 0, 3))
			require.Equal(t, 8, p.Size())
		})
	}
}

// A private transaction that is held aside by a restart stays private, and its
// lifetime goes on. It does not matter whether its account cannot be read or a
// check refuses it.
func TestHeldByARestart(t *testing.T) {
	for name, trouble := range map[string]func(*world, *refusing){
		"account": func(w *world, _ *refusing) { w.broken[addr(0)] = errNoDisk },
		"check":   func(_ *world, r *refusing) { r.next = 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			w, r, m := newWorld(), new(refusing), new(memory)
			change := func(c *Config) { journaled(m)(c); r.config(c) }
			p := newPool(t, w, change)
			require.NoError(t, p.AddPrivate(tx(0, 0, 2)))
			trouble(w, r)
			for range 2 {
				w.advance(20 * time.Minute)
				p = newPool(t, w, change)
				_, err := p.Restore(m.replay)
				require.NoError(t, err)
				require.Equal(t, StatusHeld, p.Status(tx(0, 0, 2).Hash()))
			}
			r.next = 0
			clear(w.broken)
			require.Empty(t, p.Reset(Head{}))
			require.Equal(t, StatusPending, p.Status(tx(0, 0, 2).Hash()))
			require.Empty(t, p.Candidates())
			w.advance(20 * time.Minute)
			require.Equal(t, 1, p.CleanupExpired())
		})
	}
}

// The event of a private transaction that a check refuses after a restart, until
// its lifetime is over, is private and has its age.
func TestHeldDropAfterARestartIsPrivate(t *testing.T) {
	w, r, m := newWorld(), new(refusing), new(memory)
	var dropped []Event
	change := func(c *Config) {
		journaled(m)(c)
		r.config(c)
		c.Observe = func(e Event) {
			if e.Kind == Dropped {
				dropped = append(dropped, e)
			}
		}
	}
	require.NoError(t, newPool(t, w, change).AddPrivate(tx(0, 0, 2)))
	r.next = 1000
	p := newPool(t, w, change)
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	w.advance(time.Hour)
	require.Equal(t, 1, p.CleanupExpired())
	require.Len(t, dropped, 1)
	require.True(t, dropped[0].Private)
	require.Equal(t, time.Hour, dropped[0].Age)
}
