package redisstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/eoa/storetest"
	"github.com/jamq/jamq/internal/wait"
)

// server starts a redis-server for the test, behind a Unix socket.
func server(t testing.TB) *redis.Client {
	t.Helper()
	client, err := launch(t, "--port", "0")
	require.NoError(t, err)
	return client
}

// dial returns a client for the Redis behind a Unix socket. Its time-outs are minutes.
func dial(path string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: "unix", Addr: path, DialTimeout: 10 * time.Minute, ReadTimeout: 10 * time.Minute, WriteTimeout: 10 * time.Minute,
		PoolTimeout: 10 * time.Minute,
	})
}

// launch starts a redis-server with more arguments: the binary that JAMQ_REDIS_SERVER
// names, or the one in the path. Without one the test skips; with JAMQ_REQUIRE_REDIS
// set it fails. The client reaches it over its Unix socket, and thus never another
// server. The error is its output if it ends, for example because a port is in use.
func launch(t testing.TB, more ...string) (*redis.Client, error) {
	t.Helper()
	binary := os.Getenv("JAMQ_REDIS_SERVER")
	if binary == "" {
		binary, _ = exec.LookPath("redis-server")
	}
	if binary == "" {
		if os.Getenv("JAMQ_REQUIRE_REDIS") != "" {
			t.Fatal("no redis-server in the path, and JAMQ_REQUIRE_REDIS is set")
		}
		t.Skip("no redis-server in the path: nothing of this package's store is tested")
	}
	dir := directory(t)
	path := filepath.Join(dir, "redis")
	var out bytes.Buffer
	cmd := exec.Command(binary, append([]string{"--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", dir}, more...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	client := dial(path)
	t.Cleanup(func() {
		_ = client.Close()
		_ = cmd.Process.Kill()
		<-ended
	})
	var failed error
	wait.Until(t, func() bool {
		select {
		case <-ended:
			failed = fmt.Errorf("redis-server ended: %s", &out)
			return true
		default:
			return client.Ping(wait.Context(t)).Err() == nil
		}
	}, "an answer of Redis")
	return client, failed
}

// directory returns an empty directory. Its path is short, as that of a Unix socket
// has to be.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// simulated are the options of tests whose clock is not the server's.
var simulated = Options{CallerClock: true}

// Leases go by the server's clock. A worker whose clock is an hour ahead, and which dies,
// holds the account for the lease's time; one whose clock is ahead takes no lease early.
func TestServerClock(t *testing.T) {
	client := server(t)
	s, err := New(client, "test", Options{})
	require.NoError(t, err)
	ctx, a := wait.Context(t), eoa.Account{ChainID: 1}
	const ttl, short, hour = time.Hour / 2, time.Millisecond, time.Hour
	now := time.Now()
	for _, skew := range []time.Duration{hour, -hour} {
		l, err := s.Acquire(ctx, a, "skewed", now.Add(skew), ttl)
		require.NoError(t, err)
		require.Equal(t, now.Add(skew+ttl), l.Until, "the worker renews by its clock")
		_, err = s.Acquire(ctx, a, "ahead", now.Add(hour), ttl)
		require.ErrorIs(t, err, eoa.ErrHeld)
		l, err = s.Renew(ctx, l, now.Add(skew), short)
		require.NoError(t, err)
		require.Equal(t, now.Add(skew+short), l.Until)
		wait.Until(t, func() bool {
			due, err := s.Due(ctx, time.Now(), 1)
			require.NoError(t, err)
			return len(due) == 1
		}, "the account is due")
		wait.Until(t, func() bool {
			next, err := s.Acquire(ctx, a, "right", time.Now(), ttl)
			if !errors.Is(err, eoa.ErrHeld) {
				require.NoError(t, err)
			}
			return err == nil && next.Epoch > l.Epoch
		}, "the lease has ended")
		_, err = s.Renew(ctx, l, now.Add(skew), ttl)
		require.ErrorIs(t, err, eoa.ErrFenced)
		require.NoError(t, s.Break(ctx, a))
	}
	require.NoError(t, client.Close())
	_, err = s.Acquire(ctx, a, "right", now, ttl)
	require.Error(t, err, "no time is known")
}

func TestConformance(t *testing.T) {
	client := server(t)
	storetest.Run(t, func() eoa.Store {
		s, err := New(client, "test", simulated)
		require.NoError(t, err)
		return s
	})
	keys, err := client.Keys(context.Background(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		require.True(t, key == "test:due" || strings.HasPrefix(key, "test:{"), "%q is in no account's slot", key)
	}
}

func TestPrefix(t *testing.T) {
	for _, prefix := range []string{"", "a{b", "}"} {
		_, err := New(redis.NewClient(&redis.Options{}), prefix, Options{})
		require.Error(t, err, "%q", prefix)
	}
}

// Many stores, as if in different processes, write one account at once. No
// write is lost or duplicated.
func TestManyWriters(t *testing.T) {
	client := server(t)
	a := eoa.Account{ChainID: 1, Address: common.Address{1}}
	const writers, each = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			s, err := New(client, "test", simulated) // no lock in common
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				for _, key := range []string{fmt.Sprint(w, "/", i), fmt.Sprint("same ", i)} {
					if _, err := s.Submit(context.Background(), a, time.Now(), eoa.Request{Key: key}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	records, err := s.List(context.Background(), a, 0, 10_000)
	require.NoError(t, err)
	require.Len(t, records, writers*each+each)
	for i := range records {
		require.EqualValues(t, i+1, records[i].ID)
	}
}

// again is a client that sends each script that writes twice, as if the first answer was
// lost, and calls between in between.
type again struct{ between func() }

func (again) DialHook(next redis.DialHook) redis.DialHook { return next }
func (again) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a again) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := next(ctx, cmd); err != nil || cmd.Name() != "evalsha" || cmd.Args()[1] != writeIf.Hash() {
			return err
		}
		a.between()
		return next(ctx, cmd)
	}
}

// A step whose answer was lost is not done twice, even if steps of others came
// before the retry.
func TestWriteTwice(t *testing.T) {
	ctx, now, a := context.Background(), time.Now(), eoa.Account{ChainID: 1, Address: common.Address{1}}
	for others := range 3 {
		client := server(t)
		other, err := New(client, "test", simulated)
		require.NoError(t, err)
		twice := redis.NewClient(client.Options())
		defer func() { _ = twice.Close() }()
		n := 0
		twice.AddHook(again{func() {
			for range others {
				n++
				_, err := other.Submit(ctx, a, now, eoa.Request{Key: fmt.Sprint(n)})
				require.NoError(t, err)
			}
		}})
		s, err := New(twice, "test", simulated)
		require.NoError(t, err)
		// The server knows the script from here on.
		require.NoError(t, other.Order(ctx, a, now, eoa.Order{Kind: account.OrderReset}))
		require.NoError(t, s.Order(ctx, a, now, eoa.Order{Kind: account.OrderReset, Force: true}))
		in, err := s.Inbox(ctx, a, 10)
		require.NoError(t, err)
		require.Len(t, in.Orders, 2)
		l, err := s.Acquire(ctx, a, "w", now, time.Minute)
		require.NoError(t, err)
		loaded, err := s.Load(ctx, l)
		require.NoError(t, err)
		_, err = s.Commit(ctx, l, now, eoa.Batch{Head: loaded.Head, Events: []eoa.Event{{Kind: eoa.EventReset}}})
		require.NoError(t, err)
		events, err := s.Events(ctx, a, 0, 10)
		require.NoError(t, err)
		require.Len(t, events, 1)
	}
}

// An order whose answer was lost is stored once, whatever others did before the
// retry, because it may have been carried out meanwhile.
func TestOrderOnce(t *testing.T) {
	ctx, now, a := context.Background(), time.Now(), eoa.Account{ChainID: 1, Address: common.Address{1}}
	client := server(t)
	other, err := New(client, "test", simulated)
	require.NoError(t, err)
	twice := redis.NewClient(client.Options())
	defer func() { _ = twice.Close() }()
	n := 0
	twice.AddHook(again{func() {
		for range 20 {
			n++
			_, err := other.Submit(ctx, a, now, eoa.Request{Key: fmt.Sprint(n)})
			require.NoError(t, err)
			require.NoError(t, other.Order(ctx, a, now, eoa.Order{Kind: account.OrderReset}))
		}
	}})
	s, err := New(twice, "test", simulated)
	require.NoError(t, err)
	// The server knows the script from here on.
	require.NoError(t, other.Order(ctx, a, now, eoa.Order{Kind: account.OrderReset}))
	for i := range 3 {
		require.NoError(t, s.Order(ctx, a, now, eoa.Order{Kind: account.OrderCancel, Key: fmt.Sprint(i)}))
	}
	in, err := other.Inbox(ctx, a, 1)
	require.NoError(t, err)
	cancels := 0
	for _, o := range in.Orders {
		if o.Kind == account.OrderCancel {
			cancels++
		}
	}
	require.Equal(t, 3, cancels)
	require.Len(t, in.Orders, n+1+3)
}

// A scan fetches no more than its limit, and all pages up to it.
func TestScanFetchesWhatIsAskedFor(t *testing.T) {
	ctx, now, a := context.Background(), time.Now(), eoa.Account{ChainID: 1, Address: common.Address{1}}
	client := server(t)
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	const n = page + 500
	requests := make([]eoa.Request, n)
	for i := range requests {
		requests[i] = eoa.Request{Key: fmt.Sprint(i), Metadata: make([]byte, 1000)}
	}
	_, err = s.Submit(ctx, a, now, requests...)
	require.NoError(t, err)
	sent := func() (bytes int) {
		info, err := client.Info(ctx, "stats").Result()
		require.NoError(t, err)
		_, at, _ := strings.Cut(info, "total_net_output_bytes:")
		_, err = fmt.Sscan(at, &bytes)
		require.NoError(t, err)
		return bytes
	}
	for _, limit := range []int{3, page, page + 1, n, n + 1} {
		before := sent()
		records, err := s.List(ctx, a, 0, limit)
		require.NoError(t, err)
		require.Len(t, records, min(limit, n))
		require.Less(t, sent()-before, 1200*limit+20_000)
	}
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// Two executors on one Redis lose the account to each other at random. Every
// request lands once.
func TestExecutors(t *testing.T) {
	client := server(t)
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
	require.NoError(t, err)
	const chainID, n = 99, 40
	a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	chain, now := eoatest.New(chainID, 1, 3), &clock{time.Unix(1_800_000_000, 0)}
	chain.SetFaults(eoatest.Faults{DropResponse: 0.2, Reorg: 0.1, ReorgDepth: 3})
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.Batch = now.Now, 7
	var both []*eoa.Executor
	for range 2 {
		s, err := New(client, "test", simulated)
		require.NoError(t, err)
		e, err := eoa.New(cfg, a, s, chain, eoa.NewKeySigner(chainID, key))
		require.NoError(t, err)
		both = append(both, e)
	}
	ctx := context.Background()
	for i := range n {
		_, err := both[i%2].Submit(ctx, eoa.Request{Key: fmt.Sprint(i), Data: []byte(fmt.Sprint(i)), Gas: 50_000})
		require.NoError(t, err)
	}
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	for i := range 400 {
		if i%5 == 0 && i < 100 {
			require.NoError(t, s.Break(ctx, a))
		}
		if i == 150 {
			chain.SetFaults(eoatest.Faults{})
		}
		_, _ = both[i%2].Step(ctx)
		chain.Mine()
		now.now = now.now.Add(3 * time.Second)
		if r, err := s.Get(ctx, a, fmt.Sprint(n-1)); err == nil && r.State == eoa.Final && i > 160 {
			break
		}
	}
	landed := map[string]int{}
	for _, tx := range chain.Transactions() {
		landed[string(tx.Data())]++
	}
	for i := range n {
		require.Equal(t, 1, landed[fmt.Sprint(i)], "request %d", i)
	}
}

// The store's step beside a bare script that the same server runs with the same bytes.
func BenchmarkCommit(b *testing.B) {
	client := server(b)
	s, err := New(client, "bench", simulated)
	require.NoError(b, err)
	storetest.Benchmark(b, s, func(records [][]byte) error {
		args := []any{"g", "-", ""}
		for i, r := range records {
			args = append(args, "i", strconv.Itoa(i), r)
		}
		return writeIf.Run(context.Background(), client, []string{"raw:{a}", "order:{a}"}, args...).Err()
	})
}

// A process that loses a race for a step leaves an entry in the due index. The
// next reader of the index deletes it.
func TestIndexIsTidied(t *testing.T) {
	client := server(t)
	ctx, now := context.Background(), time.Unix(1_800_000_000, 0)
	a := eoa.Account{ChainID: 1, Address: common.Address{1}}
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	_, err = s.Acquire(ctx, a, "w", now, time.Minute)
	require.NoError(t, err)
	_, err = s.Due(ctx, now, 1)
	require.NoError(t, err)
	entries, err := client.ZRange(ctx, "test:due", 0, -1).Result()
	require.NoError(t, err)
	require.Len(t, entries, 2, "with the member \"whole\"")
	for i := range 50 { // of leases that ended earlier, or later
		at := fmt.Sprintf("due:%020d", now.Add(time.Duration(i)*time.Minute/25).UnixNano())
		lost := at + entries[0][len(at):]
		require.NoError(t, (&kv{client: client, prefix: "test"}).index(ctx, []any{lost}, nil))
	}
	due, err := s.Due(ctx, now.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Equal(t, []eoa.Account{a}, due)
	left, err := client.ZRange(ctx, "test:due", 0, -1).Result()
	require.NoError(t, err)
	require.Equal(t, entries, left)
}

// An operator can read the store with redis-cli: all names are text, and the values of
// meta, orders and events are JSON.
func TestReadableLayout(t *testing.T) {
	client := server(t)
	ctx, now := context.Background(), time.Unix(1_800_000_000, 0)
	a := eoa.Account{ChainID: 1, Address: common.Address{1}}
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	l, err := s.Acquire(ctx, a, "w", now, time.Minute)
	require.NoError(t, err)
	records, err := s.Submit(ctx, a, now, eoa.Request{Key: "invoice 1"}, eoa.Request{Key: "invoice 2", Priority: 7})
	require.NoError(t, err)
	records[0].State, records[0].Attempts = eoa.Prepared, []eoa.Attempt{{Hash: common.Hash{5}}}
	_, err = s.Commit(ctx, l, now, eoa.Batch{Records: records[:1], Events: []eoa.Event{{Kind: eoa.EventSubmitted}}})
	require.NoError(t, err)
	require.NoError(t, s.Order(ctx, a, now, eoa.Order{Kind: account.OrderCancel, Key: "invoice 2"}))

	account := "test:{1:" + a.Address.Hex() + "}"
	names, err := client.HKeys(ctx, account+":values").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"meta", "ordered", "indexed", "key:invoice 1", "key:invoice 2", "hash:05" + strings.Repeat("00", 31),
		"record:00000000000000000001", "record:00000000000000000002", "digest:00000000000000000001", "digest:00000000000000000002",
		"open:00000000000000000001", "pending:00000000002147483640:00000000000000000002", "event:00000000000000000001", "order:00000000000000000001",
	}, names)
	for _, name := range []string{"meta", "event:00000000000000000001", "order:00000000000000000001"} {
		value, err := client.HGet(ctx, account+":values", name).Result()
		require.NoError(t, err)
		require.True(t, json.Valid([]byte(value)), "%s: %s", name, value)
	}
	due, err := client.ZRange(ctx, "test:due", 0, -1).Result()
	require.NoError(t, err)
	for _, entry := range due {
		require.Regexp(t, `^(due:\d{20}:\d{20}:0x[0-9a-f]{40}|undelivered:\d{20}:0x[0-9a-f]{40}:\d{20})$`, entry)
	}
	require.NotEmpty(t, due)
}

// undelivered returns the accounts with undelivered events.
func undelivered(t *testing.T, s eoa.Store) []eoa.Account {
	t.Helper()
	all, err := s.Undelivered(context.Background(), eoa.Account{}, 10)
	require.NoError(t, err)
	return all
}

// One process takes events while another adds some, without a lock in common. At
// the end the index has the account if and only if events are left, also if the
// process that took the first ones deletes their index entry late.
func TestUndeliveredOfTwoProcesses(t *testing.T) {
	client := server(t)
	ctx, now := context.Background(), time.Unix(1_800_000_000, 0)
	worker, err := New(client, "test", simulated)
	require.NoError(t, err)
	other, err := New(client, "test", simulated)
	require.NoError(t, err)
	version := uint64(0)
	a := eoa.Account{ChainID: 1, Address: common.Address{1}}
	lease, err := worker.Acquire(ctx, a, "w", now, time.Hour)
	require.NoError(t, err)
	emit := func() {
		_, err := worker.Commit(ctx, lease, now, eoa.Batch{Head: account.Head{Version: version}, Events: make([]eoa.Event, 1)})
		require.NoError(t, err)
		version++
	}
	entries := func() (all []any) {
		members, err := client.ZRange(ctx, "test:due", 0, -1).Result()
		require.NoError(t, err)
		for _, m := range members {
			all = append(all, m)
		}
		return all
	}
	require.Empty(t, undelivered(t, worker))
	lastDue := entries()
	for range 50 {
		emit()
		first := entries()
		taken := make(chan error)
		go func(through uint64) { taken <- other.Acknowledge(ctx, a, through) }(version)
		emit()
		require.NoError(t, <-taken)
		require.Equal(t, []eoa.Account{a}, undelivered(t, worker), "one of two is left")
		require.NoError(t, other.Acknowledge(ctx, a, version))
		require.Empty(t, undelivered(t, worker))

		emit()
		require.NoError(t, (&kv{client: client, prefix: "test"}).index(ctx, nil, first[1:2]))
		require.Equal(t, []eoa.Account{a}, undelivered(t, other), "an old entry was deleted late")
		require.NoError(t, (&kv{client: client, prefix: "test"}).index(ctx, first, nil))
		require.NoError(t, other.Acknowledge(ctx, a, version))
		require.Empty(t, undelivered(t, worker), "an old entry is no proof")
		require.Equal(t, lastDue, entries(), "it is deleted")
	}
}

// BenchmarkExecutor measures everything from Submit to final, from one account
// in batches. Each transaction is prepared, broadcast, mined and final, which
// are four transitions.
func BenchmarkExecutor(b *testing.B) {
	s, err := New(server(b), "bench", simulated)
	require.NoError(b, err)
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
	require.NoError(b, err)
	const chainID, batch, transitions = 99, 500, 4
	chain, now := eoatest.New(chainID, 1, 2), &clock{time.Unix(1_800_000_000, 0)}
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.Batch, cfg.MaxInFlight, cfg.MaxUnsure, cfg.Confirmations = now.Now, batch, 4*batch, 4*batch, 1
	a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	e, err := eoa.New(cfg, a, s, chain, eoa.NewKeySigner(chainID, key))
	require.NoError(b, err)
	n := 0
	for b.Loop() {
		var q []eoa.Request
		for range batch {
			n++
			q = append(q, eoa.Request{Key: fmt.Sprint(n), To: &a.Address, Gas: 21_000})
		}
		_, err := e.Submit(context.Background(), q...)
		require.NoError(b, err)
		_, err = e.Step(context.Background())
		require.NoError(b, err)
		chain.Mine()
		now.now = now.now.Add(cfg.Poll)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "transactions/s")
	b.ReportMetric(float64(transitions*n)/b.Elapsed().Seconds(), "transitions/s")
}
