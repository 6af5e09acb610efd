package redisstore

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/far"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/internal/wait"
)

const killChain, killAccounts = 97, 3

// killRequests is the number of requests of each account.
var killRequests = repeat.Times(60, 150)

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
		fmt.Fprintln(os.Stderr, work(far.Chain(url), os.Getenv("JAMQ_TEST_REDIS")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// work is the program of a process of a fleet. It submits all requests, as a
// program does that was restarted after a kill, and sends until it is killed.
func work(chain far.Chain, path string) error {
	s, err := New(dial(path), "test", Options{})
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

// Two processes of a fleet share a Redis. Many times, one of them is killed under load
// and a new one started. Every request of every account lands exactly once.
func TestKill(t *testing.T) {
	kills, all := repeat.Times(8, 20), killAccounts*killRequests
	client := server(t)
	chain := eoatest.New(killChain, 1, 4)
	chain.SetPerBlock(2)
	chain.SetFaults(eoatest.Faults{DropResponse: 0.1, DropRequest: 0.05, Reorg: 0.05, ReorgDepth: 3, LosePool: 0.02})
	web := httptest.NewServer(far.Handler(chain))
	t.Cleanup(web.Close)
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
	s, err := New(client, "test", Options{})
	require.NoError(t, err)
	// Only this goroutine makes blocks, so that work is left at each kill, however fast
	// the workers are.
	finals := 0
	reach := func(want int) {
		wait.Until(t, func() bool {
			chain.Mine()
			finals = finalRecords(t, s)
			return finals >= want
		}, "%d final requests", want)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for kill := range kills {
		reach((kill+1)*all/2/kills + random.IntN(5))
		require.Less(t, finals, all, "the kill meets work")
		k := random.IntN(len(workers))
		require.NoError(t, workers[k].Process.Kill())
		_ = workers[k].Wait()
		workers[k] = start()
	}
	chain.SetFaults(eoatest.Faults{})
	chain.SetPerBlock(50)
	reach(all)
	landed := map[string]int{}
	for _, tx := range chain.Transactions() {
		if len(tx.Data()) > 0 {
			landed[string(tx.Data())]++
		}
	}
	require.Len(t, landed, all)
	for key, n := range landed {
		require.Equal(t, 1, n, key)
	}
}

// finalRecords counts the requests that are final, of all accounts.
func finalRecords(t *testing.T, s eoa.Store) (n int) {
	t.Helper()
	for _, key := range killKeys() {
		records, err := s.List(t.Context(), eoa.Account{ChainID: killChain, Address: crypto.PubkeyToAddress(key.PublicKey)}, 0, 10_000)
		require.NoError(t, err)
		for i := range records {
			if records[i].State == eoa.Final && !records[i].Noop {
				n++
			}
		}
	}
	return n
}
