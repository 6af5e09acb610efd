package pglog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
)

// TestMain ends the servers.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range slices.Backward(servers) {
		s.control("-m", "immediate", "stop")
		_ = os.RemoveAll(s.dir)
	}
	os.Exit(code)
}

var (
	servers    []*server
	names      atomic.Int64
	errMissing = errors.New("not installed")
)

// server is a PostgreSQL of the tests behind a Unix socket.
type server struct{ bin, dir string }

// postgres starts the server that most tests share.
var postgres = sync.OnceValues(func() (*server, error) { return newServer() })

// newServer creates a database and starts it with more options.
func newServer(options ...string) (*server, error) {
	s, err := newFolder()
	if err != nil {
		return nil, err
	}
	if err := s.run("initdb", "-D", s.data(), "-U", "jamq", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	return s, s.start(options...)
}

// newFolder finds the programs in the folder that JAMQ_POSTGRES_BIN names, in the path, or at
// Debian's newest version.
func newFolder() (*server, error) {
	bin := os.Getenv("JAMQ_POSTGRES_BIN")
	if path, err := exec.LookPath("initdb"); bin == "" && err == nil {
		bin = filepath.Dir(path)
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); bin == "" && len(found) > 0 {
		bin = filepath.Dir(slices.Max(found))
	}
	if bin == "" {
		return nil, errMissing
	}
	dir, err := os.MkdirTemp("", "jamq-pglog-")
	if err != nil {
		return nil, err
	}
	s := &server{bin, dir}
	servers = append(servers, s)
	return s, nil
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) url() string { return "postgres://jamq@/postgres?host=" + s.dir }

// run runs a program of PostgreSQL.
func (s *server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	if err := unprivileged(cmd, s.dir); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// control waits until the server answers, or until it has ended.
func (s *server) control(args ...string) error {
	return s.run("pg_ctl", append([]string{"-D", s.data(), "-w", "-t", "3600"}, args...)...)
}

func (s *server) start(options ...string) error {
	all := "-h '' -k " + s.dir + " -c max_connections=100"
	for _, o := range options {
		all += " -c " + o
	}
	return s.control("-l", filepath.Join(s.dir, "log"), "-o", all, "start")
}

// database returns the connection string of the shared server, and a fresh name of a log. Without
// the programs the test skips; with JAMQ_REQUIRE_POSTGRES set it fails.
func database(t *testing.T) (url, name string) {
	t.Helper()
	s, err := postgres()
	skipIfMissing(t, err)
	return s.url(), fmt.Sprint("log_", names.Add(1))
}

func skipIfMissing(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errMissing) && os.Getenv("JAMQ_REQUIRE_POSTGRES") == "" {
		t.Skip("no PostgreSQL here: nothing of this package is tested")
	}
	require.NoError(t, err, "PostgreSQL")
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
