package pglog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
)

// TestMaintenance: while a process leads and another one follows, an operator dumps the database,
// which takes long, and changes, packs and indexes the tables. The log is written and read
// meanwhile, and the lead stays.
func TestMaintenance(t *testing.T) {
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	cfg.Lease = time.Hour
	leader := lead(t, at(cfg, "leader"))
	follower := follow(t, at(cfg, "follower"))
	operator := client(t, url)
	var want []string // by the follower
	write := func() {
		t.Helper()
		record := fmt.Sprint("record ", len(want))
		require.NoError(t, leader.Append([]byte(record)))
		want = append(want, record)
	}
	write()
	dump, err := client(t, url).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	require.NoError(t, err)
	entries := func() (n int) {
		require.NoError(t, dump.QueryRow(t.Context(), fmt.Sprintf("select count(*) from %s_entry", name)).Scan(&n))
		return n
	}
	require.Equal(t, 1, entries())
	for range 3 {
		write()
		require.NoError(t, leader.Replace([]byte("state"), []byte("more")))
		want = append(want, "replaced")
	}
	require.Equal(t, 1, entries(), "the dump sees one moment")
	require.NoError(t, dump.Rollback(t.Context()))
	for _, change := range []string{
		"alter table %s_entry add column note text",
		"alter table %s_log add column note text default 'none'",
		"alter table %s_lease add column note text",
		"create index concurrently on %s_entry (note)",
		"vacuum full %s_entry",
		"reindex table %s_entry",
		"alter table %s_entry drop column note",
	} {
		// The change waits for the end of a transaction, and writes wait for the change.
		reading, err := client(t, url).Begin(t.Context())
		require.NoError(t, err)
		_, err = reading.Exec(t.Context(), fmt.Sprintf("select from %[1]s_entry, %[1]s_log, %[1]s_lease", name))
		require.NoError(t, err)
		changed := make(chan error, 1)
		go func() {
			_, err := operator.Exec(t.Context(), fmt.Sprintf(change, name))
			changed <- err
		}()
		written := make(chan error, 1)
		record := fmt.Sprint("record ", len(want))
		go func() { written <- leader.Append([]byte(record)) }()
		require.NoError(t, reading.Rollback(t.Context()))
		require.NoError(t, <-written)
		want = append(want, record)
		require.NoError(t, <-changed, change)
	}
	require.NoError(t, leader.Replace([]byte("state")))
	want = append(want, "replaced")
	require.NoError(t, leader.Append([]byte("last")))
	want = append(want, "last")
	for _, record := range want {
		require.Equal(t, record, <-follower.read)
	}
	require.Equal(t, []string{"state", "last"}, contents(t, leader))
}
