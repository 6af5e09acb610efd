package rpcapi

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethfilters "github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/wait"
)

// next returns the next value of a channel, and fails if none arrives.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	return wait.Receive(t, c, "the next value")
}

// The three subscriptions of a WebSocket, and the same by filters over HTTP.
func TestSubscriptions(t *testing.T) {
	s := serve(t, nil)
	at := s.counter(0)
	socket := s.dial(s.ws())
	c := s.eth(s.server.URL)
	query := ethereum.FilterQuery{Addresses: []common.Address{at}, Topics: [][]common.Hash{{{31: 7}}}}

	heads := make(chan *types.Header, 16)
	_, err := s.eth(s.ws()).SubscribeNewHead(t.Context(), heads)
	require.NoError(t, err)
	logs := make(chan types.Log, 16)
	logsSub, err := s.eth(s.ws()).SubscribeFilterLogs(t.Context(), query, logs)
	require.NoError(t, err)
	pending := make(chan common.Hash, 16)
	_, err = gethclient.New(socket).SubscribePendingTransactions(t.Context(), pending)
	require.NoError(t, err)
	whole := make(chan *types.Transaction, 16)
	_, err = gethclient.New(socket).SubscribeFullPendingTransactions(t.Context(), whole)
	require.NoError(t, err)
	var blockFilter, logFilter, poolFilter, fullFilter string
	call := func(result any, method string, args ...any) {
		t.Helper()
		require.NoError(t, c.Client().CallContext(t.Context(), result, method, args...))
	}
	call(&blockFilter, "eth_newBlockFilter")
	call(&logFilter, "eth_newFilter", map[string]any{"address": at})
	call(&poolFilter, "eth_newPendingTransactionFilter")
	call(&fullFilter, "eth_newPendingTransactionFilter", true)

	tx := s.send(1, &at, 0, nil)
	require.Equal(t, tx.Hash(), next(t, pending))
	require.Equal(t, tx.Hash(), next(t, whole).Hash())
	head, log := next(t, heads), next(t, logs)
	receipt := s.mined(tx)
	require.Equal(t, receipt.BlockHash, head.Hash())
	require.Equal(t, *receipt.Logs[0], log)

	var hashes []common.Hash
	call(&hashes, "eth_getFilterChanges", blockFilter)
	require.Equal(t, []common.Hash{receipt.BlockHash}, hashes)
	call(&hashes, "eth_getFilterChanges", poolFilter)
	require.Equal(t, []common.Hash{tx.Hash()}, hashes)
	var txs []*types.Transaction
	call(&txs, "eth_getFilterChanges", fullFilter)
	require.Equal(t, tx.Hash(), txs[0].Hash())
	var changes []*types.Log
	call(&changes, "eth_getFilterChanges", logFilter)
	require.Equal(t, receipt.Logs, changes)
	call(&changes, "eth_getFilterLogs", logFilter)
	require.Equal(t, receipt.Logs, changes)
	for _, id := range []string{blockFilter, logFilter, poolFilter, fullFilter} {
		var raw []any
		call(&raw, "eth_getFilterChanges", id)
		require.NotNil(t, raw)
		require.Empty(t, raw, "it was told already")
	}

	// An ended subscription delivers nothing, and a closed connection frees its shares.
	require.Equal(t, 4+4*poolWeight, s.filters.weight())
	for _, id := range []string{blockFilter, logFilter, poolFilter, fullFilter} {
		var done bool
		call(&done, "eth_uninstallFilter", id)
		require.True(t, done)
		call(&done, "eth_uninstallFilter", id)
		require.False(t, done)
		require.ErrorContains(t, c.Client().CallContext(t.Context(), new(any), "eth_getFilterChanges", id), "filter not found")
	}
	logsSub.Unsubscribe()
	wait.Until(t, func() bool { return s.filters.weight() == 1+2*poolWeight }, "the share is free")
	s.mined(s.send(1, &at, 0, nil))
	require.Empty(t, logs)
	socket.Close()
	wait.Until(t, func() bool { return s.filters.weight() == 1 }, "all shares are free")
}

// A subscription that is not supported is refused with a reason.
func TestSubscriptionErrors(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) { c.MaxSubscriptions, c.LogTerms = 2, 3 })
	c, socket := s.dial(s.server.URL), s.dial(s.ws())
	many := make([]common.Address, 4)
	for name, x := range map[string]struct {
		args any
		want string
	}{
		"pending logs":    {map[string]any{"fromBlock": "pending"}, "pending logs are not supported"},
		"range backwards": {map[string]any{"fromBlock": "0x5", "toBlock": "0x4"}, "invalid block range params"},
		"moving end":      {map[string]any{"toBlock": "finalized"}, "invalid block range params"},
		"five topics":     {map[string]any{"topics": make([]any, 5)}, "exceed max topics"},
		"many addresses":  {map[string]any{"address": many}, "exceed max addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.CallContext(t.Context(), new(any), "eth_newFilter", x.args)
			require.ErrorContains(t, err, x.want)
			require.Equal(t, codeInvalidParams, code(err))
			_, err = socket.EthSubscribe(t.Context(), make(chan any), "logs", x.args)
			require.ErrorContains(t, err, x.want)
		})
	}
	require.ErrorContains(t, c.CallContext(t.Context(), new(any), "eth_subscribe", "newHeads"), "notifications not supported")
	_, err := socket.EthSubscribe(t.Context(), make(chan any), "weather")
	require.ErrorContains(t, err, `no "weather" subscription in eth namespace`)
	for range 2 {
		_, err := socket.EthSubscribe(t.Context(), make(chan any), "newHeads")
		require.NoError(t, err)
	}
	_, err = socket.EthSubscribe(t.Context(), make(chan any), "newHeads")
	require.ErrorContains(t, err, "too many filters and subscriptions: the node has 2 of 2")
	for _, method := range []string{"eth_newBlockFilter", "eth_newFilter", "eth_newPendingTransactionFilter"} {
		args := []any{}
		if method == "eth_newFilter" {
			args = append(args, map[string]any{})
		}
		err := c.CallContext(t.Context(), new(any), method, args...)
		require.Equal(t, CodeLimited, code(err), "%v", err)
	}
}

// A filter expires if its client stops polling it, and stays otherwise.
func TestFilterExpires(t *testing.T) {
	s := serve(t, nil)
	now := time.Unix(1000, 0)
	table := newFilters(s.node, &Config{FilterTime: time.Minute, MaxSubscriptions: 20})
	table.now = func() time.Time { return now }
	install := func(source string, weight int) (rpc.ID, error) {
		f := &filter{share: share{source, weight}}
		if err := table.take(f.share); err != nil {
			return "", err
		}
		f.pool, f.end = s.node.PendingTransactions(1)
		return table.install(f), nil
	}
	kept, err := install("", 18)
	require.NoError(t, err)
	left, err := install("a", 2)
	require.NoError(t, err)
	for range 3 {
		_, err = install("", 1)
		require.Equal(t, CodeLimited, code(err))
		require.ErrorContains(t, err, "the node has 20 of 20")
		now = now.Add(30 * time.Second)
		_, err := table.get(kept)
		require.NoError(t, err)
	}
	_, err = table.get(left)
	require.ErrorIs(t, err, errFilterNotFound)
	_, err = install("b", 1)
	require.NoError(t, err, "there is room again")
	_, err = install("b", 2)
	require.ErrorContains(t, err, "b has 1 of 2")
	_, err = install("c", 1)
	require.NoError(t, err, "and nobody took it all")
	require.Equal(t, 20, table.weight())
	require.True(t, table.remove(kept))
	require.Equal(t, map[string]int{"b": 1, "c": 1}, table.bySource)
	require.Equal(t, 2, table.weight())
}

// JAM reorganizes. A subscriber that discards removed logs ends with exactly the
// final logs. No log is delivered twice, and none is removed before it was
// delivered. A filter delivers the same logs in the same order.
func TestReorganization(t *testing.T) {
	s := serve(t, func(c *node.Config, _ *Config) {
		c.JAM.ForkProbability, c.JAM.MaxForkDepth, c.JAM.FinalityLag = 0.5, 6, 6
		c.Spec.SlotDuration = 20 * time.Millisecond
	})
	at := s.counter(0)
	criteria := gethfilters.FilterCriteria{Addresses: []common.Address{at}}
	told := make(chan types.Log, 100_000)
	subscription, err := s.dial(s.ws()).EthSubscribe(t.Context(), told, "logs", map[string]any{"address": at})
	require.NoError(t, err)
	f := &filter{logs: &criteria, cursor: s.node.HeadCursor()}
	api := &ethSubscriptions{&api{node: s.node, cfg: &Config{MaxLogs: 7}}}

	type place struct {
		block common.Hash
		index uint
	}
	have, removals, polled := map[place]types.Log{}, 0, []*types.Log{}
	take := func(l types.Log) {
		p := place{l.BlockHash, l.Index}
		_, known := have[p]
		require.Equal(t, l.Removed, known, "%+v", l)
		if l.Removed {
			delete(have, p)
			removals++
		} else {
			have[p] = l
		}
		if news, err := api.newLogs(f); err != nil {
			t.Fatal(err)
		} else {
			polled = append(polled, news.([]*types.Log)...)
		}
	}
	ctx := wait.Context(t)
	seen := []types.Log{}
	for removals < 3 {
		s.send(1, &at, 0, nil)
		slot := s.node.JAMSlot()
		wait.Until(t, func() bool {
			select {
			case l := <-told:
				seen = append(seen, l)
				take(l)
				return true
			default:
				return s.node.JAMSlot() > slot // without a log
			}
		}, "a slot; %d logs, %d removals", len(seen), removals)
		if s.nonces[1]%50 == 0 {
			require.NoError(t, s.node.Drain(ctx)) // the pool's limit per account
		}
	}
	require.NoError(t, s.node.Drain(ctx))
	final, err := (&ethLogs{api.api}).finalLogs(ctx, criteria)
	require.NoError(t, err)
	for len(have) != len(final) || len(seen) < len(polled) {
		select {
		case l := <-told:
			seen = append(seen, l)
			take(l)
		case err := <-subscription.Err():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatalf("have %d logs, and %d are final", len(have), len(final))
		}
	}
	for _, l := range final {
		require.Equal(t, *l, have[place{l.BlockHash, l.Index}])
	}
	for len(polled) < len(seen) {
		news, err := api.newLogs(f)
		require.NoError(t, err)
		require.NotEmpty(t, news)
		polled = append(polled, news.([]*types.Log)...)
	}
	for i, l := range polled {
		require.Equal(t, seen[i], *l)
	}
}

// finalLogs are all logs that fit, of final blocks.
func (a *ethLogs) finalLogs(ctx context.Context, criteria gethfilters.FilterCriteria) ([]*types.Log, error) {
	criteria.FromBlock = common.Big0
	criteria.ToBlock = a.node.Resolve(rpc.FinalizedBlockNumber).Number()
	big := *a.cfg
	big.MaxLogs, big.LogRange, big.LogTerms = 1_000_000, 1_000_000, 10
	return (&ethLogs{&api{node: a.node, cfg: &big}}).GetLogs(ctx, criteria)
}

// Nothing of the node, its connections and its subscriptions is left when it has stopped.
func TestGoroutinesEnd(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := goleak.IgnoreCurrent()
	t.Run("a node with subscribers", func(t *testing.T) {
		s := serve(t, nil)
		for _, name := range []string{"newHeads", "newPendingTransactions"} {
			_, err := s.dial(s.ws()).EthSubscribe(t.Context(), make(chan any, 100), name)
			require.NoError(t, err)
		}
		require.NoError(t, s.dial(s.server.URL).CallContext(t.Context(), new(any), "eth_newPendingTransactionFilter"))
		s.mined(s.send(0, &common.Address{1}, 1, nil))
	})
	wait.Until(t, func() bool {
		http.DefaultClient.CloseIdleConnections()
		return goleak.Find(before) == nil
	}, "no goroutine is left")
}
