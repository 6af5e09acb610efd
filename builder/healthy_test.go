package builder_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
)

// lines is a log that may be written concurrently.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// slowly is a rollup whose Admit waits for one operation.
type slowly struct {
	words.Saving
	release chan struct{}
}

// Admit implements builder.Rollup.
func (s *slowly) Admit(ctx context.Context, op []byte) error {
	if string(op) == "slow" {
		<-s.release
	}
	return s.Saving.Admit(ctx, op)
}

// TestFinalityDuringCheckpointIsNoError: a block that becomes final while a checkpoint waits for
// a call of Admit is no error, and the checkpoint is made after it.
func TestFinalityDuringCheckpointIsNoError(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log, r := newMachine(t), new(lines), &slowly{release: make(chan struct{})}
		m.cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		m.cfg.CheckpointEvery, m.cfg.Retry = 6, time.Hour
		m.run(r, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.NoError(t, b.Submit(ctx, []byte("one")))
			admitted := make(chan error, 1)
			go func() { admitted <- b.Submit(ctx, []byte("slow")) }()
			require.NoError(t, b.Await(ctx, final(1)))
			synctest.Wait()
			close(r.release)
			require.NoError(t, <-admitted)
			require.NoError(t, b.Await(ctx, final(2)))
		})
		require.NotContains(t, log.text.String(), "level=ERROR")
		require.Contains(t, log.text.String(), "builder: checkpoint")
	})
}

// TestBusy: while a write to the log hangs, operations wait at first, and later ones are refused at
// once and have no effect, so that the memory of the builder does not grow with them.
func TestBusy(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		h := &troubled{method: "Log.Append", gate: make(chan struct{})}
		h.fault = func(context.Context) error { <-h.gate; return nil }
		b, err := builder.Open(t.Context(), m.cfg, h, builder.Rollup[words.Body](h), m.network)
		require.NoError(t, err)
		m.during(b, func(ctx context.Context) {
			submit(ctx, t, b, 1, "one")
			h.on.Store(true)
			waits := make(chan error, 1)
			go func() { waits <- b.Submit(ctx, []byte("two")) }()
			time.Sleep(4 * time.Second)
			require.NoError(t, b.Busy())
			time.Sleep(2 * time.Second)
			refused := make(chan error, 100)
			for range cap(refused) {
				go func() { refused <- b.Submit(ctx, []byte("three")) }()
			}
			synctest.Wait()
			answered := len(refused)
			require.Empty(t, waits)
			h.on.Store(false)
			close(h.gate)
			require.Equal(t, cap(refused), answered)
			for range answered {
				require.ErrorIs(t, <-refused, builder.ErrBusy)
			}
			require.NoError(t, <-waits)
			require.NoError(t, b.Await(ctx, final(2)))
			submit(ctx, t, b, 3, "three")
		})
	})
}
