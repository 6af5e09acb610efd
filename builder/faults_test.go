package builder_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/submit/journal"
)

// TestAdmitIsRepeated: an operation that is in the log is executed although Admit has failed and
// panicked, and the log keeps the bytes of the time of the call.
func TestAdmitIsRepeated(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, calls := newMachine(t), 0
		rollup := &words.Rollup{BeforeAdmit: func(context.Context) error {
			switch calls++; calls {
			case 1:
				return errors.New("not now")
			case 2:
				panic("by chance")
			}
			return nil
		}}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			op := []byte("one")
			require.NoError(t, b.Submit(ctx, op))
			copy(op, "two")
			require.NoError(t, b.Await(ctx, final(1)))
			require.Equal(t, []string{"one"}, rollup.State())
		})
		// When the log is read again, an operation that cannot be admitted is not forgotten.
		_, err := m.open(&words.Rollup{BeforeAdmit: func(context.Context) error { panic("by chance") }})
		require.ErrorIs(t, err, builder.ErrPanic)
		again := new(words.Rollup)
		_, err = m.open(again)
		require.NoError(t, err)
		require.Equal(t, []string{"one"}, again.State())
	})
}

// TestHungAdmit: a call of Admit that does not end holds up neither blocks nor other operations,
// also if a checkpoint is due.
func TestHungAdmit(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, hang := newMachine(t), make(chan struct{})
		m.cfg.CheckpointEvery = 10
		rollup := new(words.Saving)
		var calls atomic.Int64
		rollup.BeforeAdmit = func(context.Context) error {
			if calls.Add(1) == 1 {
				<-hang
			}
			return nil
		}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			ended := make(chan error, 1)
			go func() { ended <- b.Submit(ctx, []byte("first")) }()
			time.Sleep(time.Minute)
			for i, word := range []string{"second", "third", "fourth"} {
				submit(ctx, t, b, uint64(i)+1, word)
			}
			close(hang)
			require.NoError(t, <-ended)
			require.NoError(t, b.Await(ctx, final(4)))
		})
	})
}

// TestFinalFails: blocks are made while Final fails, and it is called for all of them afterwards,
// also after a restart.
func TestFinalFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, fails := newMachine(t), new(atomic.Bool)
		fails.Store(true)
		m.cfg.CheckpointEvery = 10
		rollup := &words.Saving{BeforeFinal: func() error {
			if fails.Load() {
				return errors.New("the index is down")
			}
			return nil
		}}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			submit(ctx, t, b, 2, "two")
			require.Empty(t, rollup.Finals())
			fails.Store(false)
			bubble.Await(t, time.Second, func() bool { return len(rollup.Finals()) == 2 }, "Final is called again")
			fails.Store(true)
			submit(ctx, t, b, 3, "three")
		})
		again := new(words.Saving)
		_, err := m.open(again)
		require.NoError(t, err)
		require.Contains(t, again.Finals(), uint64(3))
	})
}

// failing is a log that fails from a moment on, or refuses records of a size.
type failing struct {
	journal.Memory
	now  atomic.Bool
	most atomic.Int64
}

func (f *failing) Append(records ...[]byte) error {
	if f.now.Load() {
		return errors.New("the disk is full")
	}
	return f.Memory.Append(records...)
}

func (f *failing) Replace(records ...[]byte) error {
	for _, r := range records {
		if most := int(f.most.Load()); most > 0 && len(r) > most {
			return journal.ErrTooLarge
		}
	}
	return f.Memory.Replace(records...)
}

// TestLogFails: Run ends at the first write that fails, and nothing is accepted any more.
func TestLogFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(failing)
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Rollup)), m.network)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- b.Run(t.Context()) }()
		submit(t.Context(), t, b, 1, "one")
		log.now.Store(true)
		require.ErrorIs(t, b.Submit(t.Context(), []byte("two")), builder.ErrLog)
		log.now.Store(false)
		require.ErrorIs(t, b.Submit(t.Context(), []byte("three")), builder.ErrLog)
		require.ErrorIs(t, <-ended, builder.ErrLog)
		require.ErrorIs(t, b.Await(t.Context(), final(2)), builder.ErrLog)
	})
}

// TestLargeCheckpoint: a checkpoint that the log refuses costs a longer log.
func TestLargeCheckpoint(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(failing)
		m.cfg.CheckpointEvery = 10
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Saving)), m.network)
		require.NoError(t, err)
		log.most.Store(1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		submit(ctx, t, b, 1, "one")
		submit(ctx, t, b, 2, "two")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
