package riverjobs_test

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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/internal/wait"
)

// TestMain ends the servers, and lets the test binary be a worker that TestKill kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("JAMQ_TEST_CHAIN"); url != "" {
		fmt.Fprintln(os.Stderr, work(url, os.Getenv("JAMQ_TEST_REDIS"), os.Getenv("JAMQ_TEST_POSTGRES"), os.Getenv("JAMQ_TEST_SCHEMA")))
		os.Exit(1)
	}
	code := m.Run()
	if stopPostgres != nil {
		stopPostgres()
	}
	os.Exit(code)
}

var (
	schemas      atomic.Int64
	stopPostgres func()
	errMissing   = errors.New("not installed")
)

// queries counts the queries of a pool.
type queries struct{ atomic.Int64 }

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	q.Add(1)
	return ctx
}

func (q *queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// database returns a pool on a PostgreSQL of the tests, and a fresh schema
// there. Without the programs the test skips; with JAMQ_REQUIRE_POSTGRES set it
// fails.
func database(t testing.TB, count *queries) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	url, err := postgres()
	if errors.Is(err, errMissing) && os.Getenv("JAMQ_REQUIRE_POSTGRES") == "" {
		t.Skip("no PostgreSQL here: nothing of this package is tested")
	}
	require.NoError(t, err, "PostgreSQL")
	cfg, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	cfg.ConnConfig.Tracer = count
	pool, err = pgxpool.NewWithConfig(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	schema = fmt.Sprint("jamq_", schemas.Add(1))
	require.NoError(t, riverjobs.Migrate(t.Context(), pool, schema))
	return pool, schema
}

// postgres starts a server behind a Unix socket. Its programs are in the folder
// that JAMQ_POSTGRES_BIN names, in the path, or at Debian's newest version.
var postgres = sync.OnceValues(func() (url string, err error) {
	bin := os.Getenv("JAMQ_POSTGRES_BIN")
	if path, err := exec.LookPath("initdb"); bin == "" && err == nil {
		bin = filepath.Dir(path)
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); bin == "" && len(found) > 0 {
		bin = filepath.Dir(slices.Max(found))
	}
	if bin == "" {
		return "", errMissing
	}
	dir, err := os.MkdirTemp("", "jamq-postgres-")
	if err != nil {
		return "", err
	}
	program := func(name string, args ...string) (*exec.Cmd, error) {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir = dir
		return cmd, unprivileged(cmd, dir)
	}
	initdb, err := program("initdb", "-D", filepath.Join(dir, "data"), "-U", "jamq", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return "", err
	}
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// pg_ctl waits until the server answers, and until it has ended.
	control := func(args ...string) error {
		cmd, err := program("pg_ctl", append([]string{"-D", filepath.Join(dir, "data"), "-w", "-t", "3600"}, args...)...)
		if err != nil {
			return err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("pg_ctl: %w\n%s", err, out)
		}
		return nil
	}
	options := "-h '' -k " + dir + " -F -c max_connections=300"
	if err := control("-l", filepath.Join(dir, "log"), "-o", options, "start"); err != nil {
		return "", err
	}
	stopPostgres = func() {
		_ = control("-m", "fast", "stop")
		_ = os.RemoveAll(dir)
	}
	return "postgres://jamq@/postgres?pool_max_conns=20&host=" + dir, nil
})

// redisServer starts a redis-server of the test's own: the store that processes share.
// It returns the path of its Unix socket.
func redisServer(t *testing.T) (path string) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("JAMQ_REQUIRE_REDIS") != "" {
			t.Fatal("no redis-server in the path, and JAMQ_REQUIRE_REDIS is set")
		}
		t.Skip("no redis-server in the path: no process is killed")
	}
	dir, err := os.MkdirTemp("", "redis") // a socket's path has to be short
	require.NoError(t, err)
	path = filepath.Join(dir, "redis")
	cmd := exec.Command(binary, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", dir)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	client := dialRedis(path)
	defer func() { _ = client.Close() }()
	wait.Until(t, func() bool { return client.Ping(context.Background()).Err() == nil }, "an answer of Redis")
	return path
}

func dialRedis(path string) *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: path, DialTimeout: 10 * time.Minute, ReadTimeout: 10 * time.Minute, WriteTimeout: 10 * time.Minute})
}
