package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
)

// Options configures a store. The zero value is valid, and suits a Redis without
// replicas.
type Options struct {
	// Replicas is how many replicas must have a write before it counts as done (the
	// command WAIT); at least 0. The default is 0. If it is positive, the client
	// must be a *redis.Client or a *redis.ClusterClient.
	Replicas int
	// Timeout is how long a write waits for the replicas, at least a millisecond; 0 means one
	// second. If too few replicas have answered by then, the method returns ErrReplicas, and
	// it is unknown whether the write would survive a failover.
	Timeout time.Duration
	// CallerClock makes leases begin and end by the times that workers pass, for
	// tests with a simulated clock. By default, the clock of the server decides
	// (TIME), so that a worker whose clock is wrong neither holds an account for
	// too long nor takes over too early. All workers of a store must have the same
	// setting. If the server's clock steps back, a lease lasts longer by that time;
	// [eoa.Store.Break] ends it.
	CallerClock bool
	// AllowEviction accepts servers that may delete keys to free memory
	// (maxmemory-policy). By default, New and every write return ErrEviction unless
	// the policy is noeviction. Set AllowEviction in two cases: the server does not
	// report its policy, or the policy deletes only keys with an expiry
	// (volatile-lru), which this store does not use. If a server still deletes
	// keys, lost indexes are rebuilt from the accounts. An account that has lost
	// other keys stops, or its calls return [eoa.ErrStoreRolledBack].
	AllowEviction bool
}

// ErrReplicas is returned if too few replicas have confirmed a write in time. The
// server itself has the write, and the same call can be repeated.
var ErrReplicas = errors.New("redisstore: too few replicas have the step")

// New returns a store in a Redis or a Redis Cluster. Its keys begin with the prefix, for
// example "jamq". The caller closes the client. New returns an error:
//
//   - if the client is nil, or an option is out of its range
//   - if the prefix is empty or has a brace, because a brace would move the hash tag
//   - if a server may delete keys to free memory (ErrEviction)
//
// A server that does not answer yet is checked before the first write.
func New(client redis.UniversalClient, prefix string, o Options) (eoa.Store, error) {
	if client == nil || prefix == "" || strings.ContainsAny(prefix, "{}") {
		return nil, fmt.Errorf("redisstore: client %v and prefix %q, want a client and a prefix without braces", client, prefix)
	}
	if o.Replicas < 0 || o.Timeout != 0 && o.Timeout < time.Millisecond {
		return nil, fmt.Errorf("redisstore: Replicas %d and Timeout %v, want at least 0 and 1ms", o.Replicas, o.Timeout)
	}
	_, single := client.(*redis.Client)
	_, cluster := client.(*redis.ClusterClient)
	if o.Replicas > 0 && !single && !cluster {
		return nil, fmt.Errorf("redisstore: client %T with Replicas %d, want a *redis.Client or a *redis.ClusterClient", client, o.Replicas)
	}
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	k := &kv{client: client, prefix: prefix, o: o}
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	if err := k.check(ctx); errors.Is(err, ErrEviction) {
		return nil, err
	}
	if o.CallerClock {
		return kvstore.New(k), nil
	}
	return kvstore.New(clocked{k}), nil
}

// clocked is a kv that implements kvstore.Clocked, so that the server's clock
// decides about leases.
type clocked struct{ *kv }

var _ kvstore.Clocked = clocked{}

// Now implements kvstore.Clocked.
func (c clocked) Now(ctx context.Context, a eoa.Account) (time.Time, error) {
	values, _ := c.keys(a)
	now, err := serverTime.Run(ctx, c.client, []string{values}).Int64()
	if err != nil {
		return time.Time{}, fmt.Errorf("redisstore: %w", err)
	}
	return time.UnixMicro(now), nil
}

// serverTime returns the microseconds since 1970 by the clock of the server that
// has KEYS[1].
var serverTime = redis.NewScript(`
local now = redis.call('TIME')
return now[1] * 1000000 + now[2]
`)

// kv implements kvstore.Shared with the layout that the package comment describes.
type kv struct {
	client redis.UniversalClient
	prefix string
	o      Options
	// checked is when the servers last confirmed that they delete no keys to free memory.
	checked atomic.Pointer[time.Time]
}

var (
	_ kvstore.Shared = (*kv)(nil)
	_ kvstore.Lossy  = (*kv)(nil)
)

// MayLose implements kvstore.Lossy. It always returns true, because even with
// replicas and an append-only file, Redis may promote a replica that lacks the last
// writes.
func (k *kv) MayLose() bool { return true }

// keys returns the keys of an account's hash and of its sorted set.
func (k *kv) keys(a eoa.Account) (values, order string) {
	base := k.prefix + ":{" + strconv.FormatUint(a.ChainID, 10) + ":" + a.Address.Hex() + "}"
	return base + ":values", base + ":order"
}

// field returns the name of a key in the hash of its account.
func field(key []byte) []byte {
	_, rest, _ := kvstore.Split(key)
	// Inside the hash of an account, a field need not name the account again.
	return rest
}

// indexKey returns the key of the sorted set with the entries of both indexes.
func (k *kv) indexKey() string { return k.prefix + ":due" }

// writeIf writes entries if the guard, a field of the account, still has its value.
// The result is 1 if the entries were written, 0 if the guard has another value,
// and -1 if the server has lost a part of the account. KEYS are the keys of the
// account. ARGV contains:
//
//   - the field of the guard, "+" if the field must exist or "-" if it must not,
//     and the value of the field
//   - for each entry "s" to set the field, "i" to set it and add it to the order,
//     or "d" to delete it, then the field and its value
var writeIf = redis.NewScript(mend + `
local now = redis.call('HGET', KEYS[1], ARGV[1])
local guarded
if ARGV[2] == '-' then guarded = (now == false) else guarded = (now == ARGV[3]) end
if not guarded then return 0 end
if now then
	if not complete() then mend() end
elseif redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) > 0 then
	return -1
end
local more = 0
for i = 4, #ARGV, 3 do
	local op, field = ARGV[i], ARGV[i + 1]
	if op == 'd' then
		if redis.call('HDEL', KEYS[1], field) == 1 then more = more - redis.call('ZREM', KEYS[2], field) end
	elseif redis.call('HSET', KEYS[1], field, ARGV[i + 2]) == 1 and op == 'i' then
		more = more + redis.call('ZADD', KEYS[2], 0, field)
	end
end
if more ~= 0 or not now then redis.call('HINCRBY', KEYS[1], 'indexed', more) end
return 1
`)

// scan returns a page of an account's fields with their values, or -1 if the server
// has lost a part of the account. KEYS are the keys of the account, and ARGV
// contains the lowest field, the end and the limit. If the server has lost the
// order, scan rebuilds it from the values.
var scan = redis.NewScript(mend + `
if redis.call('HEXISTS', KEYS[1], 'meta') == 0 then
	if redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) > 0 then return -1 end
	return {}
end
if not complete() then mend() end
local fields = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
if #fields == 0 then return {} end
return {fields, redis.call('HMGET', KEYS[1], unpack(fields))}
`)

// page is how many fields a scan fetches at once, because Lua's function unpack
// accepts only a few thousand values.
const page = 1000

// Get implements kvstore.KV. All keys must belong to one account.
func (k *kv) Get(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	a, _, ok := kvstore.Split(keys[0])
	if !ok {
		return nil, fmt.Errorf("redisstore: key %x belongs to no account", keys[0])
	}
	fields := make([]string, len(keys))
	for i, key := range keys {
		fields[i] = string(field(key))
	}
	values, _ := k.keys(a)
	got, err := k.client.HMGet(ctx, values, fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	out := make([][]byte, len(keys))
	for i := range got {
		if s, there := got[i].(string); there {
			out[i] = []byte(s)
		}
	}
	return out, nil
}

// Scan implements kvstore.KV.
func (k *kv) Scan(ctx context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error {
	if kvstore.Indexed(from) {
		return k.scanIndex(ctx, from, to, limit, f)
	}
	a, low, ok := kvstore.Split(from)
	if !ok {
		return fmt.Errorf("redisstore: key %x belongs to no account", from)
	}
	keys, order := k.keys(a)
	for low := "[" + string(low); limit > 0; {
		asked := min(page, limit)
		answer, err := scan.Run(ctx, k.client, []string{keys, order}, low, "("+string(field(to)), asked).Result()
		if err != nil {
			return fmt.Errorf("redisstore: %w", err)
		}
		lists, is := answer.([]any)
		if !is {
			return errLost(a)
		}
		if len(lists) == 0 {
			return nil
		}
		names, _ := lists[0].([]any)
		values, _ := lists[len(lists)-1].([]any)
		if len(names) != len(values) {
			return errors.New("redisstore: malformed answer to a scan")
		}
		for i, field := range names {
			value, there := values[i].(string)
			name, _ := field.(string)
			if !there {
				return errLost(a)
			}
			if !f(kvstore.Join(a, []byte(name)), []byte(value)) {
				return nil
			}
			low = "(" + name
		}
		if len(names) < asked {
			return nil
		}
		limit -= asked
	}
	return nil
}

// scanIndex scans an index of accounts, whose entries have no values.
func (k *kv) scanIndex(ctx context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error {
	var members *redis.StringSliceCmd
	for again := true; again; {
		var score *redis.FloatCmd
		_, err := k.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			score = p.ZScore(ctx, k.indexKey(), whole)
			members = p.ZRangeByLex(ctx, k.indexKey(), &redis.ZRangeBy{Min: "[" + string(from), Max: "(" + string(to), Count: int64(limit)})
			return nil
		})
		// The server has lost the index, so rebuild it and read again.
		if again = errors.Is(score.Err(), redis.Nil); again {
			err = k.mendIndex(ctx)
		}
		if err != nil {
			return fmt.Errorf("redisstore: %w", err)
		}
	}
	for _, m := range members.Val() {
		if !f([]byte(m), nil) {
			return nil
		}
	}
	return nil
}

// Write implements kvstore.KV. It always returns an error, because a shared store
// must be written with WriteIf.
func (k *kv) Write(context.Context, []kvstore.Entry) error {
	return errors.New("redisstore: Write is not supported, want WriteIf")
}

// WriteIf implements kvstore.Shared.
func (k *kv) WriteIf(ctx context.Context, guard kvstore.Entry, entries []kvstore.Entry) error {
	a, name, ok := kvstore.Split(guard.Key)
	if !ok {
		return fmt.Errorf("redisstore: guard %x belongs to no account", guard.Key)
	}
	there := "+"
	if guard.Value == nil {
		there = "-"
	}
	args := make([]any, 0, 3+3*len(entries))
	args = append(args, name, there, guard.Value)
	var added, gone []any
	for _, e := range entries {
		switch {
		case kvstore.Indexed(e.Key) && e.Value == nil:
			gone = append(gone, string(e.Key))
		case kvstore.Indexed(e.Key):
			added = append(added, string(e.Key))
		case e.Value == nil:
			args = append(args, "d", field(e.Key), "")
		case kvstore.Scanned(e.Key):
			args = append(args, "i", field(e.Key), e.Value)
		default:
			args = append(args, "s", field(e.Key), e.Value)
		}
	}
	if err := k.check(ctx); err != nil {
		return err
	}
	// The index may be on another server of the cluster than the account, so both cannot be
	// written together. New entries are written before the account and again after it. If the
	// process crashes in between, an entry may be superfluous, but none is missing.
	if err := k.index(ctx, added, nil); err != nil {
		return err
	}
	values, order := k.keys(a)
	written, err := k.write(ctx, []string{values, order}, args)
	if err != nil {
		return fmt.Errorf("redisstore: %w", err)
	}
	switch written {
	case 0:
		// An earlier try may have written the step. Package kvstore then recognizes
		// the step by its name.
		return kvstore.ErrChanged
	case -1:
		return errLost(a)
	}
	return k.index(ctx, added, gone)
}

// write runs the script writeIf, and waits for the replicas that must confirm it.
func (k *kv) write(ctx context.Context, keys []string, args []any) (written int, err error) {
	if k.o.Replicas == 0 {
		return writeIf.Run(ctx, k.client, keys, args...).Int()
	}
	node, _ := k.client.(*redis.Client)
	if cluster, is := k.client.(*redis.ClusterClient); is {
		if node, err = cluster.MasterForKey(ctx, keys[0]); err != nil {
			return 0, err
		}
	}
	// WAIT concerns the last write of its connection, so both commands use one
	// connection.
	conn := node.Conn()
	defer conn.Close()
	if written, err = writeIf.Run(ctx, conn, keys, args...).Int(); err != nil || written != 1 {
		return written, err
	}
	have, err := conn.Wait(ctx, k.o.Replicas, k.o.Timeout).Result()
	if err == nil && have < int64(k.o.Replicas) {
		err = fmt.Errorf("%w: %d, want %d", ErrReplicas, have, k.o.Replicas)
	}
	return written, err
}

// index adds and removes entries of the indexes.
func (k *kv) index(ctx context.Context, added, gone []any) error {
	if len(added)+len(gone) == 0 {
		return nil
	}
	_, err := k.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		if len(gone) > 0 {
			p.ZRem(ctx, k.indexKey(), gone...)
		}
		// Add last, so that an entry in both lists stays.
		for _, m := range added {
			p.ZAdd(ctx, k.indexKey(), redis.Z{Member: m})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("redisstore: %w", err)
	}
	return nil
}
