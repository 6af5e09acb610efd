package redisstore

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

const killChain, killAccounts, killRequests = 97, 3, 150 // requests of each account

func killKeys() (keys []*ecdsa.PrivateKey) {
	for i := range byte(killAccounts) {
		key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{i + 1}, 32))
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// TestMain lets the test binary be a worker that TestKill kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("JAMQ_TEST_CHAIN"); url != "" {
		fmt.Fprintln(os.Stderr, work(eoatest.Far(url), os.Getenv("JAMQ_TEST_REDIS")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// work is the program of a process of a fleet. It submits all requests, as a
// program does that was restarted after a kill, and sends until it is killed.
func work(chain eoatest.Far, addr string) error {
	s, err := New(redis.NewClient(&redis.Options{Addr: addr}), "test")
	if err != nil {
		return err
	}
	cfg := eoa.DefaultFleetConfig()
	e := &cfg.Executor
	cfg.Interval, e.Poll, e.Retry, e.Rebroadcast, e.LeaseFor = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 300*time.Millisecond, time.Second
	e.Batch, e.MaxInFlight, e.MaxUnsure = 10, 20, 20
	fleet, err := eoa.NewFleet(cfg, s, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return chain, eoa.NewKeySigner(killChain, killKeys()...), nil
	})
	if err != nil {
		return err
	}
	go func() {
		for i := range killRequests {
			for _, key := range killKeys() {
				a := eoa.Account{ChainID: killChain, Address: crypto.PubkeyToAddress(key.PublicKey)}
				for name := fmt.Sprint(a.Address, i); ; {
					if _, err := fleet.Submit(context.Background(), a, eoa.Request{Key: name, Data: []byte(name), Gas: 50_000}); err == nil {
						break
					}
				}
			}
		}
	}()
	return fleet.Run(context.Background())
}

// Two processes of a fleet share a Redis. Twenty times, one of them is killed
// at a random moment under load and a new one started. Every request of every
// account lands exactly once.
func TestKill(t *testing.T) {
	client := server(t)
	chain := eoatest.New(killChain, 1, 4)
	chain.SetPerBlock(2) // so that there is work until the last kill
	chain.SetFaults(eoatest.Faults{DropResponse: 0.1, DropRequest: 0.05, Reorg: 0.05, ReorgDepth: 3, LosePool: 0.02})
	web := httptest.NewServer(eoatest.Handler(chain))
	t.Cleanup(web.Close)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			chain.Mine()
			time.Sleep(20 * time.Millisecond)
		}
	})
	defer all.Wait()
	defer stop()
	self, err := os.Executable()
	require.NoError(t, err)
	start := func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "JAMQ_TEST_CHAIN="+web.URL, "JAMQ_TEST_REDIS="+client.Options().Addr)
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
	s, err := New(client, "test")
	require.NoError(t, err)
	final := func() (n int) {
		for _, key := range killKeys() {
			records, err := s.List(ctx, eoa.Account{ChainID: killChain, Address: crypto.PubkeyToAddress(key.PublicKey)}, 0, 10_000)
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
	for range 20 {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		k := rng.IntN(2)
		require.NoError(t, workers[k].Process.Kill())
		_ = workers[k].Wait()
		workers[k] = start()
	}
	t.Logf("%d of %d are final after the last kill", final(), killAccounts*killRequests)
	require.Less(t, final(), killAccounts*killRequests*9/10, "the last kills killed nobody at work")
	chain.SetFaults(eoatest.Faults{})
	chain.SetPerBlock(50)
	require.Eventually(t, func() bool { return final() == killAccounts*killRequests }, 60*time.Second, 100*time.Millisecond)
	landed := map[string]int{}
	for _, tx := range chain.Transactions() {
		if len(tx.Data()) > 0 {
			landed[string(tx.Data())]++
		}
	}
	require.Len(t, landed, killAccounts*killRequests)
	for key, n := range landed {
		require.Equal(t, 1, n, key)
	}
}
