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
)

const sweepChain, sweepRequests = 77, 4

// mortal is the store and the chain of a process that dies at a chosen moment,
// just before or just after a call that changes something. These moments are all
// the cases, because a death between two other calls leaves the same state behind.
type mortal struct {
	eoa.Store
	eoa.Chain
	passed, diesAt int // moments so far, and the one to die at; 0: never
}

var errDied = errors.New("storetest: the process died")

func (m *mortal) dead() bool { return m.diesAt > 0 && m.passed >= m.diesAt }

// mortally makes a call before or after which the process can die.
func mortally[T any](m *mortal, call func() (T, error)) (out T, err error) {
	if m.passed++; m.dead() {
		return out, errDied
	}
	out, err = call()
	if m.passed++; m.dead() {
		return out, errDied
	}
	return out, err
}

// Submit implements eoa.Store.
func (m *mortal) Submit(ctx context.Context, a eoa.Account, now time.Time, requests ...eoa.Request) ([]eoa.Record, error) {
	return mortally(m, func() ([]eoa.Record, error) { return m.Store.Submit(ctx, a, now, requests...) })
}

// Acquire implements eoa.Store.
func (m *mortal) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (eoa.Lease, error) {
	return mortally(m, func() (eoa.Lease, error) { return m.Store.Acquire(ctx, a, owner, now, ttl) })
}

// Park implements eoa.Store.
func (m *mortal) Park(ctx context.Context, l eoa.Lease, wake uint64, due time.Time) error {
	_, err := mortally(m, func() (any, error) { return nil, m.Store.Park(ctx, l, wake, due) })
	return err
}

// Commit implements eoa.Store.
func (m *mortal) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (uint64, error) {
	return mortally(m, func() (uint64, error) { return m.Store.Commit(ctx, l, now, b) })
}

// Send implements eoa.Chain.
func (m *mortal) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out, err := mortally(m, func() ([]eoa.Sent, error) { return m.Chain.Send(ctx, raws), nil })
	if err != nil {
		return make([]eoa.Sent, len(raws))
	}
	return out
}

// sweep tests a crash at each moment: each request must be mined exactly once.
func sweep(t *testing.T, open func() eoa.Store) {
	s := open()
	moments := 1 << 30
	for at := 0; at <= moments; at++ {
		var secret [32]byte
		binary.BigEndian.PutUint64(secret[24:], uint64(at)+1)
		key, err := crypto.ToECDSA(secret[:])
		require.NoError(t, err)
		a := eoa.Account{ChainID: sweepChain, Address: crypto.PubkeyToAddress(key.PublicKey)}
		chain, now := eoatest.New(sweepChain, uint64(at), 2), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		cfg := eoa.DefaultConfig()
		cfg.Now, cfg.Batch, cfg.Confirmations = func() time.Time { return now }, 3, 1
		for _, life := range []*mortal{{Store: s, Chain: chain, diesAt: at}, {Store: s, Chain: chain}} {
			e, err := eoa.New(cfg, a, life, life, eoa.NewKeySigner(sweepChain, key))
			require.NoError(t, err)
			liveOnce(t, e, life, chain, &now)
			if at == 0 {
				moments = life.passed
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

// liveOnce runs an executor until its process is dead or it has no work left.
func liveOnce(t *testing.T, e *eoa.Executor, life *mortal, chain *eoatest.Chain, now *time.Time) {
	ctx := context.Background()
	var requests []eoa.Request
	for i := range sweepRequests {
		requests = append(requests, eoa.Request{Key: fmt.Sprint(i), Data: []byte(fmt.Sprint("r", i)), Gas: 50_000})
	}
	if _, err := e.Submit(ctx, requests...); err != nil {
		require.ErrorIs(t, err, errDied)
		return
	}
	for range 200 {
		next, err := e.Step(ctx)
		if err != nil && !errors.Is(err, eoa.ErrHeld) {
			require.ErrorIs(t, err, errDied)
		}
		if life.dead() || err == nil && next.IsZero() {
			return
		}
		chain.Mine()
		*now = now.Add(3 * time.Second)
	}
	t.Fatal("not idle after 200 steps")
}
