package pglog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/journal"
)

// pair is a database with a standby.
type pair struct {
	*postgres.Pair
	t *testing.T
}

func newPair(t *testing.T, synchronous bool) *pair {
	t.Helper()
	p, err := postgres.StartPair(synchronous)
	if p != nil {
		t.Cleanup(p.Remove)
	}
	postgres.Require(t, err)
	return &pair{p, t}
}

// caughtUp waits until the standby has all.
func (p *pair) caughtUp() {
	p.t.Helper()
	db := client(p.t, p.Primary.URL())
	wait.Until(p.t, func() bool {
		var behind bool
		err := db.QueryRow(p.t.Context(), "select coalesce(bool_or(replay_lsn < pg_current_wal_lsn()), true) from pg_stat_replication").Scan(&behind)
		require.NoError(p.t, err)
		return !behind
	}, "the standby has all")
}

// TestSynchronousStandby: the machine of the database is lost, and the synchronous standby is
// promoted. All records that were acknowledged are there. The old leader can write no more, so the
// next one does not wait for the lease.
func TestSynchronousStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t, true)
	cfg := quick(p.URL(), "kept")
	cfg.Lease = time.Hour
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
	require.NoError(t, p.FailOver())
	require.NoError(t, p.Rebuild())
	require.NoError(t, <-second.led)
	require.True(t, second.Promoted())
	require.NoError(t, second.Close())
	cfg.Synchronous = true
	second.Log = lead(t, at(cfg, "third"))
	require.False(t, second.Promoted(), "the operator says that nothing was lost")
	require.Equal(t, want, contents(t, second.Log))
	require.NoError(t, second.Append([]byte("more")))
	require.ErrorIs(t, first.Append([]byte("late")), journal.ErrFenced)
}

// TestK6PromotedStandby: an asynchronous standby is promoted that lacks acknowledged records. A
// process that has read them does not lead; one that has not leads, and knows of the promotion.
func TestK6PromotedStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t, false)
	cfg := quick(p.URL(), "lost")
	first := lead(t, at(cfg, "first"))
	require.NoError(t, first.Append([]byte("one")))
	empty := quick(p.URL(), "empty")
	begun := open(t, at(empty, "first"))
	p.caughtUp()
	require.NoError(t, p.Standby.Kill())
	witness := follow(t, at(cfg, "witness"))
	require.NoError(t, first.Append([]byte("two")))
	require.Equal(t, "two", <-witness.read)
	require.NoError(t, p.Primary.Kill())
	require.NoError(t, p.Standby.Start())
	require.NoError(t, p.Promote())
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
	require.NoError(t, begun.Close())
	require.True(t, lead(t, at(empty, "next")).Promoted(), "all records can be lost")
}
