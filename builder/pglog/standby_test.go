package pglog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/journal"
)

// pair is a database with a standby. Connections go to the one that accepts writes.
type pair struct {
	t                *testing.T
	primary, standby *postgres.Server
	url              string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, primary: newServer(t)}
	var err error
	p.standby, err = p.primary.Standby()
	if p.standby != nil {
		t.Cleanup(p.standby.Remove)
	}
	require.NoError(t, err)
	p.url = fmt.Sprintf("postgres://jamq@/postgres?host=%s,%s&target_session_attrs=read-write", p.primary.Dir, p.standby.Dir)
	return p
}

// synchronous makes commits wait for the standby.
func (p *pair) synchronous() {
	p.t.Helper()
	db := client(p.t, p.primary.URL())
	for _, statement := range []string{"alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()"} {
		_, err := db.Exec(p.t.Context(), statement)
		require.NoError(p.t, err)
	}
	wait.Until(p.t, func() bool {
		var state string
		err := db.QueryRow(p.t.Context(), "select coalesce(max(sync_state), '') from pg_stat_replication").Scan(&state)
		require.NoError(p.t, err)
		return state == "sync"
	}, "the standby is synchronous")
}

// caughtUp waits until the standby has all.
func (p *pair) caughtUp() {
	p.t.Helper()
	db := client(p.t, p.primary.URL())
	wait.Until(p.t, func() bool {
		var behind bool
		err := db.QueryRow(p.t.Context(), "select coalesce(bool_or(replay_lsn < pg_current_wal_lsn()), true) from pg_stat_replication").Scan(&behind)
		require.NoError(p.t, err)
		return !behind
	}, "the standby has all")
}

// TestSynchronousStandby: the machine of the database is lost, and the synchronous standby is
// promoted. All records that were acknowledged are there, and the next leader goes on.
func TestSynchronousStandby(t *testing.T) {
	p := newPair(t)
	p.synchronous()
	cfg := quick(p.url, "kept")
	first := lead(t, at(cfg, "first"))
	second := follow(t, at(cfg, "second"))
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("record ", i))
		require.NoError(t, first.Append([]byte(want[i])))
	}
	for _, record := range want {
		require.Equal(t, record, <-second.read)
	}
	require.NoError(t, p.primary.Kill())
	require.NoError(t, p.standby.Promote())
	require.NoError(t, <-second.led)
	require.True(t, second.Promoted())
	require.Equal(t, want, contents(t, second.Log))
	require.NoError(t, second.Append([]byte("more")))
	require.ErrorIs(t, first.Append([]byte("late")), journal.ErrFenced)
}

// TestK6PromotedStandby: an asynchronous standby is promoted that lacks acknowledged records. A
// process that has read them does not lead; one that has not leads, and knows of the promotion.
func TestK6PromotedStandby(t *testing.T) {
	p := newPair(t)
	cfg := quick(p.url, "lost")
	first := lead(t, at(cfg, "first"))
	require.NoError(t, first.Append([]byte("one")))
	p.caughtUp()
	require.NoError(t, p.standby.Kill())
	witness := follow(t, at(cfg, "witness"))
	require.NoError(t, first.Append([]byte("two")))
	require.Equal(t, "two", <-witness.read)
	require.NoError(t, p.primary.Kill())
	require.NoError(t, p.standby.Start())
	require.NoError(t, p.standby.Promote())
	require.ErrorIs(t, <-witness.led, journal.ErrLost)
	require.ErrorIs(t, first.Append([]byte("three")), journal.ErrFenced, "it has written two")
	next := lead(t, at(cfg, "next"))
	require.True(t, next.Promoted())
	require.Equal(t, []string{"one"}, contents(t, next))
	require.NoError(t, next.Close())
	again := lead(t, at(cfg, "again"))
	require.True(t, again.Promoted(), "the one before has not written that it knows")
	require.NoError(t, again.Append([]byte("known")))
	require.NoError(t, again.Close())
	require.False(t, lead(t, at(cfg, "last")).Promoted())
}
