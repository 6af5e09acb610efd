package builder_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
)

// TestNewChain: if the JAM chain has ended, blocks that were final stay, and the operations
// of the others are executed once on the next chain.
func TestNewChain(t *testing.T) {
	for name, rollup := range map[string]func() builder.Rollup[words.Body]{
		"checkpoints": func() builder.Rollup[words.Body] { return new(words.Saving) },
		"records":     func() builder.Rollup[words.Body] { return new(words.Recording) },
	} {
		t.Run(name, func(t *testing.T) { bubble.Run(t, func(t *testing.T) { testNewChain(t, rollup) }) })
	}
}

func testNewChain(t *testing.T, rollup func() builder.Rollup[words.Body]) {
	m := newMachine(t)
	m.run(rollup(), func(ctx context.Context, b *builder.Builder[words.Body]) {
		submit(ctx, t, b, 1, "one")
		require.NoError(t, b.Submit(ctx, []byte("two")))
		require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Latest.Number == 2 }))
		require.EqualValues(t, 1, b.Heads().Finalized.Number)
	})
	next := newMachine(t)
	require.NoError(t, next.log.Replace(contents(t, &m.log)...))
	_, err := next.open(rollup())
	require.NoError(t, err, "the chain is not followed yet")

	next.cfg.NewChain = true
	_, err = next.open(new(words.Rollup))
	require.Error(t, err, "a rollup without checkpoints")
	for range 2 { // the second one finds everything undone
		b, err := next.open(rollup())
		require.NoError(t, err)
		require.EqualValues(t, 1, b.Heads().Pending.Number)
	}
	last := rollup()
	next.run(last, func(ctx context.Context, b *builder.Builder[words.Body]) {
		require.NoError(t, b.Await(ctx, final(2)))
		submit(ctx, t, b, 3, "three")
	})
	require.Equal(t, []string{"one", "two", "three"}, last.(interface{ State() []string }).State())
}

// TestNewChainKeepsRecords: a record that is appended while the log begins again is not lost.
func TestNewChainKeepsRecords(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		_, err := m.open(new(words.Recording))
		require.NoError(t, err)
		m.cfg.NewChain = true
		rollup := new(words.Recording)
		rollup.BeforeCheckpoint = func() error {
			rollup.BeforeCheckpoint = nil
			records, err := rollup.Checkpoint(t.Context()) // is made before the word
			rollup.Made = records
			return errors.Join(err, rollup.Admit(t.Context(), []byte("late")))
		}
		_, err = m.open(rollup)
		require.NoError(t, err)
		m.cfg.NewChain = false
		again := new(words.Recording)
		m.run(again, func(ctx context.Context, b *builder.Builder[words.Body]) { require.NoError(t, b.Await(ctx, final(1))) })
		require.Equal(t, []string{"late"}, again.State())
	})
}

// contents returns the records of a log.
func contents(t *testing.T, log *journal.Memory) (all [][]byte) {
	t.Helper()
	require.NoError(t, log.Replay(func(record []byte) error {
		all = append(all, append([]byte{}, record...))
		return nil
	}))
	return all
}

// TestFirstNumber: a rollup with an empty log goes on after its last block.
func TestFirstNumber(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.Queue.FirstNumber = 1000
		for _, word := range []string{"one", "two"} { // the number is in the log
			m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
				number := b.Heads().Pending.Number + 1
				require.GreaterOrEqual(t, number, uint64(1000))
				submit(ctx, t, b, number, word)
			})
			m.cfg.Queue.FirstNumber = 1
		}
	})
}

// TestRecorder: a rollup that keeps its own records answers for itself, and has them after
// a restart.
func TestRecorder(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		b, err := m.open(new(words.Recording))
		require.NoError(t, err)
		before := len(contents(t, &m.log))
		require.ErrorIs(t, b.Submit(t.Context(), []byte("1")), words.ErrDigit)
		require.Len(t, contents(t, &m.log), before, "a refused operation leaves no trace")
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		require.Len(t, contents(t, &m.log), before+1)

		_, err = m.open(new(words.Saving))
		require.ErrorIs(t, err, builder.ErrOtherRollup, "its records cannot be read")
		rollup := new(words.Recording)
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.NoError(t, b.Await(ctx, final(1)))
		})
		require.Equal(t, []string{"one"}, rollup.State())
	})
}

// TestQueueIsSeen: the host sees the bundles, and can give one up.
func TestQueueIsSeen(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newFaultyMachine(t, func(c *jamtest.Config) { c.LossProbability = 1 })
		rollup := new(words.Rollup)
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.NoError(t, b.Submit(ctx, []byte("one")))
			require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Pending.Number == 1 }))
			stats, err := b.Stats(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 2, stats.Next)
			info, found, err := b.Info(ctx, 1)
			require.NoError(t, err)
			require.True(t, found)
			require.EqualValues(t, 1, info.Number)
			require.NoError(t, b.Resume(ctx))
			before := b.Heads().Pending
			require.NoError(t, b.GiveUp(ctx, 1, "an operator's order"))
			require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Pending.Number == 1 && h.Pending.Hash != before.Hash }))
		})
		require.Equal(t, []string{"one"}, rollup.State())
	})
}

// TestSetCores: a running builder uses other cores from then on, also after a restart.
func TestSetCores(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.Queue.Cores = []jamq.CoreIndex{0}
		core := func(ctx context.Context, b *builder.Builder[words.Body], number uint64) jamq.CoreIndex {
			submit(ctx, t, b, number, fmt.Sprint("word ", number))
			info, _, err := b.Info(ctx, number)
			require.NoError(t, err)
			return info.Core
		}
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.EqualValues(t, 0, core(ctx, b, 1))
			require.Error(t, b.SetCores(ctx, []jamq.CoreIndex{1, 1}))
			require.Error(t, b.SetCores(ctx, nil))
			require.NoError(t, b.SetCores(ctx, []jamq.CoreIndex{1}))
			require.EqualValues(t, 1, core(ctx, b, 2))
		})
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.EqualValues(t, 1, core(ctx, b, 3))
		})
	})
}

// TestNoCheckpointDuringAdmit: a checkpoint has no change of a Recorder whose record the log may
// still refuse: it begins when the calls of Admit have ended.
func TestNoCheckpointDuringAdmit(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(failing)
		m.cfg.CheckpointEvery = 4
		rollup := &slowRecorder{}
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](rollup), m.network)
		require.NoError(t, err)
		m.during(b, func(ctx context.Context) {
			for i := range 20 {
				require.NoError(t, b.Submit(ctx, fmt.Append(nil, i)))
				time.Sleep(100 * time.Millisecond)
			}
		})
		require.Positive(t, rollup.checkpoints.Load())
		require.Zero(t, rollup.between.Load())
	})
}

// slowRecorder is a builder.Recorder that counts the checkpoints between a change and its record.
type slowRecorder struct {
	words.Saving
	record               func(...[]byte) error
	changing             atomic.Bool
	checkpoints, between atomic.Int64
}

// Admit implements builder.Rollup.
func (r *slowRecorder) Admit(_ context.Context, op []byte) error {
	r.changing.Store(true)
	defer r.changing.Store(false)
	r.Wait(string(op))
	time.Sleep(900 * time.Millisecond)
	return r.record(op)
}

// Replay implements builder.Recorder.
func (r *slowRecorder) Replay(context.Context, []byte) error { return nil }

// Recovered implements builder.Recorder.
func (r *slowRecorder) Recovered(_ context.Context, record func(...[]byte) error) error {
	r.record = record
	return nil
}

// Checkpoint implements builder.Checkpointer.
func (r *slowRecorder) Checkpoint(ctx context.Context) ([][]byte, error) {
	r.checkpoints.Add(1)
	if r.changing.Load() {
		r.between.Add(1)
	}
	return r.Saving.Checkpoint(ctx)
}
