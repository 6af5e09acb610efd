package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
)

// ErrEviction is returned if a server may delete keys to free memory, or does not
// report whether it may. The server's maxmemory-policy must be noeviction; see
// [Options.AllowEviction].
var ErrEviction = errors.New("redisstore: the server may evict keys")

// checkEvery is how long the servers' answers about their policy are trusted. The
// servers are asked again after that time, because an operator can change the
// policy while they run.
const checkEvery = time.Second

// check returns an error if a server may delete keys to free memory.
func (k *kv) check(ctx context.Context) error {
	if last := k.checked.Load(); k.o.AllowEviction || last != nil && time.Since(*last) < checkEvery {
		return nil
	}
	err := k.eachServer(ctx, func(ctx context.Context, server redis.Cmdable) error {
		info, err := server.Info(ctx, "memory").Result()
		var answer redis.Error
		if errors.As(err, &answer) {
			return fmt.Errorf("%w: INFO memory: %w", ErrEviction, err)
		} else if err != nil {
			return fmt.Errorf("redisstore: %w", err)
		}
		_, rest, _ := strings.Cut(info, "maxmemory_policy:")
		if name, _, _ := strings.Cut(rest, "\r\n"); name != "noeviction" {
			return fmt.Errorf("%w: maxmemory-policy is %q, want \"noeviction\"", ErrEviction, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	now := time.Now()
	k.checked.Store(&now)
	return nil
}

// eachServer calls f for each server that accepts writes, one at a time.
func (k *kv) eachServer(ctx context.Context, f func(context.Context, redis.Cmdable) error) error {
	var one sync.Mutex
	next := func(ctx context.Context, server *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return f(ctx, server)
	}
	switch client := k.client.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, next)
	case *redis.Ring:
		return client.ForEachShard(ctx, next)
	}
	return f(ctx, k.client)
}

// mend is the beginning of the Lua scripts writeIf and scan. The fields of an account are
// in a Redis hash. Those that must be scanned in order (see kvstore.Scanned) are also in a
// sorted set, which the scripts call the order. The function complete checks whether the
// order has all of them, and mend rebuilds it from the hash.
const mend = `
local unscanned = {meta = true, key = true, hash = true, digest = true, ordered = true, indexed = true}
local function complete()
	return redis.call('HGET', KEYS[1], 'indexed') == tostring(redis.call('ZCARD', KEYS[2]))
end
local function mend()
	redis.call('DEL', KEYS[2])
	local n = 0
	for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
		if not unscanned[string.match(field, '^[^:]*')] then n = n + redis.call('ZADD', KEYS[2], 0, field) end
	end
	redis.call('HSET', KEYS[1], 'indexed', n)
end
`

// errLost returns the error for an account of which the server has lost keys.
func errLost(a eoa.Account) error {
	return fmt.Errorf("%w: redisstore: the server has only a part of the keys of %v", eoa.ErrStoreRolledBack, a)
}

// whole is a member of the index that marks it as complete. It is added last, so
// if it is missing, the server has lost the index or a part of it.
const whole = "whole"

// mendIndex rebuilds the index from all accounts.
func (k *kv) mendIndex(ctx context.Context) error {
	escape := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, `\`, `\\`)
	entries := []redis.Z{{Member: whole}}
	err := k.eachServer(ctx, func(ctx context.Context, server redis.Cmdable) error {
		found := server.Scan(ctx, 0, escape.Replace(k.prefix)+":{*}:values", page).Iterator()
		for found.Next(ctx) {
			a, ok := k.accountOf(found.Val())
			if !ok {
				continue
			}
			meta, err := server.HGet(ctx, found.Val(), "meta").Bytes()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			for _, entry := range kvstore.IndexEntries(a, meta) {
				entries = append(entries, redis.Z{Member: string(entry)})
			}
		}
		return found.Err()
	})
	if err != nil {
		return err
	}
	return k.client.ZAdd(ctx, k.indexKey(), entries...).Err()
}

// accountOf returns the account whose records are in the Redis hash with the given name.
// The result is false if the name is not that of an account. The function keys makes these
// names.
func (k *kv) accountOf(values string) (a eoa.Account, ok bool) {
	var address string
	name := strings.TrimPrefix(values, k.prefix+":{")
	if _, err := fmt.Sscanf(name, "%d:%42s}:values", &a.ChainID, &address); err != nil || a.Address.UnmarshalText([]byte(address)) != nil {
		return a, false
	}
	key, _ := k.keys(a)
	return a, key == values
}
