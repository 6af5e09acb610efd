package pglog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/journal"
)

// TestFrozenPrimary: the machine of the database stands still without closing its connections, and
// its synchronous standby is promoted. Another process leads, and the old leader is refused.
func TestFrozenPrimary(t *testing.T) {
	t.Parallel()
	p := newPair(t, true)
	cfg := quick(p.URL(), "kept")
	cfg.Patience = time.Hour
	first := lead(t, at(cfg, "first"))
	second := follow(t, at(cfg, "second"))
	require.NoError(t, first.Append([]byte("one")))
	require.Equal(t, "one", <-second.read)
	freeze(t, p.Primary)
	require.NoError(t, p.Promote())
	require.NoError(t, p.Primary.Execute("alter system set synchronous_standby_names = ''"))
	require.NoError(t, p.Primary.Execute("select pg_reload_conf()"))
	require.ErrorIs(t, first.Append([]byte("two")), journal.ErrFenced)
	require.NoError(t, <-second.led)
	require.NoError(t, second.Append([]byte("three")))
	require.Equal(t, []string{"one", "three"}, contents(t, second.Log))
}

// freeze stops all processes of a server until the end of the test.
func freeze(t *testing.T, s *postgres.Server) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(raw), "\n")
	pids := append(children(t, first), first)
	for _, pid := range pids {
		id, err := strconv.Atoi(pid)
		require.NoError(t, err)
		if syscall.Kill(id, syscall.SIGSTOP) == nil { // some may have ended since
			t.Cleanup(func() { _ = syscall.Kill(id, syscall.SIGCONT) })
		}
	}
}

// children returns the children of a process.
func children(t *testing.T, pid string) []string {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%s/task/*/children", pid))
	require.NoError(t, err)
	var all []string
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		require.NoError(t, err)
		all = append(all, strings.Fields(string(raw))...)
	}
	require.NotEmpty(t, all)
	return all
}
