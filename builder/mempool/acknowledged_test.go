package mempool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/txpool"
)

// slowLog is a log whose writes take a second.
type slowLog struct{ journal.Memory }

// Append implements builder.Log.
func (l *slowLog) Append(records ...[]byte) error {
	time.Sleep(time.Second)
	return l.Memory.Append(records...)
}

// slow is a builder on a slow log.
type slow struct {
	*payments
	log     *slowLog
	network *simnet.Network
	builder *builder.Builder[batch]
}

func newSlow(t *testing.T, change func(*txpool.Config, *hooked)) *slow {
	network, err := simnet.Tiny(time.Second, 7, nil)
	require.NoError(t, err)
	s := &slow{newOpened(t, change), new(slowLog), network, nil}
	s.builder, err = builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), s.log, builder.Rollup[batch](s.payments), network)
	require.NoError(t, err)
	return s
}

// logged returns the number of transactions that wait after a restart now.
func (s *slow) logged(t *testing.T) int {
	again := newOpened(t, nil)
	_, err := builder.Open(t.Context(), builder.DefaultConfig(s.network.Spec()), &s.log.Memory, builder.Rollup[batch](again), s.network)
	require.NoError(t, err)
	return again.Size()
}

// TestNoAnswerAfterPanic: the pool is broken by a panic while a block is applied, and transactions
// wait for the log. Their users get no answer that the log does not keep, and Run ends.
func TestNoAnswerAfterPanic(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		var s *slow
		answers, panicked := make(chan error, 2), false
		s = newSlow(t, func(c *txpool.Config, _ *hooked) {
			c.Observe = func(e txpool.Event) {
				if e.Kind != txpool.Included || panicked {
					return
				}
				panicked = true
				for _, user := range []string{"carol", "bob"} { // one writes, and one waits
					go func() { answers <- s.builder.Submit(context.Background(), pay(user, 0)) }()
					time.Sleep(10 * time.Millisecond)
				}
				panic("by chance")
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { _ = s.network.Run(ctx, nil); ended <- nil }()
		ran := make(chan error, 1)
		go func() { ran <- s.builder.Run(ctx) }()
		require.NoError(t, s.builder.Submit(ctx, pay("alice", 0)))
		acknowledged := 0
		for range cap(answers) {
			if <-answers == nil {
				acknowledged++
			}
		}
		require.ErrorIs(t, <-ran, builder.ErrLog)
		cancel()
		<-ended
		require.GreaterOrEqual(t, s.logged(t), acknowledged)
		require.Less(t, acknowledged, 2, "one of them is not in the log")
	})
}

// TestKnownIsInTheLog: a user who submits a transaction again learns that it is known when the log
// has it, and not before.
func TestKnownIsInTheLog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s := newSlow(t, nil)
		again := map[string]func() error{
			"Submit": func() error { return s.builder.Submit(t.Context(), pay("alice", 0)) },
			"AddRaw": func() error { _, err := s.AddRaw(pay("alice", 0)); return err },
			"AddAllRaw": func() error {
				_, errs := s.AddAllRaw([][]byte{pay("alice", 0)})
				return errs[0]
			},
		}
		first := make(chan error, 1)
		go func() { first <- s.builder.Submit(t.Context(), pay("alice", 0)) }()
		synctest.Wait()
		known := make(chan error, len(again))
		for _, add := range again {
			go func() { known <- add() }()
		}
		synctest.Wait()
		require.Empty(t, known)
		for range again {
			require.ErrorIs(t, <-known, txpool.ErrAlreadyKnown)
			require.Equal(t, 1, s.logged(t))
		}
		require.NoError(t, <-first)
	})
}

// TestObserverRemoves: an observer may remove a transaction that returns with an undone block.
func TestObserverRemoves(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		var r *payments
		undoing := false
		r, b := applied(t, func(c *txpool.Config, _ *hooked) {
			c.Observe = func(e txpool.Event) {
				if undoing && e.Admitted {
					require.NoError(t, r.Remove(e.Tx.Hash()))
				}
			}
		})
		undoing = true
		require.NoError(t, r.Undo(t.Context(), b))
		require.Zero(t, r.Size())
	})
}
