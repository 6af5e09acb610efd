package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/internal/account"
)

// alike contains keys of requests that resemble keys of the store itself, or beginnings of
// such keys. A store that does not separate the two would confuse them.
var alike = []string{
	":", "::", "\x00", "\x00:", "meta", "key:meta", "order:", "1", "11", "é",
	strings.Repeat("\x00", 255), strings.Repeat(":", 256),
}

// neighbours returns accounts whose chain ids and addresses begin alike, in
// ascending order.
func neighbours() (all []eoa.Account) {
	for _, chain := range []uint64{0, 1, 10, math.MaxUint64} {
		for _, first := range []byte{0, 0xff} {
			for _, last := range []byte{0, 1} {
				address := common.Address{0: first, 1: 'k', 2: 'e', 3: 'y', 19: last}
				all = append(all, eoa.Account{ChainID: chain, Address: address})
			}
		}
	}
	return all
}

// keys checks that accounts with similar addresses and keys keep their own values.
func (c *suite) keys() {
	all := neighbours()
	for i, a := range all {
		c.a = a
		c.fill(i)
	}
	for _, a := range all {
		c.a = a
		c.holdsItsOwn()
	}
	require.Equal(c, all, slices.DeleteFunc(c.undeliveredPages(), func(a eoa.Account) bool {
		return !slices.Contains(all, a) // those of other cases
	}))
	for _, a := range all {
		c.a = a
		require.NoError(c, c.s.Acknowledge(c.ctx, a, math.MaxUint64))
		require.False(c, c.hasUndelivered())
		require.Len(c, c.inbox().Orders, 1)
	}
}

// fill uses all priorities, extremes included, in an order that depends on i.
func (c *suite) fill(i int) {
	priorities := []int32{math.MinInt32, -1, 0, 1, math.MaxInt32}
	for j, key := range alike {
		q := req(key)
		q.Priority = priorities[(i+j)%len(priorities)]
		require.EqualValues(c, j+1, c.submit(q)[0].ID)
	}
	require.NoError(c, c.s.Order(c.ctx, c.a, c.now, eoa.Order{Kind: account.OrderCancel, Key: fmt.Sprint(c.a)}))
	l := c.acquire("w")
	c.emit(l, 0, 2)
	require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, time.Time{}))
}

// holdsItsOwn checks that the account has exactly the values that fill has written.
func (c *suite) holdsItsOwn() {
	for j, key := range alike {
		r := c.get(key)
		require.EqualValues(c, j+1, r.ID)
		require.Equal(c, key, r.Key)
	}
	in := c.inbox()
	require.Len(c, in.Orders, 1)
	require.Equal(c, fmt.Sprint(c.a), in.Orders[0].Key)
	require.Len(c, in.Pending, len(alike))
	require.True(c, slices.IsSortedFunc(in.Pending, func(x, y eoa.Record) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.ID, y.ID))
	}))
	records := c.list(0, 1000)
	require.Len(c, records, len(alike))
	events := c.events(0, 1000)
	require.Len(c, events, 2)
}

// undeliveredPages returns the accounts with undelivered events, read in pages of two.
func (c *suite) undeliveredPages() (all []eoa.Account) {
	for above := (eoa.Account{}); ; {
		page, err := c.s.Undelivered(c.ctx, above, 2)
		require.NoError(c, err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		above = page[len(page)-1]
	}
}

// dueFar tests due times that cannot be expressed in an int64 as nanoseconds since
// 1970.
func (c *suite) dueFar() {
	now := c.now
	for _, due := range []time.Time{now.AddDate(300, 0, 0), now.AddDate(6000, 0, 0)} {
		l := c.acquire("w")
		require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, due))
		require.False(c, c.isDue())
		c.now = due
		require.True(c, c.isDue())
		c.now = now
	}
	l := c.acquire("w")
	require.NoError(c, c.s.Park(c.ctx, l, c.inbox().Wake, time.Unix(0, 0)))
	c.now = time.Unix(0, 0)
	require.True(c, c.isDue())
}
