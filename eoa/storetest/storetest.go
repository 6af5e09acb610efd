package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// Run tests the stores that open returns. open must return the same store each
// time, reopened if possible. Every case uses a separate account.
func Run(t *testing.T, open func() eoa.Store) {
	s := open()
	for i, c := range []struct {
		name string
		f    func(*suite)
	}{
		{"submit is idempotent", (*suite).idempotent}, {"submit is all or nothing", (*suite).allOrNothing}, {"pending by rank, in pages", (*suite).pages},
		{"one holder", (*suite).oneHolder}, {"a lost lease writes nothing", (*suite).fenced}, {"a late write is refused", (*suite).conflict},
		{"commit is one step", (*suite).commit}, {"no wake-up is lost", (*suite).wake}, {"what is due", (*suite).due}, {"due at any time", (*suite).dueFar}, {"keys that look alike", (*suite).keys}, {"outbox", (*suite).outbox}, {"accounts with undelivered events", (*suite).undelivered},
		{"events that are taken while others come", (*suite).undeliveredMeanwhile},
		{"orders", (*suite).orders}, {"records as they were", (*suite).faithful}, {"blobs that wait", (*suite).blobs}, {"large requests, in pages", (*suite).large},
		{"dropped records", (*suite).drop}, {"concurrent submits", (*suite).concurrent}, {"ended context", (*suite).ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.f(&suite{T: t, s: s, ctx: context.Background(), a: eoa.Account{ChainID: 1 + uint64(i), Address: common.Address{byte(i), 0xfe, 0xff}},
				now: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)})
		})
	}
	t.Run("crash between any two calls", func(t *testing.T) { sweep(t, open) })
	t.Run("survives", func(t *testing.T) {
		c := &suite{T: t, s: open(), ctx: context.Background(), a: eoa.Account{ChainID: 1, Address: common.Address{0, 0xfe, 0xff}}}
		c.get("a") // of the first case
	})
}

type suite struct {
	*testing.T
	s   eoa.Store
	ctx context.Context
	a   eoa.Account
	now time.Time
}

const ttl = time.Minute

func (c *suite) submit(requests ...eoa.Request) []eoa.Record {
	c.Helper()
	out, err := c.s.Submit(c.ctx, c.a, c.now, requests...)
	require.NoError(c, err)
	require.Len(c, out, len(requests))
	return out
}

func (c *suite) get(key string) eoa.Record {
	c.Helper()
	r, err := c.s.Get(c.ctx, c.a, key)
	require.NoError(c, err)
	return r
}

func (c *suite) acquire(owner string) eoa.Lease {
	c.Helper()
	l, err := c.s.Acquire(c.ctx, c.a, owner, c.now, ttl)
	require.NoError(c, err)
	require.Equal(c, c.a, l.Account)
	require.Equal(c, owner, l.Owner)
	return l
}

func (c *suite) inbox() eoa.Inbox {
	c.Helper()
	in, err := c.s.Inbox(c.ctx, c.a, eoa.Rank{}, 100)
	require.NoError(c, err)
	return in
}

func (c *suite) load(l eoa.Lease) eoa.Loaded {
	c.Helper()
	out, err := c.s.Load(c.ctx, l)
	require.NoError(c, err)
	return out
}

func req(key string) eoa.Request {
	return eoa.Request{Key: key, Value: uint256.NewInt(7), Data: []byte(key)}
}

// prepared returns a record with a nonce and signed bytes.
func prepared(r eoa.Record, nonce uint64) eoa.Record {
	r.State, r.Nonce = eoa.Prepared, nonce
	r.Attempts = []eoa.Attempt{{Hash: common.Hash{byte(r.ID), byte(nonce), 9}, Raw: []byte{1, 2, 3}, Nonce: nonce, Gas: 21_000}}
	return r
}

func (c *suite) idempotent() {
	first := c.submit(req("a"), req("b"))
	require.Less(c, first[0].ID, first[1].ID)
	require.Equal(c, eoa.Pending, first[0].State)
	before := c.inbox()
	again := c.submit(req("b"), req("a"), req("a"))
	require.Equal(c, []uint64{first[1].ID, first[0].ID, first[0].ID}, []uint64{again[0].ID, again[1].ID, again[2].ID})
	require.Equal(c, before.Wake, c.inbox().Wake, "nothing new, nobody woken")
	zero, none := eoa.Request{Key: "zero", Value: new(uint256.Int)}, eoa.Request{Key: "zero"}
	require.Equal(c, zero.Digest(), none.Digest(), "nil means 0")
	other := req("a")
	other.Gas = 30_000
	_, err := c.s.Submit(c.ctx, c.a, c.now, other)
	require.ErrorIs(c, err, eoa.ErrKeyReused)
	_, err = c.s.Get(c.ctx, c.a, "unknown")
	require.ErrorIs(c, err, eoa.ErrUnknownRequest)
	l := c.acquire("w")
	r := prepared(c.get("a"), 0)
	r.Value = uint256.NewInt(8) // replaced; the accepted payload counts
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: eoa.Head{Next: 1}, Records: []eoa.Record{r}})
	require.NoError(c, err)
	require.Equal(c, eoa.Prepared, c.submit(req("a"))[0].State)
}

func (c *suite) allOrNothing() {
	c.submit(req("a"))
	wake := c.inbox().Wake
	other := req("a")
	other.Gas = 30_000
	for _, requests := range [][]eoa.Request{{req("new"), other}, {req("new"), {Key: "new", Gas: 50_000}}} {
		_, err := c.s.Submit(c.ctx, c.a, c.now, requests...)
		require.ErrorIs(c, err, eoa.ErrKeyReused)
	}
	_, err := c.s.Get(c.ctx, c.a, "new")
	require.ErrorIs(c, err, eoa.ErrUnknownRequest)
	require.Equal(c, wake, c.inbox().Wake)
}

func (c *suite) pages() {
	var requests []eoa.Request
	for i := range 30 {
		r := req(fmt.Sprint("r", i))
		r.Priority = []int32{0, 5, -5, math.MaxInt32, math.MinInt32}[i%5]
		requests = append(requests, r)
	}
	records := c.submit(requests...)
	slices.SortStableFunc(records, func(x, y eoa.Record) int {
		if eoa.RankOf(&x.Request, x.ID).Less(eoa.RankOf(&y.Request, y.ID)) {
			return -1
		}
		return 1
	})
	var got []uint64
	for after := (eoa.Rank{}); ; {
		in, err := c.s.Inbox(c.ctx, c.a, after, 7)
		require.NoError(c, err)
		if len(in.Pending) == 0 {
			break
		}
		require.LessOrEqual(c, len(in.Pending), 7)
		for i := range in.Pending {
			got = append(got, in.Pending[i].ID)
		}
		last := in.Pending[len(in.Pending)-1]
		after = eoa.RankOf(&last.Request, last.ID)
	}
	for i := range records {
		require.Equal(c, records[i].ID, got[i])
	}
	require.Len(c, got, len(records))
	c.lists(len(records))
}

func (c *suite) lists(n int) {
	seen, after := 0, uint64(0)
	for {
		page, err := c.s.List(c.ctx, c.a, after, 11)
		require.NoError(c, err)
		if len(page) == 0 {
			break
		}
		require.LessOrEqual(c, len(page), 11)
		for i := range page {
			require.Greater(c, page[i].ID, after)
			after = page[i].ID
			seen++
		}
	}
	require.Equal(c, n, seen)
}

func (c *suite) oneHolder() {
	first := c.acquire("one")
	for _, owner := range []string{"one", "two"} {
		_, err := c.s.Acquire(c.ctx, c.a, owner, c.now, ttl)
		require.ErrorIs(c, err, eoa.ErrHeld)
	}
	c.now = c.now.Add(ttl / 2)
	renewed, err := c.s.Renew(c.ctx, first, c.now, ttl)
	require.NoError(c, err)
	require.Equal(c, first.Epoch, renewed.Epoch)
	require.True(c, renewed.Until.After(first.Until))
	c.now = c.now.Add(2 * ttl)
	_, err = c.s.Renew(c.ctx, renewed, c.now, ttl)
	require.NoError(c, err, "nobody took it")
	c.now = c.now.Add(2 * ttl)
	second := c.acquire("two")
	require.Greater(c, second.Epoch, first.Epoch)
	_, err = c.s.Renew(c.ctx, renewed, c.now, ttl)
	require.ErrorIs(c, err, eoa.ErrFenced)
	require.NoError(c, c.s.Break(c.ctx, c.a))
	third := c.acquire("two")
	require.Greater(c, third.Epoch, second.Epoch, "at once")
}

func (c *suite) fenced() {
	r := c.submit(req("a"))[0]
	old := c.acquire("one")
	for _, lose := range []func(){
		func() { require.NoError(c, c.s.Break(c.ctx, c.a)) },
		func() { c.now = c.now.Add(2 * ttl); c.acquire("two") },
	} {
		lose()
		b := eoa.Batch{Head: eoa.Head{Next: 1}, Records: []eoa.Record{prepared(r, 0)}, Events: []eoa.Event{{Kind: eoa.EventMined}}}
		_, err := c.s.Commit(c.ctx, old, c.now, b)
		require.ErrorIs(c, err, eoa.ErrFenced)
		_, err = c.s.Load(c.ctx, old)
		require.ErrorIs(c, err, eoa.ErrFenced)
		require.ErrorIs(c, c.s.Park(c.ctx, old, c.inbox().Wake, time.Time{}), eoa.ErrFenced)
		require.Equal(c, eoa.Pending, c.get("a").State)
		events, err := c.s.Events(c.ctx, c.a, 0, 10)
		require.NoError(c, err)
		require.Empty(c, events)
	}
	c.now = c.now.Add(2 * ttl)
	now := c.acquire("one") // same name, another epoch
	_, err := c.s.Commit(c.ctx, old, c.now, eoa.Batch{Head: eoa.Head{Next: 9}})
	require.ErrorIs(c, err, eoa.ErrFenced)
	require.Zero(c, c.load(now).Head.Next)
}

func (c *suite) conflict() {
	l := c.acquire("w")
	_, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: eoa.Head{Next: 5}})
	require.NoError(c, err)
	for _, version := range []uint64{0, 2} {
		_, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: eoa.Head{Version: version, Next: 9}, Events: []eoa.Event{{Kind: eoa.EventReset}}})
		require.ErrorIs(c, err, eoa.ErrConflict)
	}
	head := c.load(l).Head
	require.Equal(c, eoa.Head{Version: 1, Next: 5}, head)
	// An empty step changes nothing, but turns a delayed commit into a
	// conflict.
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head})
	require.NoError(c, err)
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head})
	require.ErrorIs(c, err, eoa.ErrConflict)
}

func (c *suite) commit() {
	records := c.submit(req("a"), req("b"), req("c"))
	l := c.acquire("w")
	a, b := prepared(records[0], 3), prepared(records[1], 2)
	gone := records[2]
	gone.State = eoa.Cancelled
	head := eoa.Head{Started: true, Next: 4, Floor: 1, InFlight: 2, Holes: []uint64{1}, Resets: []eoa.Reset{{At: c.now, From: 2, To: 3, Forced: true}}}
	wake := c.inbox().Wake
	got, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head, Records: []eoa.Record{a, b, gone},
		Add: []eoa.Request{{Key: "eoa/noop/1", Noop: true, Priority: math.MaxInt32}, {Key: "c", Gas: 99_999}}})
	require.NoError(c, err)
	require.Greater(c, got, wake, "something was added")
	loaded := c.load(l)
	head.Version = 1
	require.Equal(c, head, loaded.Head)
	require.Len(c, loaded.Open, 2)
	backlog, err := c.s.Backlog(c.ctx, c.a, 100)
	require.NoError(c, err)
	require.Equal(c, eoa.Backlog{Pending: 1, InFlight: 2}, backlog)
	in := c.inbox()
	require.Len(c, in.Pending, 1)
	require.Equal(c, "eoa/noop/1", in.Pending[0].Key)
	require.Equal(c, eoa.Cancelled, c.get("c").State, "was there already: left out")
	r, err := c.s.ByHash(c.ctx, c.a, a.Attempts[0].Hash)
	require.NoError(c, err)
	require.Equal(c, a.ID, r.ID)
	_, err = c.s.ByHash(c.ctx, c.a, common.Hash{1})
	require.ErrorIs(c, err, eoa.ErrUnknownRequest)

	a.State = eoa.Pending
	a.Attempts[0].Void = true
	b.State = eoa.Final
	head.Next = 5
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head, Records: []eoa.Record{a, b}})
	require.NoError(c, err)
	require.Empty(c, c.load(l).Open)
	require.Len(c, c.inbox().Pending, 2)
	require.Equal(c, eoa.Final, c.get("b").State)
}

func (c *suite) wake() {
	l := c.acquire("w")
	in := c.inbox()
	c.submit(req("a"))
	require.ErrorIs(c, c.s.Park(c.ctx, l, in.Wake, time.Time{}), eoa.ErrWoken)
	c.load(l) // the lease goes on
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: eoa.OrderCancel, Key: "a"}))
	require.ErrorIs(c, c.s.Park(c.ctx, l, in.Wake+1, time.Time{}), eoa.ErrWoken)
	require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, time.Time{}))
	_, err := c.s.Load(c.ctx, l)
	require.ErrorIs(c, err, eoa.ErrFenced)
	require.Greater(c, c.acquire("w").Epoch, l.Epoch)
}

// isDue reports whether the account is due now, among all accounts of the
// store.
func (c *suite) isDue() bool {
	accounts, err := c.s.Due(c.ctx, c.now, 1000)
	require.NoError(c, err)
	return slices.Contains(accounts, c.a)
}

func (c *suite) due() {
	require.False(c, c.isDue(), "unknown")
	c.submit(req("a"))
	require.True(c, c.isDue(), "woken")
	one, err := c.s.Due(c.ctx, c.now, 1)
	require.NoError(c, err)
	require.Len(c, one, 1)
	l := c.acquire("w")
	require.False(c, c.isDue(), "held")
	c.submit(req("b"))
	require.False(c, c.isDue(), "its holder is told by the wake version")
	require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, c.now.Add(ttl)))
	require.False(c, c.isDue(), "not yet")
	c.now = c.now.Add(ttl + 1)
	require.True(c, c.isDue())
	l = c.acquire("w")
	c.now = c.now.Add(ttl / 2)
	_, err = c.s.Renew(c.ctx, l, c.now, ttl)
	require.NoError(c, err)
	c.now = c.now.Add(ttl - 1)
	require.False(c, c.isDue())
	c.now = c.now.Add(2)
	require.True(c, c.isDue(), "its holder died")
	l = c.acquire("w")
	require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, time.Time{}))
	c.now = c.now.Add(1000 * ttl)
	require.False(c, c.isDue(), "idle")
	c.acquire("w")
	require.NoError(c, c.s.Break(c.ctx, c.a))
	require.True(c, c.isDue(), "broken, so somebody must look")
}

func (c *suite) orders() {
	payload := req("x")
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: eoa.OrderReplace, Key: "x", Payload: &payload}))
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: eoa.OrderReset, Force: true}))
	orders := c.inbox().Orders
	require.Len(c, orders, 2)
	require.Equal(c, payload, *orders[0].Payload)
	require.True(c, orders[1].Force)
	require.Less(c, orders[0].Seq, orders[1].Seq)
	l := c.acquire("w")
	_, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Done: []uint64{orders[0].Seq}})
	require.NoError(c, err)
	require.Equal(c, orders[1:], c.inbox().Orders)
}

// faithful checks that a record is read back with all its fields.
func (c *suite) faithful() {
	q := req("all")
	q.To, q.MaxFee, q.Gas, q.Group, q.Metadata, q.Deadline = &common.Address{1}, new(uint256.Int).SetAllOne(), 22_000, "g", []byte{0, 255}, c.now.Add(time.Hour)
	q.Key = "all \x01 {}:\U0001F511"
	r := c.submit(q)[0]
	require.Equal(c, q, r.Request)
	l := c.acquire("w")
	r = prepared(r, 5)
	a := &r.Attempts[0]
	a.Raw = slices.Repeat([]byte{0, 1, 255, 128}, 1000)
	a.Fees = eoa.Fees{Cap: *new(uint256.Int).SetAllOne(), Tip: *uint256.NewInt(3)}
	a.Cost, a.SentAt, a.Result, a.Why = *uint256.NewInt(1), c.now, eoa.Rejected, "why"
	r.Bumps, r.BumpedAt, r.Reason, r.GoneAt, r.Unused, r.Used, r.Height, r.Block, r.Tx, r.GasUsed = 2, c.now, "reason", math.MaxUint64, 5, 6, 1<<63, common.Hash{1}, common.Hash{2}, 4
	_, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: eoa.Head{Next: 6}, Records: []eoa.Record{r}})
	require.NoError(c, err)
	require.Equal(c, r, c.get(q.Key))
	require.Equal(c, []eoa.Record{r}, c.load(l).Open)
}

func (c *suite) blobs() {
	withBlobs := func(key string, n int) eoa.Request {
		q := req(key)
		q.Kind, q.To, q.Blobs = eoa.Blob, &common.Address{1}, slices.Repeat([][]byte{make([]byte, eoa.BlobSize)}, n)
		return q
	}
	var full []eoa.Request
	for i := range eoa.MaxPendingBlobs / eoa.MaxBlobs {
		full = append(full, withBlobs(fmt.Sprint(i), eoa.MaxBlobs))
	}
	const rest = eoa.MaxPendingBlobs % eoa.MaxBlobs
	before := c.submit(full...)[0]
	wake := func() uint64 {
		in, err := c.s.Inbox(c.ctx, c.a, eoa.Rank{}, 1) // 1: they are large
		require.NoError(c, err)
		return in.Wake
	}
	woken := wake()
	_, err := c.s.Submit(c.ctx, c.a, c.now, req("plain"), withBlobs("more", rest), withBlobs("too many", 1))
	require.ErrorIs(c, err, eoa.ErrTooManyBlobs)
	_, err = c.s.Get(c.ctx, c.a, "plain")
	require.ErrorIs(c, err, eoa.ErrUnknownRequest, "nothing was written")
	require.Equal(c, woken, wake())
	c.submit(req("plain"), withBlobs("more", rest), full[1])
	_, err = c.s.Commit(c.ctx, c.acquire("w"), c.now, eoa.Batch{Head: eoa.Head{Next: 1}, Records: []eoa.Record{prepared(before, 0)}})
	require.NoError(c, err)
	c.submit(withBlobs("instead", eoa.MaxBlobs))
	_, err = c.s.Submit(c.ctx, c.a, c.now, withBlobs("too many", 1))
	require.ErrorIs(c, err, eoa.ErrTooManyBlobs)
}

func (c *suite) large() {
	for i, eighths := range []int{3, 3, 9, 0} {
		q := req(fmt.Sprint(i))
		q.Metadata = make([]byte, eoa.MaxInboxBytes/8*eighths)
		c.submit(q)
	}
	after := eoa.Rank{}
	for i, want := range []int{2, 1, 1} {
		in, err := c.s.Inbox(c.ctx, c.a, after, 100)
		require.NoError(c, err)
		require.Len(c, in.Pending, want)
		require.Equal(c, i < 2, in.More)
		last := in.Pending[want-1]
		after = eoa.RankOf(&last.Request, last.ID)
	}
	in, err := c.s.Inbox(c.ctx, c.a, eoa.Rank{}, 1)
	require.NoError(c, err)
	require.Len(c, in.Pending, 1)
	require.True(c, in.More)
}

func (c *suite) concurrent() {
	const writers, each = 8, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range each {
				if _, err := c.s.Submit(c.ctx, c.a, c.now, req(fmt.Sprint(i)), req(fmt.Sprint(i+1))); err != nil {
					c.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Len(c, c.inbox().Pending, each+1)
	c.lists(each + 1)
}

func (c *suite) ended() {
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	_, err := c.s.Submit(ctx, c.a, c.now, req("a"))
	require.ErrorIs(c, err, context.Canceled)
	_, err = c.s.Get(ctx, c.a, "a")
	require.ErrorIs(c, err, context.Canceled)
	_, err = c.s.Get(c.ctx, c.a, "a")
	require.ErrorIs(c, err, eoa.ErrUnknownRequest)
}
