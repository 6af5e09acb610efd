package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/lives"
)

// sweepClock is a clock that the sweep sets.
type sweepClock struct{ now time.Time }

// Now is an eoa.Config.Now.
func (c *sweepClock) Now() time.Time { return c.now }

const sweepChain, sweepRequests = 77, 4

// sweep kills an executor before and after each call to the store and the
// chain. A fresh executor then finishes, and each request must land once. Each
// run has a new account and chain.
func sweep(t *testing.T, open func() eoa.Store) {
	s := open()
	moments := 1 << 30
	for at := 0; at <= moments; at++ {
		var secret [32]byte
		binary.BigEndian.PutUint64(secret[24:], uint64(at)+1)
		key, err := crypto.ToECDSA(secret[:])
		require.NoError(t, err)
		a := eoa.Account{ChainID: sweepChain, Address: crypto.PubkeyToAddress(key.PublicKey)}
		chain, clock := eoatest.New(sweepChain, uint64(at), 2), &sweepClock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		cfg := eoa.DefaultConfig()
		cfg.Now, cfg.Batch, cfg.Confirmations = clock.Now, 3, 1
		for _, life := range []*lives.Life{{Store: s, Chain: chain, DiesAt: at}, {Store: s, Chain: chain}} {
			e, err := eoa.New(cfg, a, life, life.Wire(), eoa.NewKeySigner(sweepChain, key))
			require.NoError(t, err)
			liveOnce(t, e, life, chain, clock)
			if at == 0 {
				moments = life.Moments
				break
			}
		}
		landed := map[string]int{}
		for _, tx := range chain.Transactions() {
			landed[string(tx.Data())]++
		}
		for i := range sweepRequests {
			require.Equal(t, 1, landed[fmt.Sprint("r", i)], "request %d, died at %d of %d", i, at, moments)
		}
		require.Len(t, landed, sweepRequests)
	}
	t.Logf("%d moments to die at", moments)
}

// liveOnce runs an executor until it is dead or idle.
func liveOnce(t *testing.T, e *eoa.Executor, life *lives.Life, chain *eoatest.Chain, clock *sweepClock) {
	ctx := context.Background()
	var requests []eoa.Request
	for i := range sweepRequests {
		requests = append(requests, eoa.Request{Key: fmt.Sprint(i), Data: []byte(fmt.Sprint("r", i)), Gas: 50_000})
	}
	if _, err := e.Submit(ctx, requests...); err != nil {
		require.ErrorIs(t, err, lives.ErrDied)
		return
	}
	for range 200 {
		next, err := e.Step(ctx)
		if err != nil && !errors.Is(err, eoa.ErrHeld) {
			require.ErrorIs(t, err, lives.ErrDied)
		}
		if life.Dead() || err == nil && next.IsZero() {
			return
		}
		chain.Mine()
		clock.now = clock.now.Add(3 * time.Second)
	}
	t.Fatal("not idle after 200 steps")
}
