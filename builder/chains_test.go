package builder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
	bubble.Run(t, testNewChain)
}

func testNewChain(t *testing.T) {
	m := newMachine(t)
	m.run(new(words.Saving), func(ctx context.Context, b *builder.Builder[words.Body]) {
		submit(ctx, t, b, 1, "one")
		require.NoError(t, b.Submit(ctx, []byte("two")))
		require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Latest.Number == 2 }))
		require.EqualValues(t, 1, b.Heads().Finalized.Number)
	})
	next := newMachine(t)
	require.NoError(t, next.log.Replace(contents(t, &m.log)...))
	_, err := next.open(new(words.Saving))
	require.NoError(t, err, "the chain is not followed yet")

	next.cfg.NewChain = true
	_, err = next.open(new(words.Rollup))
	require.Error(t, err, "a rollup without checkpoints")
	for range 2 { // the second one finds everything undone
		b, err := next.open(new(words.Saving))
		require.NoError(t, err)
		require.EqualValues(t, 1, b.Heads().Pending.Number)
	}
	last := new(words.Saving)
	next.run(last, func(ctx context.Context, b *builder.Builder[words.Body]) {
		require.NoError(t, b.Await(ctx, final(2)))
		submit(ctx, t, b, 3, "three")
	})
	require.Equal(t, []string{"one", "two", "three"}, last.State())
}

// TestNewChainKeepsChanges: a change that the rollup makes while the log begins again is not lost.
func TestNewChainKeepsChanges(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		_, err := m.open(new(words.Saving))
		require.NoError(t, err)
		m.cfg.NewChain = true
		rollup := new(adding)
		rollup.BeforeCheckpoint = func() error {
			rollup.BeforeCheckpoint = nil
			records, err := rollup.Checkpoint(t.Context()) // is made before the word
			rollup.Made = records
			return errors.Join(err, rollup.Admit(t.Context(), []byte("late")), rollup.save())
		}
		_, err = m.open(rollup)
		require.NoError(t, err)
		m.cfg.NewChain = false
		again := new(words.Saving)
		m.run(again, func(ctx context.Context, b *builder.Builder[words.Body]) { require.NoError(t, b.Await(ctx, final(1))) })
		require.Equal(t, []string{"late"}, again.State())
	})
}

// adding is a rollup that saves its changes itself.
type adding struct {
	words.Saving
	save func() error
}

// Recovered implements builder.Operations.
func (a *adding) Recovered(_ context.Context, save func() error) error {
	a.save = save
	return nil
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

// TestOneWriteForEachOperation: an operation is one record, and one that Admit refuses leaves no
// trace. A user who submits an operation again gets the answer without another record.
func TestOneWriteForEachOperation(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		b, err := m.open(new(words.Rollup))
		require.NoError(t, err)
		before := len(contents(t, &m.log))
		require.ErrorIs(t, b.Submit(t.Context(), nil), words.ErrWord)
		require.Len(t, contents(t, &m.log), before)
		for range 2 {
			require.NoError(t, b.Submit(t.Context(), []byte("one")))
			require.Len(t, contents(t, &m.log), before+1)
		}
	})
}

// TestChangeBeforeItsBlock: a block can be made of an operation whose write still waits for the
// disk. The log has the operation before the block.
func TestChangeBeforeItsBlock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), &slowLog{}
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Rollup)), m.network)
		require.NoError(t, err)
		m.during(b, func(ctx context.Context) {
			for i := range 20 {
				go func() { _ = b.Submit(ctx, fmt.Append(nil, "word ", i)) }()
			}
			require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number >= 20/3 }))
		})
		logged := make(map[string]bool)
		blocks := 0
		for _, record := range contents(t, &log.Memory) {
			switch record[0] {
			case 'R':
				logged[string(record[1:])] = true
			case 'Q':
				for i := range 20 {
					word := fmt.Sprint("word ", i)
					if bytes.Contains(record, fmt.Appendf(nil, "%q", word)) {
						require.True(t, logged[word], word)
						blocks++
					}
				}
			}
		}
		require.GreaterOrEqual(t, blocks, 18)
	})
}

// TestOneWriteForMany: operations that wait for a write share the next one, and their users are
// answered with it, also if another operation has come since.
func TestOneWriteForMany(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(slowLog)
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Rollup)), m.network)
		require.NoError(t, err)
		var answered atomic.Int32
		submit := func(word string) {
			go func() {
				assert.NoError(t, b.Submit(t.Context(), []byte(word)))
				answered.Add(1)
			}()
			synctest.Wait()
		}
		after := func(wait time.Duration, want int32) {
			time.Sleep(wait)
			synctest.Wait()
			require.Equal(t, want, answered.Load())
		}
		before := len(contents(t, &log.Memory))
		submit("first")
		for i := range 10 {
			submit(fmt.Sprint("word ", i))
		}
		after(time.Second, 1)
		submit("last")
		after(time.Second, 11)
		after(time.Second, 12)
		require.Len(t, contents(t, &log.Memory), before+12)
	})
}

// slowLog is a log whose writes take a second.
type slowLog struct{ journal.Memory }

// Append implements builder.Log.
func (l *slowLog) Append(records ...[]byte) error {
	time.Sleep(time.Second)
	return l.Memory.Append(records...)
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

// TestCheckpointDuringAdmit: checkpoints are made while calls of Admit run and while changes are
// not in the log yet. No operation is lost, and none is executed twice.
func TestCheckpointDuringAdmit(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.CheckpointEvery = 4
		rollup := new(slowlyAdmitting)
		var want []string
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			for i := range 20 {
				want = append(want, fmt.Sprint(i))
				require.NoError(t, b.Submit(ctx, fmt.Append(nil, i)))
				time.Sleep(100 * time.Millisecond)
			}
		})
		require.Positive(t, rollup.during.Load(), "checkpoints during Admit")
		again := new(slowlyAdmitting)
		_, err := m.open(again)
		require.NoError(t, err)
		require.Equal(t, want, append(again.State(), again.Waiting()...))
	})
}

// slowlyAdmitting is a rollup whose Admit returns long after the change. It counts the checkpoints
// in between.
type slowlyAdmitting struct {
	words.Saving
	changed atomic.Bool
	during  atomic.Int64
}

// Admit implements builder.Operations.
func (r *slowlyAdmitting) Admit(ctx context.Context, op []byte) error {
	err := r.Saving.Admit(ctx, op)
	r.changed.Store(true)
	defer r.changed.Store(false)
	time.Sleep(900 * time.Millisecond)
	return err
}

// Checkpoint implements builder.Checkpointer.
func (r *slowlyAdmitting) Checkpoint(ctx context.Context) ([][]byte, error) {
	if r.changed.Load() {
		r.during.Add(1)
	}
	return r.Saving.Checkpoint(ctx)
}
