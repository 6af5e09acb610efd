package riverjobs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/internal/wait"
)

// TestMain ends the servers, and lets the test binary be a worker that TestKill kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("JAMQ_TEST_CHAIN"); url != "" {
		fmt.Fprintln(os.Stderr, work(url, os.Getenv("JAMQ_TEST_REDIS"), os.Getenv("JAMQ_TEST_POSTGRES"), os.Getenv("JAMQ_TEST_SCHEMA")))
		os.Exit(1)
	}
	code := m.Run()
	if running != nil {
		running.Remove()
	}
	os.Exit(code)
}

var (
	schemas atomic.Int64
)

// queries counts the queries of a pool.
type queries struct{ atomic.Int64 }

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	q.Add(1)
	return ctx
}

func (q *queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// database returns a pool on a PostgreSQL of the tests, and a fresh schema
// there.
func database(t testing.TB, count *queries) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	s, err := server()
	postgres.Require(t, err)
	cfg, err := pgxpool.ParseConfig(s.URL() + "&pool_max_conns=20")
	require.NoError(t, err)
	cfg.ConnConfig.Tracer = count
	pool, err = pgxpool.NewWithConfig(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	schema = fmt.Sprint("jamq_", schemas.Add(1))
	require.NoError(t, riverjobs.Migrate(t.Context(), pool, schema))
	return pool, schema
}

var (
	running *postgres.Server
	server  = sync.OnceValues(func() (s *postgres.Server, err error) { running, err = postgres.Start(); return running, err })
)

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
