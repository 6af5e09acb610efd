package pglog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/journal/journaltest"
)

// TestJournal: the log keeps the rules of all logs.
func TestJournal(t *testing.T) {
	url, name := database(t)
	journaltest.Run(t, func() journal.Journal { return lead(t, pglog.DefaultConfig(url, name)) })
}

// TestSharedJournal: the log keeps the rules of logs that several processes have.
func TestSharedJournal(t *testing.T) {
	url, name := database(t)
	journaltest.RunShared(t, func() journaltest.Shared { return open(t, pglog.DefaultConfig(url, name)) })
}

// TestPooler: the log keeps all rules behind a pooler in transaction mode, which gives each
// statement or transaction to another session of the database.
func TestPooler(t *testing.T) {
	_, name := database(t)
	s, err := shared()
	require.NoError(t, err)
	url, stop, err := postgres.StartPooler(s)
	if stop != nil {
		t.Cleanup(stop)
	}
	postgres.Require(t, err)
	journaltest.Run(t, func() journal.Journal { return lead(t, pglog.DefaultConfig(url, name)) })
	journaltest.RunShared(t, func() journaltest.Shared { return open(t, pglog.DefaultConfig(url, name+"_shared")) })
}

// TestValidate lists all fields that cannot be used.
func TestValidate(t *testing.T) {
	cfg := pglog.Config{URL: "postgres://%", Name: "Log", Address: strings.Repeat("a", 1001)}
	err := cfg.Validate()
	require.ErrorIs(t, err, pglog.ErrInvalidConfig)
	for _, field := range []string{"Name", "Address", "Lease", "Poll", "Keep", "Patience"} {
		require.ErrorContains(t, err, field)
	}
	_, err = pglog.Open(t.Context(), cfg)
	require.ErrorIs(t, err, pglog.ErrInvalidConfig)
	good := pglog.DefaultConfig("postgres://localhost/x", "my_rollup")
	require.NoError(t, good.Validate())
}

// quick is a configuration whose lease ends soon.
func quick(url, name string) pglog.Config {
	cfg := pglog.DefaultConfig(url, name)
	cfg.Lease = 300 * time.Millisecond
	return cfg
}

// TestOneLeads: a second process waits, also for longer than the lease, and leads when the first
// one closes its log. Others see who leads.
func TestOneLeads(t *testing.T) {
	url, name := database(t)
	cfg := quick(url, name)
	cfg.Address = "first:8545"
	first := lead(t, cfg)
	require.NoError(t, first.Append([]byte("one")))
	cfg.Address = "second:8545"
	second := open(t, cfg)
	waiting, cancel := context.WithTimeout(t.Context(), 4*cfg.Lease)
	defer cancel()
	require.ErrorIs(t, takeLead(waiting, second), context.DeadlineExceeded)
	require.ErrorIs(t, second.Append([]byte("two")), journal.ErrFenced)
	leader, err := second.Leader(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, leader.Epoch)
	require.Equal(t, "first:8545", leader.Address)
	require.NoError(t, first.Close())
	require.NoError(t, takeLead(t.Context(), second))
	leader, err = second.Leader(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, leader.Epoch)
	require.Equal(t, "second:8545", leader.Address)
	require.False(t, second.Promoted())
	require.Equal(t, []string{"one"}, contents(t, second))
}

// steal lets another process take the lead, as if the first one had stopped renewing its lease.
func steal(t *testing.T, cfg pglog.Config) *pglog.Log {
	t.Helper()
	_, err := client(t, cfg.URL).Exec(t.Context(), "update "+cfg.Name+"_lease set free = true")
	require.NoError(t, err)
	return lead(t, cfg)
}

// TestK4OneWriter: a process that has lost the lead writes nothing, whatever it believes.
func TestK4OneWriter(t *testing.T) {
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	first := lead(t, cfg)
	require.NoError(t, first.Append([]byte("one")))
	second := steal(t, cfg)
	require.ErrorIs(t, first.Append([]byte("two")), journal.ErrFenced)
	require.ErrorIs(t, first.Replace([]byte("three")), journal.ErrFenced)
	<-first.Lost()
	require.NoError(t, second.Append([]byte("four")))
	require.Equal(t, []string{"one", "four"}, contents(t, second))
	require.NoError(t, first.Close())
	require.NoError(t, second.Append([]byte("five")), "the end of the old leader changes nothing")
}

// TestK4LostLeadIsNoticed: a process that writes nothing notices that another one leads.
func TestK4LostLeadIsNoticed(t *testing.T) {
	url, name := database(t)
	first := lead(t, quick(url, name))
	steal(t, quick(url, name))
	<-first.Lost()
	require.ErrorIs(t, first.Append([]byte("x")), journal.ErrFenced)
}

// TestK4StoppedInAnAppend: the old leader has stopped while it has the log locked. The next one
// ends its session and leads.
func TestK4StoppedInAnAppend(t *testing.T) {
	url, name := database(t)
	cfg := quick(url, name)
	first := lead(t, cfg)
	require.NoError(t, first.Append([]byte("one")))
	stopped, err := client(t, url).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = stopped.Rollback(context.Background()) }()
	_, err = stopped.Exec(t.Context(), "update "+name+"_log set next = next")
	require.NoError(t, err)
	second := steal(t, cfg)
	require.NoError(t, second.Append([]byte("two")))
	require.Equal(t, []string{"one", "two"}, contents(t, second))
	require.Error(t, stopped.Commit(context.Background()))
}

// TestForeignRecords: records that this package did not write are found.
func TestForeignRecords(t *testing.T) {
	url, _ := database(t)
	for what, statement := range map[string]string{
		"changed": "update %s_entry set body = 'x' where position = 1",
		"removed": "delete from %s_entry where position = 1",
		"cut":     "delete from %s_entry where position = 2",
		"added":   "insert into %s_entry values (3, 'x')",
	} {
		t.Run(what, func(t *testing.T) {
			_, name := database(t)
			l := lead(t, pglog.DefaultConfig(url, name))
			for _, record := range []string{"zero", "one", "two"} {
				require.NoError(t, l.Append([]byte(record)))
			}
			_, err := client(t, url).Exec(t.Context(), fmt.Sprintf(statement, name))
			require.NoError(t, err)
			require.ErrorIs(t, l.Replay(func([]byte) error { return nil }), journal.ErrCorrupt)
		})
	}
}

// TestVersion: the tables of another version are not touched.
func TestVersion(t *testing.T) {
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	require.NoError(t, open(t, cfg).Close())
	_, err := client(t, url).Exec(t.Context(), "update "+name+"_log set version = 1")
	require.NoError(t, err)
	_, err = pglog.Open(t.Context(), cfg)
	require.ErrorIs(t, err, pglog.ErrVersion)
}

// TestOpenedTogether: processes that open a new log at the same time create it once, and lead one
// after another.
func TestOpenedTogether(t *testing.T) {
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	cfg.Lease = 300 * time.Millisecond
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			l, err := pglog.Open(t.Context(), cfg)
			if err == nil {
				err = takeLead(t.Context(), l)
			}
			if err == nil {
				err = l.Append(fmt.Append(nil, i))
				_ = l.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, contents(t, open(t, cfg)), 4)
}

// TestDatabaseIsAway: a write waits while the database restarts, and is written once.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	cfg := pglog.DefaultConfig(s.URL(), "away")
	cfg.Lease = time.Hour
	l := lead(t, cfg)
	require.NoError(t, l.Append([]byte("one")))
	require.NoError(t, s.Kill())
	written := make(chan error, 1)
	go func() { written <- l.Append([]byte("two")) }()
	require.NoError(t, s.Start())
	require.NoError(t, <-written)
	require.Equal(t, []string{"one", "two"}, contents(t, l))
}

// TestPatience: a write fails if the database stays away, and the log is then of no use.
func TestPatience(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	cfg := pglog.DefaultConfig(s.URL(), "patience")
	cfg.Patience = cfg.Lease // with less, a busy database counts as away while the log opens
	l := lead(t, cfg)
	require.NoError(t, s.Kill())
	require.ErrorIs(t, l.Append([]byte("one")), pglog.ErrUnknown)
	require.NoError(t, s.Start())
	require.ErrorIs(t, l.Append([]byte("one")), pglog.ErrUnknown)
	require.NoError(t, l.Close())
	again := lead(t, cfg)
	wait.Until(t, func() bool { return len(contents(t, again)) == 0 }, "nothing was written")
}
