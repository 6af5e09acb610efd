//go:build unix

package eoa_test

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/eoa/memstore"
)

// counted is a key-value store and a chain that count the calls to them.
type counted struct {
	kvstore.KV
	*eoatest.Chain
	calls *atomic.Int64
}

func (c counted) Get(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	c.calls.Add(1)
	return c.KV.Get(ctx, keys...)
}

func (c counted) Scan(ctx context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error {
	c.calls.Add(1)
	return c.KV.Scan(ctx, from, to, limit, f)
}

func (c counted) Write(ctx context.Context, entries []kvstore.Entry) error {
	c.calls.Add(1)
	return c.KV.Write(ctx, entries)
}

func (c counted) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	c.calls.Add(1)
	return c.Chain.Look(ctx, a)
}

// idlers are idle accounts, each with a running executor, and a fleet beside
// them.
type idlers struct {
	counted
	executors []*eoa.Executor
	fleet     *eoa.Fleet
}

func newIdlers(t testing.TB, accounts int) *idlers {
	w := newWorld(t, 1, 0)
	w.cfg.Now = nil
	i := &idlers{counted: counted{memstore.NewKV(), w.chain, new(atomic.Int64)}}
	store := kvstore.New(i.counted)
	for k := range accounts {
		e, err := eoa.New(w.cfg, eoa.Account{ChainID: testChain, Address: common.Address{byte(k >> 8), byte(k)}}, store, i.counted, w.signer)
		require.NoError(t, err)
		i.executors = append(i.executors, e)
	}
	cfg := eoa.DefaultFleetConfig()
	cfg.Executor = w.cfg
	var err error
	i.fleet, err = eoa.NewFleet(cfg, store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return i.counted, w.signer, nil })
	require.NoError(t, err)
	return i
}

// run starts all of them; the function that it returns waits for their ends.
func (i *idlers) run(ctx context.Context) (wait func()) {
	var all sync.WaitGroup
	for _, e := range i.executors {
		all.Go(func() { _ = e.Run(ctx) })
	}
	all.Go(func() { _ = i.fleet.Run(ctx) })
	return all.Wait
}

func (i *idlers) head() {
	for _, e := range i.executors {
		e.NewHead()
	}
	i.fleet.NewHead(testChain)
}

// Ten thousand idle accounts call neither the store nor the chain, with or
// without new heads. A fleet makes one call to the store per interval, for all
// accounts.
func TestIdleAccountsAskNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdlers(t, 10_000)
		ctx, cancel := context.WithCancel(t.Context())
		wait := i.run(ctx)
		synctest.Wait() // all have looked once, and rest
		before := i.calls.Load()
		const heads, between = 20, 12 * time.Second
		for range heads {
			time.Sleep(between)
			i.head()
		}
		synctest.Wait()
		require.EqualValues(t, heads*between/time.Second, i.calls.Load()-before, "the fleet's, each second")
		cancel()
		wait()
	})
}

// The share of a CPU that ten thousand idle accounts and a fleet take between heads.
func BenchmarkIdle(b *testing.B) {
	i := newIdlers(b, 10_000)
	ctx, cancel := context.WithCancel(context.Background())
	wait := i.run(ctx)
	for before := int64(-1); before != i.calls.Load(); { // until all rest
		before = i.calls.Load()
		time.Sleep(300 * time.Millisecond)
	}
	began := busy()
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
	}
	b.ReportMetric(100*(busy()-began).Seconds()/b.Elapsed().Seconds(), "%-of-a-core")
	cancel()
	wait()
}

// busy is the time that the process has taken of cores.
func busy() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
