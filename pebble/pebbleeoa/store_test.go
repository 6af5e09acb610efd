package pebbleeoa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/storetest"
	"github.com/jamq/jamq/pebble/internal/fulldisk"
	"github.com/jamq/jamq/pebble/internal/powercut"
	"github.com/jamq/jamq/pebble/pebbledb"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	var last *Store
	t.Cleanup(func() { require.NoError(t, last.Close()) })
	storetest.Run(t, func() eoa.Store {
		if last != nil {
			require.NoError(t, last.Close())
		}
		s, err := Open(dir, Options{})
		require.NoError(t, err)
		last = s
		return s
	})
}

// A process that died had a lease. The next one does not wait for its end.
func TestLeaseOfADeadProcess(t *testing.T) {
	dir, now, ctx := t.TempDir(), time.Unix(1_800_000_000, 0), context.Background()
	accounts := []eoa.Account{{ChainID: 1, Address: common.Address{1}}, {ChainID: 2, Address: common.Address{2}}}
	dead, err := Open(dir, Options{})
	require.NoError(t, err)
	for _, a := range accounts {
		_, err = dead.Acquire(ctx, a, "dead", now, time.Hour)
		require.NoError(t, err)
		_, err = dead.Acquire(ctx, a, "other", now, time.Hour)
		require.ErrorIs(t, err, eoa.ErrHeld)
	}
	require.NoError(t, dead.Close())
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, a := range accounts {
		_, err = s.Acquire(ctx, a, "next", now, time.Hour)
		require.NoError(t, err)
	}
}

// Other data, and other stores, share a database.
func TestSharedDatabase(t *testing.T) {
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, key := range []string{"a", "z"} {
		require.NoError(t, db.Set([]byte(key), []byte("host's"), pebble.Sync))
	}
	var stores []*Store
	for _, prefix := range []string{"s1", "s2", "s3"} {
		s, err := Open("", Options{DB: db, Prefix: []byte(prefix)})
		require.NoError(t, err)
		stores = append(stores, s)
	}
	// The neighbours on both sides have a request of the account and the key that the
	// suite begins with.
	ctx, account := t.Context(), eoa.Account{ChainID: 1, Address: common.Address{0, 0xfe, 0xff}}
	theirs := func(s *Store) eoa.Record {
		r, err := s.Get(ctx, account, "a")
		require.NoError(t, err)
		return r
	}
	var before []eoa.Record
	for _, s := range []*Store{stores[0], stores[2]} {
		_, err := s.Submit(ctx, account, time.Unix(1_800_000_000, 0), eoa.Request{Key: "a", Metadata: []byte("neighbour")})
		require.NoError(t, err)
		before = append(before, theirs(s))
	}
	storetest.Run(t, func() eoa.Store { return stores[1] })
	require.Equal(t, before, []eoa.Record{theirs(stores[0]), theirs(stores[2])})
	for _, s := range stores {
		require.NoError(t, s.Close())
	}
	for _, key := range []string{"a", "z"} {
		value, closer, err := db.Get([]byte(key))
		require.NoError(t, err)
		require.Equal(t, "host's", string(value))
		require.NoError(t, closer.Close())
	}
}

// clock is set by the test.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// The process dies at any operation on its files, which is to say at any sync,
// while it sends. All accepted requests are in the store, and after a restart
// every request lands exactly once.
func TestDiesAtAnyOperation(t *testing.T) {
	at := 1
	for diesAt(t, at) {
		at++
	}
	t.Log(at-1, "syncs")
	require.Greater(t, at, 30)
}

const testChain, requests = 99, 6

func diesAt(t *testing.T, at int) (failed bool) {
	power := powercut.New(at)
	chain, now := eoatest.New(testChain, 1, 3), &clock{time.Unix(1_800_000_000, 0)}
	work(t, power, chain, now)
	accepted, failed := power.Restart()
	now.now = now.now.Add(time.Hour)
	s, err := Open("db", Options{Pebble: power.Options()})
	require.NoError(t, err, "the power failed at sync %d", at)
	for i := range accepted {
		_, err := s.Get(context.Background(), account(), fmt.Sprint(i))
		require.NoError(t, err, "request %d was accepted; the power failed at sync %d", i, at)
	}
	require.NoError(t, s.Close())
	work(t, power, chain, now)
	landed := map[string]int{}
	for _, tx := range chain.Transactions() {
		landed[string(tx.Data())]++
	}
	for i := range requests {
		require.Equal(t, 1, landed[fmt.Sprint(i)], "request %d; the power failed at sync %d", i, at)
	}
	return failed
}

func account() eoa.Account {
	key, _ := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
	return eoa.Account{ChainID: testChain, Address: crypto.PubkeyToAddress(key.PublicKey)}
}

// powered is a chain that drops the sends of a process whose power has failed.
type powered struct {
	*eoatest.Chain
	power *powercut.Disk
}

func (p powered) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	if p.power.Failed() {
		return make([]eoa.Sent, len(raws))
	}
	return p.Chain.Send(ctx, raws)
}

// work runs an executor until all requests are final or the power has failed. It
// acknowledges each request, in order.
func work(t *testing.T, power *powercut.Disk, chain *eoatest.Chain, now *clock) {
	s, err := Open("db", Options{Pebble: power.Options()})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
	require.NoError(t, err)
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.Batch = now.Now, 3
	e, err := eoa.New(cfg, account(), s, powered{chain, power}, eoa.NewKeySigner(testChain, key))
	require.NoError(t, err)
	ctx := context.Background()
	for i := range requests {
		_, err := e.Submit(ctx, eoa.Request{Key: fmt.Sprint(i), Data: []byte(fmt.Sprint(i)), Gas: 50_000})
		require.NoError(t, err)
		power.Acknowledge()
	}
	for range 300 {
		if power.Failed() {
			return
		}
		_, err := e.Step(ctx)
		require.True(t, power.Failed() || err == nil || errors.Is(err, eoa.ErrHeld), "%v", err)
		require.NoError(t, s.kv.db.Pebble().Flush())
		chain.Mine()
		now.now = now.now.Add(4 * time.Second)
		if r, err := e.Get(ctx, fmt.Sprint(requests-1)); err == nil && r.State == eoa.Final {
			return
		}
	}
	t.Fatal("not over")
}

// The store's step beside a bare batch of the same bytes, both synced.
func BenchmarkCommit(b *testing.B) {
	db, err := pebbledb.Open(b.TempDir(), nil)
	require.NoError(b, err)
	defer func() { _ = db.Close() }()
	s, err := Open("", Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte("store")})
	require.NoError(b, err)
	storetest.Benchmark(b, s, func(records [][]byte) error {
		batch := db.Pebble().NewBatch()
		for i, r := range records {
			err = errors.Join(err, batch.Set(fmt.Append(nil, "raw", i), r, nil))
		}
		return errors.Join(err, batch.Commit(pebble.Sync), batch.Close())
	})
}

// BenchmarkSubmitSynced measures synced steps of one request and of a hundred.
// They must be far below the block time.
func BenchmarkSubmitSynced(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint("batch=", n), func(b *testing.B) {
			i := 0
			for b.Loop() {
				var q []eoa.Request
				for range n {
					i++
					q = append(q, eoa.Request{Key: fmt.Sprint(n, "/", i)})
				}
				if _, err := s.Submit(context.Background(), account(), time.Now(), q...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// sentAt tells when it was given something to send.
type sentAt struct {
	*eoatest.Chain
	at chan time.Time
}

func (c sentAt) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	c.at <- time.Now()
	return c.Chain.Send(ctx, raws)
}

// BenchmarkSubmitToBroadcast measures one request at a time, from Submit to the
// call that sends it, with a store on disk and a running executor.
func BenchmarkSubmitToBroadcast(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	require.NoError(b, err)
	defer func() { _ = s.Close() }()
	chain := sentAt{eoatest.New(testChain, 1, 3), make(chan time.Time, 1)}
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
	require.NoError(b, err)
	cfg := eoa.DefaultConfig()
	cfg.MaxInFlight, cfg.MaxUnsure = 1<<20, 1<<20
	e, err := eoa.New(cfg, account(), s, chain, eoa.NewKeySigner(testChain, key))
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx)
	}()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		_, err := e.Submit(ctx, eoa.Request{Key: fmt.Sprint(len(took)), Noop: true})
		require.NoError(b, err)
		took = append(took, (<-chain.at).Sub(began))
		if len(took)%20 == 0 {
			chain.Mine()
			e.NewHead()
		}
	}
	stop()
	<-ended
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// The disk is full. A request is refused with the reason, and the store refuses
// reads, because memory may be ahead of the disk. After a restart all accepted
// requests are there.
func TestDiskIsFull(t *testing.T) {
	disk := vfs.NewStrictMem()
	var full atomic.Bool
	options := Options{Pebble: &pebble.Options{Logger: pebbledb.Silent, FS: fulldisk.Wrap(disk, func(string, string) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return nil
	})}}
	s, err := Open("db", options)
	require.NoError(t, err)
	ctx, now := context.Background(), time.Unix(1_800_000_000, 0)
	_, err = s.Submit(ctx, account(), now, eoa.Request{Key: "accepted"})
	require.NoError(t, err)
	full.Store(true)
	for range 2 {
		_, err = s.Submit(ctx, account(), now, eoa.Request{Key: "refused"})
		require.ErrorIs(t, err, ErrDisk)
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
	for _, key := range []string{"accepted", "refused"} {
		_, err = s.Get(ctx, account(), key)
		require.ErrorIs(t, err, ErrDisk)
	}
	require.ErrorIs(t, s.Close(), ErrDisk)
	full.Store(false)
	disk.ResetToSyncedState()
	s, err = Open("db", options)
	require.NoError(t, err)
	_, err = s.Get(ctx, account(), "accepted")
	require.NoError(t, err)
	_, err = s.Get(ctx, account(), "refused")
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrDisk)
	require.NoError(t, s.Close())
}

// After Close every method returns an error, also for calls that a host makes
// late, such as Deliver.
func TestClosed(t *testing.T) {
	ctx := context.Background()
	s, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	_, err = s.Submit(ctx, account(), time.Now(), eoa.Request{Key: "a"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = eoa.Deliver(ctx, s, account(), 10, func(context.Context, eoa.Event) error { return nil })
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Get(ctx, account(), "a")
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Submit(ctx, account(), time.Now(), eoa.Request{Key: "b"})
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Close(), ErrClosed)
}
