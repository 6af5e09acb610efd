package pglog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/internal/smalldisk"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/journal"
)

// warnings counts the warnings of a log.
type warnings struct {
	slog.Handler
	n atomic.Int64
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }
func (w *warnings) Handle(context.Context, slog.Record) error        { w.n.Add(1); return nil }

// TestFullDisk: while the disk of the database is full, a write waits, also for longer than
// Patience. The lead does not move, because it is renewed meanwhile. The write succeeds when
// there is room. A log that is closed meanwhile does not wait for it.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smalldisk.Mount(t, "4m")
	s := newServer(t)
	cfg := pglog.DefaultConfig(s.URL(), "full")
	tried := new(warnings)
	cfg.Logger = slog.New(tried)
	const attempts = 11 // with pauses of up to a second
	cfg.Lease, cfg.Patience = time.Second, 2*time.Second
	leader := lead(t, at(cfg, "leader"))
	follower := follow(t, at(cfg, "follower"))
	space := filepath.Join(disk, "space")
	require.NoError(t, os.Mkdir(space, 0o700))
	require.NoError(t, s.Tablespace("small", space))
	require.NoError(t, s.Execute("alter table full_entry set tablespace small"))
	require.NoError(t, leader.Append([]byte("before")))
	ballast := smalldisk.Fill(t, disk, 0)
	written := make(chan error, 1)
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = byte(i * i >> 8) // which PostgreSQL does not compress away
	}
	go func() { written <- leader.Append(large) }()
	wait.Until(t, func() bool { return tried.n.Load() >= attempts || len(written) > 0 }, "%d attempts", attempts)
	require.Empty(t, written)
	holder, err := follower.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, "leader", holder.Address)
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, <-written)
	require.Equal(t, "before", <-follower.read)
	require.Len(t, <-follower.read, len(large))
	require.Empty(t, follower.led, fmt.Sprint("the lead has moved after ", tried.n.Load(), " attempts"))
	smalldisk.Fill(t, disk, 0)
	before := tried.n.Load()
	go func() { written <- leader.Append(large) }()
	wait.Until(t, func() bool { return tried.n.Load() > before }, "an attempt")
	require.NoError(t, leader.Close())
	require.ErrorIs(t, <-written, journal.ErrClosed)
	require.NoError(t, <-follower.led)
}
