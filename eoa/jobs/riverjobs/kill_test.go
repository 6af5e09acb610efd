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
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/eoa/redisstore"
)

const killAccounts, killRequests, kills = 3, 100, 10 // requests of each account

// work is the program of a process. It submits all requests, as a program does
// that was restarted after a kill, and sends until it is killed.
func work(chain, redisAddr, database, schema string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	store, err := redisstore.New(redis.NewClient(&redis.Options{Addr: redisAddr}), "test")
	if err != nil {
		return err
	}
	secrets, accounts := keys(killAccounts)
	e, err := riverjobs.New(quick(schema), pool, store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return eoatest.Far(chain), eoa.NewKeySigner(chainID, secrets...), nil
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
// killed at a random moment under load and a new one started. Every request of
// every account lands exactly once without a sweep: River restarts the jobs of
// dead processes.
func TestKill(t *testing.T) {
	w := newWorld(t, killAccounts)
	addr := redisServer(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	store, err := redisstore.New(client, "test")
	require.NoError(t, err)
	w.chain.SetPerBlock(1) // so that there is work until the last kill
	w.chain.SetFaults(eoatest.Faults{DropResponse: 0.1, DropRequest: 0.05, Reorg: 0.02, ReorgDepth: 2, LosePool: 0.01})
	web := httptest.NewServer(eoatest.Handler(w.chain))
	defer web.Close()
	w.mine()
	self, err := os.Executable()
	require.NoError(t, err)
	start := func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "JAMQ_TEST_CHAIN="+web.URL, "JAMQ_TEST_REDIS="+addr, "JAMQ_TEST_POSTGRES="+w.pool.Config().ConnString(),
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
	rng := rand.New(rand.NewPCG(1, 1))
	for range kills {
		time.Sleep(time.Duration(100+rng.IntN(400)) * time.Millisecond)
		k := rng.IntN(2)
		require.NoError(t, workers[k].Process.Kill())
		_ = workers[k].Wait()
		workers[k] = start()
	}
	stuck := w.rows("state = 'running'")
	t.Logf("%d of %d are final after the last kill, %d jobs run or are taken to", final(), killAccounts*killRequests, stuck)
	require.Less(t, final(), killAccounts*killRequests*9/10, "the last kills killed nobody at work")
	w.chain.SetFaults(eoatest.Faults{})
	w.chain.SetPerBlock(50)
	began := time.Now()
	require.Eventually(t, func() bool { return final() == killAccounts*killRequests }, 2*time.Minute, 100*time.Millisecond)
	t.Logf("all are, %v later; %d jobs were taken over", time.Since(began).Round(time.Second), w.rows("metadata ? 'river:rescue_count'"))
	landed := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		if len(tx.Data()) > 0 {
			landed[string(tx.Data())]++
		}
	}
	require.Len(t, landed, killAccounts*killRequests)
	for name, times := range landed {
		require.Equal(t, 1, times, name)
	}
}
