package storetest

import (
	"cmp"
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
	"github.com/jamq/jamq/eoa/internal/account"
)

// Run tests that a store keeps the contract of [eoa.Store]. Each call of open must
// return a store with the same data, opened again if possible. Each case uses a
// separate account.
func Run(t *testing.T, open func() eoa.Store) {
	s := open()
	for i, c := range []struct {
		name string
		f    func(*suite)
	}{
		{"submit is idempotent", (*suite).idempotent}, {"submit is all or nothing", (*suite).allOrNothing}, {"pending in their order", (*suite).pages},
		{"one holder", (*suite).oneHolder}, {"a lost lease writes nothing", (*suite).fenced}, {"a late write is refused", (*suite).conflict},
		{"commit is one step", (*suite).commit}, {"no wake-up is lost", (*suite).wake}, {"what is due", (*suite).due}, {"due at any time", (*suite).dueFar}, {"keys that look alike", (*suite).keys}, {"outbox", (*suite).outbox}, {"accounts with undelivered events", (*suite).undelivered},
		{"events that are taken while others come", (*suite).undeliveredMeanwhile},
		{"orders", (*suite).orders}, {"records as they were", (*suite).faithful}, {"large requests", (*suite).large},
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

// write commits a batch and returns the wake version.
func (c *suite) write(l eoa.Lease, b eoa.Batch) uint64 {
	c.Helper()
	wake, err := c.s.Commit(c.ctx, l, c.now, b)
	require.NoError(c, err)
	return wake
}

// refuses returns a function that checks that a call failed with the error want.
func (c *suite) refuses(want error) func(_ any, err error) {
	return func(_ any, err error) {
		c.Helper()
		require.ErrorIs(c, err, want)
	}
}

func (c *suite) events(after uint64, limit int) []eoa.Event {
	c.Helper()
	events, err := c.s.Events(c.ctx, c.a, after, limit)
	require.NoError(c, err)
	return events
}

func (c *suite) list(after uint64, limit int) []eoa.Record {
	c.Helper()
	records, err := c.s.List(c.ctx, c.a, after, limit)
	require.NoError(c, err)
	return records
}

func (c *suite) inbox() eoa.Inbox { return c.inboxOf(100) }

func (c *suite) inboxOf(limit int) eoa.Inbox {
	c.Helper()
	in, err := c.s.Inbox(c.ctx, c.a, limit)
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

// prepared returns the record in state Prepared, with a nonce and signed bytes.
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
	c.refuses(eoa.ErrKeyReused)(c.s.Submit(c.ctx, c.a, c.now, other))
	c.refuses(eoa.ErrUnknownRequest)(c.s.Get(c.ctx, c.a, "unknown"))
	l := c.acquire("w")
	r := prepared(c.get("a"), 0)
	r.Value = uint256.NewInt(8) // replaced; the accepted payload counts
	c.write(l, eoa.Batch{Head: account.Head{Next: 1}, Records: []eoa.Record{r}})
	require.Equal(c, eoa.Prepared, c.submit(req("a"))[0].State)
}

func (c *suite) allOrNothing() {
	c.submit(req("a"))
	wake := c.inbox().Wake
	other := req("a")
	other.Gas = 30_000
	for _, requests := range [][]eoa.Request{{req("new"), other}, {req("new"), {Key: "new", Gas: 50_000}}} {
		c.refuses(eoa.ErrKeyReused)(c.s.Submit(c.ctx, c.a, c.now, requests...))
	}
	c.refuses(eoa.ErrUnknownRequest)(c.s.Get(c.ctx, c.a, "new"))
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
	slices.SortFunc(records, func(x, y eoa.Record) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.ID, y.ID))
	})
	for _, limit := range []int{1, 7, len(records), 100} {
		in := c.inboxOf(limit)
		require.Equal(c, records[:min(limit, len(records))], in.Pending)
		require.Equal(c, limit <= len(records), in.More)
	}
	c.lists(len(records))
}

// lists checks that n records are listed in order, in pages.
func (c *suite) lists(n int) {
	var all []eoa.Record
	for page := c.list(0, 11); len(page) > 0; page = c.list(all[len(all)-1].ID, 11) {
		require.LessOrEqual(c, len(page), 11)
		all = append(all, page...)
	}
	require.Len(c, all, n)
	require.True(c, slices.IsSortedFunc(all, func(x, y eoa.Record) int { return cmp.Compare(x.ID, y.ID) }))
}

func (c *suite) oneHolder() {
	first := c.acquire("one")
	for _, owner := range []string{"one", "two"} {
		c.refuses(eoa.ErrHeld)(c.s.Acquire(c.ctx, c.a, owner, c.now, ttl))
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
	c.refuses(eoa.ErrFenced)(c.s.Renew(c.ctx, renewed, c.now, ttl))
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
		b := eoa.Batch{Head: account.Head{Next: 1}, Records: []eoa.Record{prepared(r, 0)}, Events: []eoa.Event{{Kind: eoa.EventMined}}}
		c.refuses(eoa.ErrFenced)(c.s.Commit(c.ctx, old, c.now, b))
		c.refuses(eoa.ErrFenced)(c.s.Load(c.ctx, old))
		require.ErrorIs(c, c.s.Park(c.ctx, old, c.inbox().Wake, time.Time{}), eoa.ErrFenced)
		require.Equal(c, eoa.Pending, c.get("a").State)
		require.Empty(c, c.events(0, 10))
	}
	c.now = c.now.Add(2 * ttl)
	now := c.acquire("one") // same name, another epoch
	c.refuses(eoa.ErrFenced)(c.s.Commit(c.ctx, old, c.now, eoa.Batch{Head: account.Head{Next: 9}}))
	require.Zero(c, c.load(now).Head.Next)
}

func (c *suite) conflict() {
	l := c.acquire("w")
	c.write(l, eoa.Batch{Head: account.Head{Next: 5}})
	for _, version := range []uint64{0, 2} {
		c.refuses(eoa.ErrConflict)(c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: account.Head{Version: version, Next: 9}, Events: []eoa.Event{{Kind: eoa.EventReset}}}))
	}
	head := c.load(l).Head
	require.Equal(c, account.Head{Version: 1, Next: 5}, head)
	// An empty step changes nothing, but turns a delayed commit into a
	// conflict.
	c.write(l, eoa.Batch{Head: head})
	c.refuses(eoa.ErrConflict)(c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head}))
}

func (c *suite) commit() {
	records := c.submit(req("a"), req("b"), req("c"))
	l := c.acquire("w")
	a, b := prepared(records[0], 3), prepared(records[1], 2)
	gone := records[2]
	gone.State = eoa.Cancelled
	head := account.Head{Started: true, Next: 4, Floor: 1, InFlight: 2, Gaps: []uint64{1}, Resets: []eoa.Reset{{At: c.now, From: 2, To: 3, Forced: true}}}
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
	c.refuses(eoa.ErrUnknownRequest)(c.s.ByHash(c.ctx, c.a, common.Hash{1}))

	a.State = eoa.Pending
	a.Attempts[0].Void = true
	b.State = eoa.Final
	head.Next = 5
	c.write(l, eoa.Batch{Head: head, Records: []eoa.Record{a, b}})
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
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: account.OrderCancel, Key: "a"}))
	require.ErrorIs(c, c.s.Park(c.ctx, l, in.Wake+1, time.Time{}), eoa.ErrWoken)
	require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, time.Time{}))
	c.refuses(eoa.ErrFenced)(c.s.Load(c.ctx, l))
	require.Greater(c, c.acquire("w").Epoch, l.Epoch)
}

// isDue reports whether the store lists the account among those that are due now.
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
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: account.OrderReplace, Key: "x", Payload: &payload}))
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: account.OrderReset, Force: true}))
	orders := c.inbox().Orders
	require.Len(c, orders, 2)
	require.Equal(c, payload, *orders[0].Payload)
	require.True(c, orders[1].Force)
	require.Less(c, orders[0].Seq, orders[1].Seq)
	l := c.acquire("w")
	c.write(l, eoa.Batch{Done: []uint64{orders[0].Seq}})
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
	c.write(l, eoa.Batch{Head: account.Head{Next: 6}, Records: []eoa.Record{r}})
	require.Equal(c, r, c.get(q.Key))
	require.Equal(c, []eoa.Record{r}, c.load(l).Open)
}

func (c *suite) large() {
	for i, eighths := range []int{3, 3, 9, 0} {
		q := req(fmt.Sprint(i))
		q.Metadata = make([]byte, eoa.MaxInboxBytes/8*eighths)
		c.submit(q)
	}
	l, head := c.acquire("w"), eoa.Batch{}.Head
	for i, want := range []int{2, 1, 1} {
		in := c.inboxOf(100)
		require.Len(c, in.Pending, want)
		require.Equal(c, i < 2, in.More)
		for k := range in.Pending {
			in.Pending[k].State = eoa.Cancelled
		}
		c.write(l, eoa.Batch{Head: head, Records: in.Pending})
		head.Version++
	}
	q := req("larger")
	q.Metadata = make([]byte, eoa.MaxInboxBytes/8*9)
	c.submit(q, req("last"))
	in := c.inboxOf(1)
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
	c.refuses(context.Canceled)(c.s.Submit(ctx, c.a, c.now, req("a")))
	c.refuses(context.Canceled)(c.s.Get(ctx, c.a, "a"))
	c.refuses(eoa.ErrUnknownRequest)(c.s.Get(c.ctx, c.a, "a"))
}

// drop checks that a dropped record leaves only its key, state and digest.
func (c *suite) drop() {
	records := c.submit(req("a"), req("b"), req("open"))
	l := c.acquire("w")
	head := account.Head{Started: true, Next: 3}
	for i := range records {
		records[i] = prepared(records[i], uint64(i))
	}
	c.write(l, eoa.Batch{Head: head, Records: records})
	records[0].State, records[1].State = eoa.Final, eoa.Failed
	head.Version++
	c.write(l, eoa.Batch{Head: head, Records: records[:2]})
	head.Version++
	c.write(l, eoa.Batch{Head: head, Drop: records}) // the open one stays

	for i, state := range []eoa.State{eoa.Final, eoa.Failed} {
		old := &records[i]
		want := eoa.Record{Request: eoa.Request{Key: old.Key}, ID: old.ID, State: state}
		require.Equal(c, want, c.get(old.Key))
		again := c.submit(old.Request)[0]
		require.Equal(c, []any{old.ID, state}, []any{again.ID, again.State}, "the same request")
		other := old.Request
		other.Gas += 10_000
		c.refuses(eoa.ErrKeyReused)(c.s.Submit(c.ctx, c.a, c.now, other))
		c.refuses(eoa.ErrUnknownRequest)(c.s.ByHash(c.ctx, c.a, old.Attempts[0].Hash))
	}
	require.Len(c, c.list(0, 10), 1)
	require.Len(c, c.load(l).Open, 1)
	head.Version++
	c.write(l, eoa.Batch{Head: head, Drop: records[:2]})
	require.Equal(c, eoa.Final, c.get("a").State)
	require.Greater(c, c.submit(req("new"))[0].ID, records[2].ID)
}
