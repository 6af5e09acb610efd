package pglog_test

import (
	"context"
	"fmt"
	"io"
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
	"github.com/jamq/jamq/journal"
)

// proxy passes on the connections to a server, and does something to one of them when it has
// counted enough messages.
type proxy struct {
	messages atomic.Int64 // until it acts; below 1: never
	requests bool         // count what the clients send, not what the server replies
	freeze   bool         // all connections stand still without an error, instead of one being cut
	acts     atomic.Int64
}

// start returns the connection string of the proxy in front of a server.
func (p *proxy) start(t *testing.T, s *postgres.Server) (url string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "jamq-cut-") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
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
			before := p.acts.Load()
			go p.pass(client, server, before, p.requests)
			go p.pass(server, client, before, !p.requests)
		}
	}()
	return "postgres://jamq@/postgres?host=" + dir
}

// pass copies what arrives from one connection to the other one. before is the number of acts when
// the connection was opened.
func (p *proxy) pass(from, to net.Conn, before int64, counts bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if counts && p.messages.Load() > 0 && p.messages.Add(-1) == 0 {
			p.acts.Add(1)
			if !p.freeze {
				return
			}
		}
		if p.freeze && p.acts.Load() > before {
			_, _ = io.Copy(io.Discard, from)
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
	c := new(proxy)
	cfg := pglog.DefaultConfig(c.start(t, s), name)
	cfg.Lease = time.Hour // no renewal is cut
	l := lead(t, cfg)
	var want []string
	for i := range 6 {
		record := fmt.Sprint("record ", i)
		want = append(want, record)
		c.messages.Store(int64(i%3) + 1)
		require.NoError(t, l.Append([]byte(record)))
	}
	c.messages.Store(0)
	require.Equal(t, want, contents(t, l))
	for i := range 8 { // a replacement has more replies
		want = []string{fmt.Sprint("state ", i), "more"}
		c.messages.Store(int64(i) + 1)
		require.NoError(t, l.Replace([]byte(want[0]), []byte(want[1])))
		c.messages.Store(0)
		require.Equal(t, want, contents(t, l))
	}
	require.Greater(t, c.acts.Load(), int64(6))
}

// TestFrozenConnections: all connections of the leader stand still without an error at some message
// of a write, as when a router forgets them. New connections work. The write is done once, or
// another process leads.
func TestFrozenConnections(t *testing.T) {
	for _, requests := range []bool{true, false} {
		for _, size := range []int{1, 2} { // records: an append, a replacement
			for message := 1; message <= 2*size*size; message += size {
				what := map[bool]string{true: "request", false: "reply"}[requests]
				t.Run(fmt.Sprintf("%s %d of a write with %d records", what, message, size), func(t *testing.T) {
					t.Parallel()
					direct, name := database(t)
					s, err := shared()
					require.NoError(t, err)
					p := &proxy{requests: requests, freeze: true}
					cfg := pglog.DefaultConfig(p.start(t, s), name)
					cfg.Lease, cfg.Patience = time.Second, time.Hour
					leader := lead(t, at(cfg, "leader"))
					require.NoError(t, leader.Append([]byte("one")))
					cfg.URL = direct
					second := follow(t, at(cfg, "second"))
					p.messages.Store(int64(message))
					want := []string{"one", "two"}
					if size == 1 {
						err = leader.Append([]byte("two"))
					} else {
						want = []string{"state", "more"}
						err = leader.Replace([]byte("state"), []byte("more"))
					}
					require.True(t, message > size || p.acts.Load() > 0, "a write has a request and a reply")
					have := contents(t, open(t, at(cfg, "reader"))) // over new connections
					if err == nil {
						require.Equal(t, want, have)
						return
					}
					require.ErrorIs(t, err, journal.ErrFenced)
					require.NoError(t, <-second.led)
					require.Contains(t, [][]string{{"one"}, want}, have)
				})
			}
		}
	}
}

// TestFrozenFollower: the connections of a follower stand still without an error, at some reply,
// while the leader ends. New ones work. It leads.
func TestFrozenFollower(t *testing.T) {
	for message := 0; message < 10; message += 2 {
		t.Run(fmt.Sprint("message ", message), func(t *testing.T) {
			t.Parallel()
			direct, name := database(t)
			s, err := shared()
			require.NoError(t, err)
			cfg := pglog.DefaultConfig(direct, name)
			cfg.Lease, cfg.Patience = time.Second, time.Hour
			leader := lead(t, at(cfg, "leader"))
			p := &proxy{freeze: true}
			cfg.URL = p.start(t, s)
			second := follow(t, at(cfg, "second"))
			require.NoError(t, leader.Append([]byte("one")))
			require.Equal(t, "one", <-second.read)
			p.messages.Store(int64(message) + 1)
			require.NoError(t, leader.Close())
			require.NoError(t, <-second.led)
		})
	}
}

// TestNotReplicated: a commit whose wait for the standby was canceled is visible, and is not
// acknowledged before a later commit is.
func TestNotReplicated(t *testing.T) {
	t.Parallel()
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
