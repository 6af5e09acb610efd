package storetest

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/internal/account"
)

func (c *suite) outbox() {
	l := c.acquire("w")
	for i := range uint64(4) {
		c.write(l, eoa.Batch{Head: account.Head{Version: i}, Events: []eoa.Event{
			{Kind: eoa.EventMined, At: c.now, ID: i, Key: "k", Nonce: 9, Tx: common.Hash{1}, Height: 2, Reason: "r"}, {Kind: eoa.EventFinal, At: c.now}}})
	}
	page := c.events(2, 3)
	require.Len(c, page, 3)
	require.Equal(c, eoa.Event{Seq: 3, Kind: eoa.EventMined, At: c.now, ID: 1, Key: "k", Nonce: 9, Tx: common.Hash{1}, Height: 2, Reason: "r"}, page[0])
	require.NoError(c, c.s.Acknowledge(c.ctx, c.a, 6))
	require.NoError(c, c.s.Acknowledge(c.ctx, c.a, 2))
	page = c.events(0, 100)
	require.Len(c, page, 2)
	require.Equal(c, uint64(7), page[0].Seq)
	c.write(l, eoa.Batch{Head: account.Head{Version: 4}, Events: []eoa.Event{{Kind: eoa.EventMined}}})
	page = c.events(8, 100)
	require.Equal(c, uint64(9), page[0].Seq, "numbers are never used again")
}

// emit commits a step with n events.
func (c *suite) emit(l eoa.Lease, version uint64, n int) {
	c.Helper()
	c.write(l, eoa.Batch{Head: account.Head{Version: version}, Events: make([]eoa.Event, n)})
}

// hasUndelivered reports whether the store lists the account among those with
// undelivered events.
func (c *suite) hasUndelivered() bool {
	c.Helper()
	accounts, err := c.s.Undelivered(c.ctx, eoa.Account{}, 1000)
	require.NoError(c, err)
	return slices.Contains(accounts, c.a)
}

func (c *suite) undelivered() {
	l := c.acquire("w")
	c.emit(l, 0, 0)
	require.False(c, c.hasUndelivered(), "a step without events")
	c.emit(l, 1, 2)
	c.emit(l, 2, 1)
	require.True(c, c.hasUndelivered())
	require.NoError(c, c.s.Acknowledge(c.ctx, c.a, 2))
	require.True(c, c.hasUndelivered(), "one is left")
	require.NoError(c, c.s.Acknowledge(c.ctx, c.a, 3))
	require.NoError(c, c.s.Acknowledge(c.ctx, c.a, 1))
	require.False(c, c.hasUndelivered())
	c.emit(l, 3, 1)
	require.True(c, c.hasUndelivered())
	require.NoError(c, c.s.Acknowledge(c.ctx, c.a, math.MaxUint64))
	require.False(c, c.hasUndelivered())

	var all []eoa.Account
	for i := range byte(5) {
		for _, chain := range []uint64{c.a.ChainID, 1 << 63} {
			one := *c
			one.a = eoa.Account{ChainID: chain, Address: common.Address{0xf9 - i, 0xff}}
			one.emit(one.acquire("w"), 0, 1)
			all = append(all, one.a)
		}
	}
	slices.SortFunc(all, func(x, y eoa.Account) int {
		return cmp.Or(cmp.Compare(x.ChainID, y.ChainID), x.Address.Cmp(y.Address))
	})
	listed := slices.DeleteFunc(c.undeliveredPages(), func(a eoa.Account) bool { return !slices.Contains(all, a) })
	require.Equal(c, all, listed, "in order, in pages")
	none, err := c.s.Undelivered(c.ctx, eoa.Account{}, 0)
	require.NoError(c, err)
	require.Empty(c, none)
}

// undeliveredMeanwhile tests the index of accounts with unacknowledged events while some
// goroutines acknowledge events and others add new ones. In the end, the index must list
// the account exactly if an event is left.
func (c *suite) undeliveredMeanwhile() {
	const steps = 40
	l := c.acquire("w")
	var all sync.WaitGroup
	all.Go(func() {
		for i := range uint64(steps) {
			if _, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: account.Head{Version: i}, Events: make([]eoa.Event, 1)}); err != nil {
				c.Error(err)
			}
		}
	})
	all.Go(func() {
		for through := uint64(0); through < steps; {
			events, err := c.s.Events(c.ctx, c.a, 0, 100)
			if err != nil {
				c.Error(err)
				return
			}
			for i := range events {
				through = events[i].Seq
			}
			if err := c.s.Acknowledge(c.ctx, c.a, through); err != nil {
				c.Error(err)
				return
			}
		}
	})
	all.Wait()
	require.False(c, c.hasUndelivered(), "all are taken")
	c.emit(l, steps, 1)
	require.True(c, c.hasUndelivered())
}
