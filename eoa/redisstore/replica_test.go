package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/wait"
)

// replicas starts a server and its replica, and returns once they are in step.
func replicas(t *testing.T) (server, replica *redis.Client, port string) {
	t.Helper()
	const lowest, ports = 20_000, 30_000
	var err error
	for range 100 {
		port = strconv.Itoa(lowest + rand.IntN(ports))
		if server, err = launch(t, "--bind", "127.0.0.1", "--port", port, "--repl-diskless-sync-delay", "0"); err == nil {
			break
		}
	}
	require.NoError(t, err)
	replica, err = launch(t, "--port", "0")
	require.NoError(t, err)
	follow(t, replica, port)
	return server, replica, port
}

// follow makes a server the replica of another one.
func follow(t *testing.T, replica *redis.Client, port string) {
	t.Helper()
	require.NoError(t, replica.SlaveOf(context.Background(), "127.0.0.1", port).Err())
	wait.Until(t, func() bool {
		info, err := replica.Info(context.Background(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	}, "a replica in step")
}

// alone makes a replica an independent server, as a promotion does.
func alone(t *testing.T, replica *redis.Client) {
	t.Helper()
	require.NoError(t, replica.SlaveOf(context.Background(), "NO", "ONE").Err())
}

// A step that too few replicas have returns an error. It can be repeated when
// they are back.
func TestReplicasHaveEachStep(t *testing.T) {
	ctx := context.Background()
	client, replica, port := replicas(t)
	s, err := New(client, "test", Options{Replicas: 1, Timeout: time.Hour})
	require.NoError(t, err)
	a, q := eoa.Account{ChainID: 1}, eoa.Request{Key: "a"}
	_, err = s.Submit(ctx, a, time.Now(), q)
	require.NoError(t, err)
	there, err := New(replica, "test", Options{})
	require.NoError(t, err)
	_, err = there.Get(ctx, a, "a")
	require.NoError(t, err)

	alone(t, replica)
	hasty, err := New(client, "test", Options{Replicas: 1, Timeout: time.Millisecond})
	require.NoError(t, err)
	q.Key = "b"
	wait.Until(t, func() bool { // until the server notices
		_, err = hasty.Submit(ctx, a, time.Now(), q)
		require.True(t, err == nil || errors.Is(err, ErrReplicas), "%v", err)
		q.Key += "b"
		return err != nil
	}, "an error without the replica")
	follow(t, replica, port)
	_, err = s.Submit(ctx, a, time.Now(), q)
	require.NoError(t, err)
	_, err = there.Get(ctx, a, q.Key)
	require.NoError(t, err)
}

// Options out of range are refused.
func TestOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	ring := redis.NewRing(&redis.RingOptions{})
	defer client.Close()
	defer ring.Close()
	for _, o := range []Options{{Replicas: -1}, {Timeout: -1}, {Timeout: time.Microsecond}} {
		_, err := New(client, "test", o)
		require.Error(t, err, "%+v", o)
	}
	_, err := New(ring, "test", Options{Replicas: 1})
	require.Error(t, err)
	_, err = New(ring, "test", Options{})
	require.NoError(t, err)
}

// failover is a store whose server can be replaced.
type failover struct{ eoa.Store }

// A replica is promoted that lacks the last steps. The executor that made them
// stops the account, and executes nothing twice.
func TestPromotionStopsTheAccount(t *testing.T) {
	ctx := context.Background()
	client, replica, _ := replicas(t)
	old, err := New(client, "test", Options{})
	require.NoError(t, err)
	const chainID = 31
	chain, now := eoatest.New(chainID, 1, 7), &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
	require.NoError(t, err)
	a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.CellProofs = now.Now, false
	store := &failover{old}
	e, err := eoa.New(cfg, a, store, chain, eoa.NewKeySigner(chainID, key))
	require.NoError(t, err)
	step := func() error {
		_, err := e.Step(ctx)
		chain.Mine()
		now.now = now.now.Add(cfg.Poll)
		return err
	}
	submit := func(key string) {
		_, err := e.Submit(ctx, eoa.Request{Key: key, To: &a.Address, Data: []byte(key)})
		require.NoError(t, err)
	}
	submit("a")
	require.NoError(t, step())
	submit("b")
	acknowledged, err := client.Wait(ctx, 1, 0).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, acknowledged)
	alone(t, replica)
	require.NoError(t, step()) // the replica does not learn that b was sent

	store.Store, err = New(replica, "test", Options{})
	require.NoError(t, err)
	wait.Until(t, func() bool {
		err = step()
		return err != nil && !errors.Is(err, eoa.ErrConflict) && !errors.Is(err, eoa.ErrFenced)
	}, "the end of the account")
	require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
	for range 20 {
		require.ErrorIs(t, step(), eoa.ErrStopped)
	}
	landed := map[string]int{}
	for _, tx := range chain.Transactions() {
		landed[string(tx.Data())]++
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, landed)
}

// A server lost everything (FLUSHALL), and no process remembers it. A request
// whose key is repeated is not sent again, because the account has transactions.
func TestEmptiedServerStopsTheAccount(t *testing.T) {
	ctx := context.Background()
	client := server(t)
	const chainID = 31
	chain, now := eoatest.New(chainID, 1, 7), &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
	require.NoError(t, err)
	a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.CellProofs = now.Now, false
	process := func() *eoa.Executor {
		s, err := New(client, "test", simulated)
		require.NoError(t, err)
		e, err := eoa.New(cfg, a, s, chain, eoa.NewKeySigner(chainID, key))
		require.NoError(t, err)
		return e
	}
	pay := func(e *eoa.Executor, key string) (eoa.Record, error) {
		_, err := e.Submit(ctx, eoa.Request{Key: key, To: &a.Address})
		require.NoError(t, err)
		for range 30 {
			if _, err := e.Step(ctx); err != nil {
				return eoa.Record{}, err
			}
			chain.Mine()
			now.now = now.now.Add(cfg.Poll)
		}
		return e.Get(ctx, key)
	}
	r, err := pay(process(), "invoice 17")
	require.NoError(t, err)
	require.Equal(t, eoa.Final, r.State)
	require.NoError(t, client.FlushAll(ctx).Err())
	e := process()
	_, err = pay(e, "invoice 17")
	require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
	require.Len(t, chain.Transactions(), 1)
	require.NoError(t, e.Cancel(ctx, "invoice 17"))
	require.NoError(t, e.Resume(ctx))
	r, err = pay(e, "invoice 18")
	require.NoError(t, err)
	require.Equal(t, eoa.Final, r.State)
}
