package pglog_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/internal/postgres"
)

// TestMain ends the server that most tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if running != nil {
		running.Remove()
	}
	os.Exit(code)
}

var (
	names   atomic.Int64
	running *postgres.Server // the shared server
	shared  = sync.OnceValues(func() (s *postgres.Server, err error) { running, err = postgres.Start(); return running, err })
)

// database returns the connection string of the shared server, and a fresh name of a log.
func database(t *testing.T) (url, name string) {
	t.Helper()
	s, err := shared()
	postgres.Require(t, err)
	return s.URL(), fmt.Sprint("log_", names.Add(1))
}

// newServer starts a server of the test's own.
func newServer(t *testing.T) *postgres.Server {
	t.Helper()
	s, err := postgres.Start()
	if s != nil {
		t.Cleanup(s.Remove)
	}
	postgres.Require(t, err)
	return s
}

// open opens a log, which is closed at the end of the test.
func open(t *testing.T, cfg pglog.Config) *pglog.Log {
	t.Helper()
	l, err := pglog.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// lead opens a log, and waits until it leads.
func lead(t *testing.T, cfg pglog.Config) *pglog.Log {
	t.Helper()
	l := open(t, cfg)
	contents(t, l)
	require.NoError(t, takeLead(t.Context(), l))
	return l
}

// takeLead waits until a process leads.
func takeLead(ctx context.Context, l *pglog.Log) error {
	return l.Lead(ctx, func([]byte) error { return nil }, func() error { return nil })
}

// contents returns the records of a log.
func contents(t *testing.T, l *pglog.Log) (all []string) {
	t.Helper()
	require.NoError(t, l.Replay(func(record []byte) error {
		all = append(all, string(record))
		return nil
	}))
	return all
}

// client returns connections of the test itself.
func client(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
