package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// After its record was dropped, a finished transaction takes at most 120 bytes
// of the memory of Redis.
func TestMemoryAfterRetention(t *testing.T) {
	const size, rounds, most = 300, 10, 120
	ctx, client := context.Background(), server(t)
	s, err := New(client, "test", Options{})
	require.NoError(t, err)
	const chainID = 31
	chain, now := eoatest.New(chainID, 1, 3), &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
	require.NoError(t, err)
	a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.CellProofs, cfg.MaxInFlight, cfg.Retention = now.Now, false, 1000, eoa.Retention{}
	run := func() {
		e, err := eoa.New(cfg, a, s, chain, eoa.NewKeySigner(chainID, key))
		require.NoError(t, err)
		for next := now.now; !next.IsZero(); {
			next, err = e.Step(ctx)
			require.NoError(t, err)
			chain.Mine()
			now.now = now.now.Add(cfg.Poll)
		}
		require.NoError(t, e.Release(ctx))
	}
	memory := func() (sum int64) {
		_, _ = s.Events(ctx, a, 0, 1)
		require.NoError(t, s.Acknowledge(ctx, a, 1<<62))
		values, order := (&kv{client: client, prefix: "test"}).keys(a)
		for _, key := range []string{values, order} {
			size, err := client.MemoryUsage(ctx, key, 0).Result()
			if err == nil { // an empty one does not exist
				sum += size
			}
		}
		return sum
	}
	submit := func(i int) {
		_, err := s.Submit(ctx, a, now.now, eoa.Request{Key: fmt.Sprintf("invoice %06d", i), To: &a.Address, Gas: 60_000, Data: make([]byte, 68)})
		require.NoError(t, err)
	}
	// round executes requests and returns the bytes that each of them takes.
	round := func(from, n int) int64 {
		before := memory()
		for i := range n {
			submit(from + i)
		}
		run()
		return (memory() - before) / int64(n)
	}
	submit(0)
	run()
	kept := round(1, size)
	cfg.Retention = eoa.Retention{Count: 1}
	round(1+size, 1) // drops all
	before := memory()
	for i := range rounds {
		round(2+(1+i)*size, size)
	}
	after := (memory() - before) / (rounds * size)
	t.Logf("%d bytes per finished transaction before, %d after", kept, after)
	require.LessOrEqual(t, after, int64(most))
	require.Greater(t, kept, 4*after)
}
