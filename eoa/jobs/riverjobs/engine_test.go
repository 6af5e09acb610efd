package riverjobs_test

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/wait"
)

const chainID = 97

func keys(n int) (keys []*ecdsa.PrivateKey, accounts []eoa.Account) {
	for i := range n {
		key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{byte((i + 1) >> 8), byte(i + 1)}, 32))
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
		accounts = append(accounts, eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)})
	}
	return keys, accounts
}

// quick returns a configuration for blocks every few milliseconds. There is no
// sweep, so a lost wake-up is never repaired.
func quick(schema string) riverjobs.Config {
	cfg := riverjobs.DefaultConfig()
	cfg.Schema, cfg.Sweep, cfg.Poll = schema, time.Hour, 20*time.Millisecond
	e := &cfg.Jobs.Executor
	e.Poll, e.Retry, e.Rebroadcast, e.LeaseFor, e.Confirmations = 20*time.Millisecond, 20*time.Millisecond, 300*time.Millisecond, time.Minute, 1
	e.Batch, e.MaxInFlight, e.MaxUnsure = 10, 20, 20
	cfg.Jobs.Linger, cfg.Jobs.Slice, cfg.Timeout = 100*time.Millisecond, 500*time.Millisecond, 10*time.Minute
	return cfg
}

// world is some accounts, a chain and a store.
type world struct {
	t        *testing.T
	cfg      riverjobs.Config
	pool     *pgxpool.Pool
	queries  queries
	mining   bool
	chain    *eoatest.Chain
	store    eoa.Store
	keys     []*ecdsa.PrivateKey
	accounts []eoa.Account
	open     eoa.Opener
}

func newWorld(t *testing.T, accounts int) *world {
	w := &world{t: t, chain: eoatest.New(chainID, 1, 2), store: memstore.New()}
	var schema string
	w.pool, schema = database(t, &w.queries)
	w.cfg = quick(schema)
	w.keys, w.accounts = keys(accounts)
	w.open = func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return w.chain, eoa.NewKeySigner(chainID, w.keys...), nil
	}
	return w
}

// mine lets each look of the test make a block from now on.
func (w *world) mine() { w.mining = true }

// until waits until a condition holds.
func (w *world) until(holds func() bool, state string) {
	w.t.Helper()
	wait.Until(w.t, func() bool {
		if w.mining {
			w.chain.Mine()
		}
		return holds()
	}, "%s", state)
}

// engine returns one that submits.
func (w *world) engine() *riverjobs.Engine {
	e, err := riverjobs.New(w.cfg, w.pool, w.store, w.open)
	require.NoError(w.t, err)
	return e
}

// running returns one that works until stop is called, or the test ends.
func (w *world) running() (e *riverjobs.Engine, stop func()) {
	e = w.engine()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.ErrorIs(w.t, <-ended, context.Canceled)
	})
	w.t.Cleanup(stop)
	return e, stop
}

func request(name string) eoa.Request {
	return eoa.Request{Key: name, Data: []byte(name), Gas: 50_000}
}

// land waits until n requests are on the chain, each exactly once.
func (w *world) land(n int) {
	w.t.Helper()
	w.until(func() bool { return len(w.chain.Transactions()) >= n }, "all requests are on the chain")
	landed := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		landed[string(tx.Data())]++
	}
	require.Len(w.t, landed, n)
	for name, times := range landed {
		require.Equal(w.t, 1, times, name)
	}
}

// rows counts jobs by a condition.
func (w *world) rows(where string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+w.cfg.Schema+".river_job WHERE "+where).Scan(&n))
	return n
}

const alive = "state NOT IN ('completed', 'cancelled', 'discarded')"

// idle waits until no job is left.
func (w *world) idle() {
	w.t.Helper()
	w.until(func() bool { return w.rows(alive) == 0 }, "no job is left")
}

// slow is a store some milliseconds away.
type slow struct{ eoa.Store }

func away(ctx context.Context) { wait.Pace(ctx, time.Duration(rand.IntN(4000))*time.Microsecond) }

func (s slow) Park(ctx context.Context, l eoa.Lease, wake uint64, due time.Time) error {
	away(ctx)
	defer away(ctx)
	return s.Store.Park(ctx, l, wake, due)
}

func (s slow) Inbox(ctx context.Context, a eoa.Account, limit int) (eoa.Inbox, error) {
	away(ctx)
	defer away(ctx)
	return s.Store.Inbox(ctx, a, limit)
}

// A thousand requests, two for each account in each round, meet jobs of two
// engines at random moments. A job runs until its account is idle. Without a
// sweep, a round ends only if no wake-up is lost.
func TestNoLostWakeUp(t *testing.T) {
	w := newWorld(t, 10)
	w.store = slow{w.store}
	w.mine()
	e1, _ := w.running()
	e2, _ := w.running()
	const rounds, each = 50, 2
	for round := range rounds {
		var all sync.WaitGroup
		for k, a := range w.accounts {
			all.Go(func() {
				for i := range each {
					wait.Pace(t.Context(), time.Duration(rand.IntN(120_000))*time.Microsecond)
					e := []*riverjobs.Engine{e1, e2}[rand.IntN(2)]
					if _, err := e.Submit(t.Context(), a, request(fmt.Sprint(round, "/", k, "/", i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		submitted := make(chan struct{})
		go func() { defer close(submitted); all.Wait() }()
		w.until(func() bool {
			select {
			case <-submitted:
				return true
			default:
				return false
			}
		}, "all requests are submitted")
		w.land((round + 1) * each * len(w.accounts))
		if round%2 == 0 {
			w.idle() // the others meet jobs that are about to end
		}
	}
	w.idle()
	runs := w.rows("true")
	t.Logf("%d requests in %d runs of jobs", rounds*each*len(w.accounts), runs)
	require.GreaterOrEqual(t, runs, rounds*len(w.accounts)/2, "jobs ended")
	for _, a := range w.accounts {
		_, err := w.store.Acquire(t.Context(), a, "test", time.Now(), time.Second)
		require.NoError(t, err, "nobody holds an idle account")
	}
}

// watched is a store that reports the read that a run makes before it ends.
type watched struct {
	eoa.Store
	before, after func()
}

func (s *watched) Inbox(ctx context.Context, a eoa.Account, limit int) (eoa.Inbox, error) {
	if limit == 1 && s.before != nil {
		s.before()
	}
	in, err := s.Store.Inbox(ctx, a, limit)
	if limit == 1 && s.after != nil {
		s.after()
	}
	return in, err
}

// A request arrives just before, or just after, a run's last read of the wake
// version. In the second case its wake-up waits until the job has ended; it is
// neither refused nor too early.
func TestWakeMeetsTheEnd(t *testing.T) {
	for name, moment := range map[string]func(*watched, func()){
		"before the look": func(s *watched, f func()) { s.before = f },
		"after the look":  func(s *watched, f func()) { s.after = f },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			store := &watched{Store: w.store}
			w.store = store
			var all sync.WaitGroup
			defer all.Wait()
			other := w.engine() // a process that only submits
			moment(store, sync.OnceFunc(func() {
				all.Go(func() {
					if _, err := other.Submit(context.Background(), w.accounts[0], request("late")); err != nil {
						t.Error(err)
					}
				})
				for t.Context().Err() == nil && !w.waiting() { // its wake-up waits for the end
				}
			}))
			w.mine()
			e, _ := w.running()
			_, err := e.Submit(t.Context(), w.accounts[0], request("early"))
			require.NoError(t, err)
			w.land(2)
			w.idle()
		})
	}
}

// waiting reports whether a session waits for another one's transaction.
func (w *world) waiting() bool {
	var n int
	err := w.pool.QueryRow(context.Background(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'").Scan(&n)
	return err == nil && n > 0
}

// While its transaction waits for a block, an account is suspended. A new
// request is still sent at once, and later the account resumes by itself.
func TestSuspended(t *testing.T) {
	w := newWorld(t, 1)
	x := &w.cfg.Jobs.Executor
	// The account is due in 20 s.
	x.Poll, x.LeaseFor, x.Rebroadcast = time.Minute, time.Minute, time.Minute
	x.Now = nil
	e, stop := w.running()
	_, err := e.Submit(t.Context(), w.accounts[0], request("first"))
	require.NoError(t, err)
	suspended := func() bool {
		return w.rows("state = 'scheduled' AND scheduled_at > now() + interval '15 seconds'") == 1
	}
	w.until(suspended, "the account is suspended")
	require.Equal(t, 1, w.chain.Pooled())
	_, err = w.store.Acquire(t.Context(), w.accounts[0], "test", time.Now(), time.Second)
	require.NoError(t, err, "a suspended account has no lease")
	require.NoError(t, w.store.Break(t.Context(), w.accounts[0]))

	began := time.Now()
	_, err = e.Submit(t.Context(), w.accounts[0], request("second"))
	require.NoError(t, err)
	w.until(func() bool { return w.chain.Pooled() == 2 }, "the second is sent")
	t.Logf("woken and sent after %v", time.Since(began))
	w.until(suspended, "the account is suspended")
	stop()

	w.mine()
	x.Poll, x.LeaseFor = 20*time.Millisecond, time.Second
	require.NoError(t, w.engine().Wake(t.Context(), w.accounts[0])) // by one that does not work
	w.running()
	w.land(2)
	w.idle()
}

// River's scheduler and the sweep resume accounts, and the sweep finds requests
// without a wake-up.
func TestSweep(t *testing.T) {
	w := newWorld(t, 3)
	w.cfg.Sweep, w.cfg.Jobs.Linger = 50*time.Millisecond, 0 // suspended after each step
	w.mine()
	w.running()
	for i, a := range w.accounts {
		_, err := w.store.Submit(t.Context(), a, time.Now(), request(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	w.land(len(w.accounts))
	w.idle()
}

// A job that was taken for dead and runs again in another attempt cannot end
// the job.
func TestTakenForDead(t *testing.T) {
	w := newWorld(t, 1)
	var opened atomic.Int32
	w.open = func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		if opened.Add(1) == 1 {
			_, err := w.pool.Exec(context.Background(), "UPDATE "+w.cfg.Schema+".river_job SET attempt = attempt + 1 WHERE state = 'running'")
			require.NoError(t, err)
		}
		return w.chain, eoa.NewKeySigner(chainID, w.keys...), nil
	}
	w.mine()
	e, _ := w.running()
	_, err := e.Submit(t.Context(), w.accounts[0], request("a"))
	require.NoError(t, err)
	w.land(1)
	w.idle()
	require.Equal(t, 1, w.rows("array_length(errors, 1) = 1 AND errors[1]->>'error' LIKE '%no longer running in attempt 1'"))
}

// If the chain cannot be opened, the job is retried with growing waits. A
// stopped process leaves its jobs to others.
func TestFailing(t *testing.T) {
	w := newWorld(t, 1)
	open, fails := w.open, 3
	var opened atomic.Int32
	w.open = func(a eoa.Account) (eoa.Chain, eoa.Signer, error) {
		if int(opened.Add(1)) <= fails {
			return nil, nil, errors.New("no route to host")
		}
		return open(a)
	}
	e, stop := w.running()
	_, err := e.Submit(t.Context(), w.accounts[0], request("a"))
	require.NoError(t, err)
	w.until(func() bool { return w.chain.Pooled() == 1 }, "the request is sent")
	stop() // in the middle: nothing is mined
	require.Equal(t, 1, w.rows(alive))
	require.Zero(t, w.rows("state = 'running'"))
	_, err = w.store.Acquire(t.Context(), w.accounts[0], "test", time.Now(), time.Millisecond)
	require.NoError(t, err, "given back")
	w.mine()
	_, _ = w.running()
	w.land(1)
	w.idle()
}

func TestRefused(t *testing.T) {
	w := newWorld(t, 1)
	e := w.engine()
	_, err := e.Submit(t.Context(), w.accounts[0], eoa.Request{})
	require.ErrorIs(t, err, eoa.ErrInvalidRequest)
	_, err = e.Submit(t.Context(), w.accounts[0], request("a"))
	require.NoError(t, err)
	_, err = e.Submit(t.Context(), w.accounts[0], eoa.Request{Key: "a", Data: []byte("b"), Gas: 50_000})
	require.ErrorIs(t, err, eoa.ErrKeyReused)
	require.Equal(t, 1, w.rows(alive), "one job")

	for name, change := range map[string]func(*riverjobs.Config){
		"Schema":  func(c *riverjobs.Config) { c.Schema = "" },
		"Workers": func(c *riverjobs.Config) { c.Workers = 0 },
		"Poll":    func(c *riverjobs.Config) { c.Poll = 0 },
		"Sweep":   func(c *riverjobs.Config) { c.Sweep = 0 },
		"Timeout": func(c *riverjobs.Config) { c.Timeout = c.Jobs.Slice },
		"Jobs":    func(c *riverjobs.Config) { c.Jobs.Linger = -1 },
	} {
		cfg := riverjobs.DefaultConfig()
		change(&cfg)
		_, err := riverjobs.New(cfg, w.pool, w.store, w.open)
		require.ErrorIs(t, err, eoa.ErrInvalidConfig, name)
	}
	_, err = riverjobs.New(riverjobs.DefaultConfig(), nil, w.store, w.open)
	require.ErrorIs(t, err, eoa.ErrInvalidConfig)
	_, err = riverjobs.New(riverjobs.DefaultConfig(), w.pool, nil, w.open)
	require.ErrorIs(t, err, eoa.ErrInvalidConfig)
	require.Error(t, riverjobs.Migrate(t.Context(), w.pool, ""))
}
