package riverjobs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa/jobs/riverjobs"
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

// database returns a pool on a PostgreSQL of the tests, and a fresh schema
// there. Without the programs the test skips; with JAMQ_REQUIRE_POSTGRES set it
// fails.
func database(t testing.TB) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	url, err := postgres()
	if errors.Is(err, errMissing) && os.Getenv("JAMQ_REQUIRE_POSTGRES") == "" {
		t.Skip("no PostgreSQL here: nothing of this package is tested")
	}
	require.NoError(t, err, "PostgreSQL")
	pool, err = pgxpool.New(context.Background(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	schema = fmt.Sprint("jamq_", schemas.Add(1))
	require.NoError(t, riverjobs.Migrate(t.Context(), pool, schema))
	return pool, schema
}

// postgres starts a server on a loopback port. Its programs are in the folder
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
	port, err := freePort()
	if err != nil {
		return "", err
	}
	server, err := program("postgres", "-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", port, "-k", "", "-F", "-c", "max_connections=300")
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return "", err
	}
	stopPostgres = func() {
		_ = server.Process.Signal(os.Interrupt) // ends the sessions, and then the server
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	}
	url = "postgres://jamq@127.0.0.1:" + port + "/postgres?pool_max_conns=20"
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	for range 1000 {
		if err = pool.Ping(context.Background()); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return url, err
})

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), l.Close()
}

// redisServer starts a redis-server of the test's own: the store that processes share.
func redisServer(t *testing.T) (addr string) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("JAMQ_REQUIRE_REDIS") != "" {
			t.Fatal("no redis-server in the path, and JAMQ_REQUIRE_REDIS is set")
		}
		t.Skip("no redis-server in the path: no process is killed")
	}
	port, err := freePort()
	require.NoError(t, err)
	cmd := exec.Command(binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	defer func() { _ = client.Close() }()
	require.Eventually(t, func() bool { return client.Ping(context.Background()).Err() == nil }, 10*time.Second, 10*time.Millisecond)
	return "127.0.0.1:" + port
}
