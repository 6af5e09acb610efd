package pglog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/journal"
)

// following is a process that follows, with the records that it has read.
type following struct {
	*pglog.Log
	read chan string
	led  chan error
}

// follow opens a log that another process leads, and follows it.
func follow(t *testing.T, cfg pglog.Config) *following {
	t.Helper()
	f := &following{open(t, cfg), make(chan string, 1<<20), make(chan error, 1)}
	contents(t, f.Log)
	go func() {
		f.led <- f.Lead(context.Background(),
			func(record []byte) error { f.read <- string(record); return nil },
			func() error { f.read <- "replaced"; return nil })
	}()
	return f
}

// at returns a configuration of a process with an address.
func at(cfg pglog.Config, address string) pglog.Config {
	cfg.Address = address
	return cfg
}

// TestHandOver: the process that the leader names gets the lead, and no other one. If it does not
// take the lead, another one does when the lease has ended.
func TestHandOver(t *testing.T) {
	t.Parallel()
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	first := lead(t, at(cfg, "first"))
	second, third := follow(t, at(cfg, "second")), follow(t, at(cfg, "third"))
	require.ErrorIs(t, second.HandOver(t.Context(), "third"), journal.ErrFenced, "it does not lead")
	require.NoError(t, first.HandOver(t.Context(), "third"))
	require.NoError(t, <-third.led)
	require.Empty(t, second.led)
	require.ErrorIs(t, first.Append([]byte("late")), journal.ErrFenced)
	require.NoError(t, first.Close())
	require.NoError(t, third.Append([]byte("from the third")))
	require.Equal(t, "from the third", <-second.read)
	require.NoError(t, third.HandOver(t.Context(), "absent"))
	require.NoError(t, third.Close())
	require.NoError(t, <-second.led)
}

// TestHandOverToAny: a leader that names no successor gives the lead away at once, before it closes
// the log.
func TestHandOverToAny(t *testing.T) {
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	cfg.Lease = time.Hour
	first := lead(t, at(cfg, "first"))
	second := follow(t, at(cfg, "second"))
	require.NoError(t, first.HandOver(t.Context(), ""))
	require.NoError(t, <-second.led)
}

// TestSilentLeader: a follower takes the lead when the leader has not renewed its lease in time, by
// the follower's own clock.
func TestSilentLeader(t *testing.T) {
	url, name := database(t)
	silent := pglog.DefaultConfig(url, name)
	silent.Lease = time.Hour
	first := lead(t, silent)
	require.NoError(t, first.Append([]byte("one")))
	second := follow(t, quick(url, name))
	require.NoError(t, <-second.led)
	require.ErrorIs(t, first.Append([]byte("two")), journal.ErrFenced)
}

// TestFarBehind: the leader is lost while the only follower is 100,000 records behind. The follower
// leads only when it has read all of them.
func TestFarBehind(t *testing.T) {
	const records, batch = 100_000, 1000
	url, name := database(t)
	cfg := quick(url, name)
	first := lead(t, at(cfg, "first"))
	second := open(t, at(cfg, "second"))
	contents(t, second)
	busy, goOn := make(chan struct{}), make(chan struct{})
	read, led := 0, make(chan error, 1)
	go func() {
		led <- second.Lead(context.Background(), func(record []byte) error {
			if read == 0 {
				close(busy)
				<-goOn
			}
			if have, want := string(record), fmt.Sprint("record ", read); have != want {
				return fmt.Errorf("have %s, want %s", have, want)
			}
			read++
			return nil
		}, func() error { return nil })
	}()
	for i := range records / batch {
		all := make([][]byte, batch)
		for k := range all {
			all[k] = fmt.Append(nil, "record ", i*batch+k)
		}
		require.NoError(t, first.Append(all...))
	}
	<-busy
	require.NoError(t, first.Close())
	close(goOn)
	require.NoError(t, <-led)
	require.Equal(t, records, read)
	require.NoError(t, second.Append([]byte("after all")))
}

// TestKept: records that were replaced stay until the processes that follow have read them, and
// others go. A process of which none knew notices that it has missed some.
func TestKept(t *testing.T) {
	url, name := database(t)
	cfg := quick(url, name)
	first := lead(t, at(cfg, "first"))
	slow, unknown := open(t, at(cfg, "slow")), open(t, cfg)
	contents(t, slow)
	contents(t, unknown)
	db := client(t, url)
	_, err := db.Exec(t.Context(), "delete from "+name+"_member where member <> 'slow'")
	require.NoError(t, err)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint("record ", i), "replaced")
		require.NoError(t, first.Append([]byte(want[2*i])))
		require.NoError(t, first.Replace([]byte("state")))
	}
	count := func() (n int) {
		require.NoError(t, db.QueryRow(t.Context(), "select count(*) from "+name+"_entry").Scan(&n))
		return n
	}
	require.Equal(t, 10, count())
	var read []string
	ctx, cancel := context.WithCancel(t.Context())
	err = slow.Lead(ctx, func(record []byte) error { read = append(read, string(record)); return nil }, func() error {
		if read = append(read, "replaced"); len(read) == len(want) {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, want, read)
	_, err = db.Exec(t.Context(), "update "+name+"_member set position = 15")
	require.NoError(t, err)
	require.NoError(t, first.Replace([]byte("state")))
	require.Equal(t, 2, count(), "the last two states")
	require.ErrorIs(t, takeLead(t.Context(), unknown), pglog.ErrBehind)
	require.Equal(t, []string{"state"}, contents(t, unknown), "it begins again")
}

// TestK6LogWentBack: a process that has read records which the database has lost since does not
// lead, also if other records have taken their place.
func TestK6LogWentBack(t *testing.T) {
	url, _ := database(t)
	for what, after := range map[string][]string{"lost": nil, "replaced": {"other"}, "more": {"other", "more"}} {
		t.Run(what, func(t *testing.T) {
			_, name := database(t)
			cfg := quick(url, name)
			first := lead(t, cfg)
			require.NoError(t, first.Append([]byte("one")))
			db := client(t, url)
			_, err := db.Exec(t.Context(), "create table "+name+"_saved as select * from "+name+"_log")
			require.NoError(t, err)
			witness := follow(t, cfg)
			require.NoError(t, first.Append([]byte("two")))
			require.Equal(t, "two", <-witness.read)
			require.NoError(t, first.Close())
			require.NoError(t, <-witness.led)
			require.NoError(t, witness.Close())

			saw := open(t, cfg)
			require.Equal(t, []string{"one", "two"}, contents(t, saw))
			for _, statement := range []string{
				"update " + name + "_log l set next = s.next, tip = s.tip from " + name + "_saved s",
				"delete from " + name + "_entry where position = 1",
			} {
				_, err = db.Exec(t.Context(), statement)
				require.NoError(t, err)
			}
			other := lead(t, cfg)
			for _, record := range after {
				require.NoError(t, other.Append([]byte(record)))
			}
			require.ErrorIs(t, takeLead(t.Context(), saw), journal.ErrLost)
			require.NoError(t, other.Append([]byte("it leads on")))
		})
	}
}

// TestFollowThroughOutage: a follower goes on when the database comes back, and does not take the
// lead from a leader that could not renew its lease meanwhile.
func TestFollowThroughOutage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	cfg := quick(s.URL(), "outage")
	cfg.Lease = time.Hour
	first := lead(t, at(cfg, "first"))
	second := follow(t, at(cfg, "second"))
	require.NoError(t, first.Append([]byte("one")))
	require.Equal(t, "one", <-second.read)
	require.NoError(t, s.Kill())
	require.NoError(t, s.Start())
	require.NoError(t, first.Append([]byte("two")))
	require.Equal(t, "two", <-second.read)
	require.Empty(t, second.led)
}

// TestCloseWhileFollowing: Close ends Lead.
func TestCloseWhileFollowing(t *testing.T) {
	url, name := database(t)
	cfg := pglog.DefaultConfig(url, name)
	lead(t, at(cfg, "first"))
	second := follow(t, at(cfg, "second"))
	require.NoError(t, second.Close())
	require.ErrorIs(t, <-second.led, journal.ErrClosed)
	require.ErrorIs(t, takeLead(t.Context(), second.Log), journal.ErrClosed)
}

// TestMembers: all processes see which ones follow, and how far they are.
func TestMembers(t *testing.T) {
	url, name := database(t)
	cfg := quick(url, name)
	first := lead(t, at(cfg, "first"))
	require.NoError(t, first.Append([]byte("one")))
	require.NoError(t, first.Append([]byte("two"), []byte("three")))
	slow := open(t, at(cfg, "slow"))
	second := follow(t, at(cfg, "second"))
	var lags map[string]uint64
	wait.Until(t, func() bool {
		members, err := first.Members(t.Context())
		require.NoError(t, err)
		lags = make(map[string]uint64)
		for _, m := range members {
			require.GreaterOrEqual(t, m.Seen, time.Duration(0))
			lags[m.Name] = m.Lag
		}
		return lags["second"] == 0
	}, "the second one has read all")
	require.Equal(t, map[string]uint64{"slow": 2, "second": 0}, lags, "and the first one leads")
	require.NoError(t, second.Close())
	require.NoError(t, slow.Close())
	members, err := first.Members(t.Context())
	require.NoError(t, err)
	require.Empty(t, members)
}
