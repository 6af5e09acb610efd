package pglog_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/internal/wait"
)

// cutter passes on the connections to a server, and cuts one when a reply of the server arrives.
type cutter struct {
	replies atomic.Int64 // until the cut; below 1: never
	cuts    atomic.Int64
}

// startCutter returns the connection string of a cutter in front of a server.
func startCutter(t *testing.T, s *postgres.Server) (c *cutter, url string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "jamq-cut-") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	c = new(cutter)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.Background(), "unix", filepath.Join(s.Dir, ".s.PGSQL.5432"))
			if err != nil {
				_ = client.Close()
				continue
			}
			go c.pass(client, server, false)
			go c.pass(server, client, true)
		}
	}()
	return c, "postgres://jamq@/postgres?host=" + dir
}

// pass copies what arrives from one connection to the other one.
func (c *cutter) pass(from, to net.Conn, replies bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if replies && c.replies.Load() > 0 && c.replies.Add(-1) == 0 {
			c.cuts.Add(1)
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// TestLostAnswer: the connection is cut when a reply of the database arrives, whichever. The
// records are written once.
func TestLostAnswer(t *testing.T) {
	_, name := database(t)
	s, err := shared()
	require.NoError(t, err)
	c, url := startCutter(t, s)
	cfg := pglog.DefaultConfig(url, name)
	cfg.Lease = time.Hour // no renewal is cut
	l := lead(t, cfg)
	var want []string
	for i := range 6 {
		record := fmt.Sprint("record ", i)
		want = append(want, record)
		c.replies.Store(int64(i%3) + 1)
		require.NoError(t, l.Append([]byte(record)))
	}
	c.replies.Store(0)
	require.Equal(t, want, contents(t, l))
	for i := range 8 { // a replacement has more replies
		want = []string{fmt.Sprint("state ", i), "more"}
		c.replies.Store(int64(i) + 1)
		require.NoError(t, l.Replace([]byte(want[0]), []byte(want[1])))
		c.replies.Store(0)
		require.Equal(t, want, contents(t, l))
	}
	require.Greater(t, c.cuts.Load(), int64(6))
}

// TestNotReplicated: a commit whose wait for the standby was canceled is visible, and is not
// acknowledged before a later commit is.
func TestNotReplicated(t *testing.T) {
	s := newServer(t)
	cfg := pglog.DefaultConfig(s.URL(), "replicated")
	cfg.Lease, cfg.Patience = time.Hour, 10*time.Minute
	l := lead(t, cfg)
	operator := client(t, s.URL()+"&options=-csynchronous_commit%3Doff")
	configure := func(standbys string) {
		_, err := operator.Exec(t.Context(), "alter system set synchronous_standby_names = '"+standbys+"'")
		require.NoError(t, err)
		_, err = operator.Exec(t.Context(), "select pg_reload_conf()")
		require.NoError(t, err)
		wait.Until(t, func() bool {
			var now string
			require.NoError(t, operator.QueryRow(t.Context(), "show synchronous_standby_names").Scan(&now))
			return now == standbys
		}, "the configuration")
	}
	var acknowledged atomic.Int64
	var enough atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil && !enough.Load() {
			if err = l.Append([]byte("record")); err == nil {
				acknowledged.Add(1)
			}
		}
		ended <- err
	}()
	configure("away") // there is none of this name, so that an append waits soon
	canceled := 0
	wait.Until(t, func() bool {
		tag, err := operator.Exec(t.Context(), "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
		require.NoError(t, err)
		canceled += int(tag.RowsAffected())
		return canceled > 3
	}, "canceled waits")
	enough.Store(true)
	before := acknowledged.Load()
	require.Len(t, contents(t, l), int(before)+1, "the last record is visible")
	require.Empty(t, ended)
	require.Equal(t, before, acknowledged.Load(), "the last record is not acknowledged")
	configure("")
	require.NoError(t, <-ended)
	require.Equal(t, before+1, acknowledged.Load())
	require.Len(t, contents(t, l), int(before)+1)
}
