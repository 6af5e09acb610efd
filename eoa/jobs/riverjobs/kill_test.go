package riverjobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/far"
	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/eoa/redisstore"
)

const killAccounts, killRequests, kills = 3, 100, 10 // requests of each account

// work is the program of a process. It submits all requests, as a program does
// that was restarted after a kill, and sends until it is killed.
func work(chain, redisPath, database, schema string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	store, err := redisstore.New(dialRedis(redisPath), "test", redisstore.Options{})
	if err != nil {
		return err
	}
	secrets, accounts := keys(killAccounts)
	cfg := quick(schema)
	// After a second, River restarts the jobs of dead processes, whose leases then end.
	cfg.Timeout, cfg.Jobs.Executor.LeaseFor = time.Second, time.Second
	e, err := riverjobs.New(cfg, pool, store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return far.Chain(chain), eoa.NewKeySigner(chainID, secrets...), nil
	})
	if err != nil {
		return err
	}
	go func() {
		for i := range killRequests {
			for _, a := range accounts {
				for name := fmt.Sprint(a.Address, i); ; {
					if _, err := e.Submit(ctx, a, request(name)); err == nil {
						break
					}
				}
			}
		}
	}()
	return e.Run(ctx)
}

// Two processes share a PostgreSQL and a Redis. Several times, one of them is
// killed under load and a new one started. Every request of
// every account lands exactly once without a sweep: River restarts the jobs of
// dead processes.
func TestKill(t *testing.T) {
	w := newWorld(t, killAccounts)
	path := redisServer(t)
	client := dialRedis(path)
	defer func() { _ = client.Close() }()
	store, err := redisstore.New(client, "test", redisstore.Options{})
	require.NoError(t, err)
	w.chain.SetPerBlock(1)
	w.chain.SetFaults(eoatest.Faults{DropResponse: 0.1, DropRequest: 0.05, Reorg: 0.02, ReorgDepth: 2, LosePool: 0.01})
	web := httptest.NewServer(far.Handler(w.chain))
	defer web.Close()
	w.mine()
	self, err := os.Executable()
	require.NoError(t, err)
	start := func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "JAMQ_TEST_CHAIN="+web.URL, "JAMQ_TEST_REDIS="+path, "JAMQ_TEST_POSTGRES="+w.pool.Config().ConnString(),
			"JAMQ_TEST_SCHEMA="+w.cfg.Schema)
		require.NoError(t, cmd.Start())
		return cmd
	}
	workers := [2]*exec.Cmd{start(), start()}
	defer func() {
		for _, w := range workers {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	}()
	final := func() (n int) {
		for _, a := range w.accounts {
			records, err := store.List(context.Background(), a, 0, 10_000)
			require.NoError(t, err)
			for i := range records {
				if records[i].State == eoa.Final && !records[i].Noop {
					n++
				}
			}
		}
		return n
	}
	// Blocks are made only while this test looks, so that work is left at each kill,
	// however fast the workers are.
	const all = killAccounts * killRequests
	rng := rand.New(rand.NewPCG(1, 1))
	for kill := range kills {
		some := (kill+1)*all/2/kills + rng.IntN(5)
		w.until(func() bool { return final() >= some }, "some requests are final")
		require.Less(t, final(), all, "the kill meets work")
		k := rng.IntN(2)
		require.NoError(t, workers[k].Process.Kill())
		_ = workers[k].Wait()
		workers[k] = start()
	}
	w.chain.SetFaults(eoatest.Faults{})
	w.chain.SetPerBlock(50)
	w.until(func() bool { return final() == all }, "all requests are final")
	t.Logf("%d jobs were taken over", w.rows("metadata ? 'river:rescue_count'"))
	landed := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		if len(tx.Data()) > 0 {
			landed[string(tx.Data())]++
		}
	}
	require.Len(t, landed, all)
	for name, times := range landed {
		require.Equal(t, 1, times, name)
	}
}
