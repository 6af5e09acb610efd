package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/wait"
)

// A server that may evict keys is refused when a store is opened, and at writes
// if its policy changes later.
func TestEvictionIsRefused(t *testing.T) {
	ctx, client, a := wait.Context(t), server(t), eoa.Account{ChainID: 1}
	set := func(policy string) { require.NoError(t, client.ConfigSet(ctx, "maxmemory-policy", policy).Err()) }
	s, err := New(client, "test", Options{})
	require.NoError(t, err)
	_, err = s.Submit(ctx, a, time.Now(), eoa.Request{Key: "a"})
	require.NoError(t, err)
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl"} {
		set(policy)
		_, err := New(client, "test", Options{})
		require.ErrorIs(t, err, ErrEviction)
		require.ErrorContains(t, err, policy)
		allowed, err := New(client, "test", Options{AllowEviction: true})
		require.NoError(t, err)
		_, err = allowed.Submit(ctx, a, time.Now(), eoa.Request{Key: "allowed with " + policy})
		require.NoError(t, err)
	}
	wait.Until(t, func() bool {
		_, err := s.Submit(ctx, a, time.Now(), eoa.Request{Key: "b"})
		require.True(t, err == nil || errors.Is(err, ErrEviction), "%v", err)
		return err != nil
	}, "a write is refused")
	set("noeviction")
	_, err = s.Submit(ctx, a, time.Now(), eoa.Request{Key: "b"})
	require.NoError(t, err)

	require.NoError(t, client.Do(ctx, "acl", "setuser", "default", "-info").Err())
	_, err = New(client, "test", Options{})
	require.ErrorIs(t, err, ErrEviction, "unknown")
}

// contents are the answers of a store about an account.
type contents struct {
	loaded  eoa.Loaded
	inbox   eoa.Inbox
	records []eoa.Record
	events  []eoa.Event
	backlog eoa.Backlog
}

func read(t *testing.T, s eoa.Store, l eoa.Lease) (c contents) {
	ctx, errs := context.Background(), [5]error{}
	c.loaded, errs[0] = s.Load(ctx, l)
	c.inbox, errs[1] = s.Inbox(ctx, l.Account, 100)
	c.records, errs[2] = s.List(ctx, l.Account, 0, 100)
	c.events, errs[3] = s.Events(ctx, l.Account, 0, 100)
	c.backlog, errs[4] = s.Backlog(ctx, l.Account, 100)
	require.NoError(t, errors.Join(errs[:]...))
	return c
}

// fill writes records, events and orders of all kinds to an account.
func fill(t *testing.T, s eoa.Store, a eoa.Account) eoa.Lease {
	ctx, now := context.Background(), time.Unix(1_800_000_000, 0)
	l, err := s.Acquire(ctx, a, "w", now, time.Minute)
	require.NoError(t, err)
	var requests []eoa.Request
	for i := range 9 {
		requests = append(requests, eoa.Request{Key: fmt.Sprint("order:", i), Priority: int32(i)})
	}
	records, err := s.Submit(ctx, a, now, requests...)
	require.NoError(t, err)
	for i := range 3 {
		records[i].State, records[i].Nonce, records[i].Attempts = eoa.Prepared, uint64(i), []eoa.Attempt{{Hash: common.Hash{byte(i)}}}
	}
	records[3].State = eoa.Failed
	_, err = s.Commit(ctx, l, now, eoa.Batch{Records: records[:4], Events: make([]eoa.Event, 4), Drop: records[3:4]})
	require.NoError(t, err)
	require.NoError(t, s.Order(ctx, a, now, eoa.Order{Kind: account.OrderCancel, Key: "order:7"}))
	return l
}

// The server evicts the sorted set of an account. Nothing is missing in any
// answer, and the set is made again as it was, by reads and by writes.
func TestEvictedOrderIsMadeAgain(t *testing.T) {
	ctx, client, a := context.Background(), server(t), eoa.Account{ChainID: 1}
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	l := fill(t, s, a)
	_, order := (&kv{prefix: "test"}).keys(a)
	members := func() []string {
		all, err := client.ZRange(ctx, order, 0, -1).Result()
		require.NoError(t, err)
		return all
	}
	before, set := read(t, s, l), members()
	require.NotEmpty(t, before.loaded.Open)
	require.NotEmpty(t, before.inbox.Orders)
	for name, damage := range map[string]func() error{
		"evicted":             func() error { return client.Del(ctx, order).Err() },
		"a member is missing": func() error { return client.ZRem(ctx, order, set[0]).Err() },
		"one too many":        func() error { return client.ZAdd(ctx, order, redis.Z{Member: "record:0"}).Err() },
	} {
		require.NoError(t, damage(), name)
		require.Equal(t, before, read(t, s, l), name)
		require.Equal(t, set, members(), name)
		require.NoError(t, damage(), name)
		_, err = s.Renew(ctx, l, time.Unix(1_800_000_000, 0), time.Minute)
		require.NoError(t, err)
		require.Equal(t, set, members(), name)
	}
}

// The server evicts the index of all accounts. It is made again, with every
// account that is due or has undelivered events.
func TestEvictedIndexIsMadeAgain(t *testing.T) {
	ctx, client := context.Background(), server(t)
	const prefix = "te*st[" // not a pattern
	s, err := New(client, prefix, simulated)
	require.NoError(t, err)
	want := []eoa.Account{{ChainID: 1}, {ChainID: 1, Address: common.Address{0xab}}, {ChainID: math.MaxUint64, Address: common.MaxAddress}}
	for _, a := range want {
		fill(t, s, a)
	}
	idle := eoa.Account{ChainID: 2}
	require.NoError(t, s.Break(ctx, idle))
	other, err := New(client, "other", simulated)
	require.NoError(t, err)
	fill(t, other, idle)
	for range 3 {
		require.NoError(t, client.Del(ctx, prefix+":due").Err())
		due, err := s.Due(ctx, time.Unix(1_900_000_000, 0), 10)
		require.NoError(t, err)
		require.Equal(t, want, due)
		require.NoError(t, client.Del(ctx, prefix+":due").Err())
		undelivered, err := s.Undelivered(ctx, eoa.Account{}, 10)
		require.NoError(t, err)
		require.Equal(t, want, undelivered)
	}
}

// The server loses all or one of an account's values. The account is not taken
// for a new one, and other accounts are still found.
func TestLostValuesAreReported(t *testing.T) {
	ctx, client, now := context.Background(), server(t), time.Unix(1_800_000_000, 0)
	s, err := New(client, "test", simulated)
	require.NoError(t, err)
	healthy := eoa.Account{ChainID: 9}
	fill(t, s, healthy)
	for i, lose := range []func(values string) error{
		func(values string) error { return client.Del(ctx, values).Err() },
		func(values string) error { return client.HDel(ctx, values, "meta").Err() },
	} {
		a := eoa.Account{ChainID: uint64(i + 1)}
		fill(t, s, a)
		values, _ := (&kv{prefix: "test"}).keys(a)
		require.NoError(t, lose(values))
		for range 2 {
			_, err = s.Submit(ctx, a, now, eoa.Request{Key: "order:1", Priority: 1})
			require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
			_, err = s.Acquire(ctx, a, "w", now.Add(time.Hour), time.Minute)
			require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
			_, err = s.Inbox(ctx, a, 10)
			require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
			due, err := s.Due(ctx, now.Add(time.Hour), 10)
			require.NoError(t, err)
			require.Contains(t, due, healthy)
			require.Contains(t, due, a, "its worker reports it")
		}
	}
	a := eoa.Account{ChainID: 3}
	l := fill(t, s, a)
	values, _ := (&kv{prefix: "test"}).keys(a)
	require.NoError(t, client.HDel(ctx, values, "record:00000000000000000001").Err())
	_, err = s.List(ctx, a, 0, 10)
	require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
	_, err = s.Load(ctx, l)
	require.Error(t, err)
}
