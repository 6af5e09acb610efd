package rpcapi

import (
	"context"

	gethfilters "github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/examples/refnode/node"
)

// Subscriptions answers eth_subscribe over WebSocket, and filters over both. What they tell of is the latest block: accumulated on the best JAM chain
// without a gap. A reorganization of JAM can take it back: the logs then come again, marked as removed, and the blocks that are latest
// afterwards come as new heads, often the very same.
type Subscriptions struct{ *api }

// NewHeads is eth_subscribe("newHeads"): the headers of blocks that become latest.
func (a *Subscriptions) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	return a.follow(ctx, func(c node.HeadChange, notify func(any) error) error {
		if c.Removed {
			return nil
		}
		return notify(c.Block.Header())
	})
}

// Logs is eth_subscribe("logs", criteria).
func (a *Subscriptions) Logs(ctx context.Context, criteria gethfilters.FilterCriteria) (*rpc.Subscription, error) {
	if err := a.checkLive(&criteria); err != nil {
		return nil, err
	}
	return a.follow(ctx, func(c node.HeadChange, notify func(any) error) error {
		for _, l := range liveLogs(c, &criteria) {
			if err := notify(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin opens a subscription on the connection that a call came by. Its share is taken until the caller calls the returned function.
func (a *Subscriptions) begin(ctx context.Context, weight int) (*rpc.Notifier, *rpc.Subscription, func(), error) {
	notifier, supported := rpc.NotifierFromContext(ctx)
	if !supported {
		return nil, nil, nil, rpc.ErrNotificationsUnsupported
	}
	if err := a.limits.call(ctx, "eth_subscribe", 0); err != nil {
		return nil, nil, nil, err
	}
	s := share{a.limits.source(ctx), weight}
	if err := a.filters.take(s); err != nil {
		return nil, nil, nil, err
	}
	return notifier, notifier.CreateSubscription(), func() { a.filters.release(s) }, nil
}

// follow tells a subscriber about head changes from now on, until it unsubscribes or its connection ends. A subscriber that is slow holds up
// nobody; one that is so slow that the node has forgotten what it has not read goes on with what is new.
func (a *Subscriptions) follow(ctx context.Context, tell func(node.HeadChange, func(any) error) error) (*rpc.Subscription, error) {
	notifier, s, end, err := a.begin(ctx, 1)
	if err != nil {
		return nil, err
	}
	notify := func(v any) error { return notifier.Notify(s.ID, v) }
	cursor := a.node.HeadCursor()
	go func() {
		defer end()
		for {
			changes, next, more, err := a.node.HeadChanges(cursor)
			if err != nil {
				cursor = a.node.HeadCursor()
				continue
			}
			for _, c := range changes {
				if tell(c, notify) != nil {
					return // the connection is gone
				}
			}
			cursor = next
			select {
			case <-more:
			case <-s.Err():
				return
			}
		}
	}()
	return s, nil
}

// NewPendingTransactions is eth_subscribe("newPendingTransactions", full): transactions of the pool that can run, by their hashes, or whole.
// A subscriber that is too slow loses the oldest.
func (a *Subscriptions) NewPendingTransactions(ctx context.Context, full *bool) (*rpc.Subscription, error) {
	notifier, s, end, err := a.begin(ctx, poolWeight)
	if err != nil {
		return nil, err
	}
	events := a.node.PoolEvents(poolEvents)
	go func() {
		<-s.Err()
		events.Close()
	}()
	go func() {
		defer end()
		defer events.Close()
		for {
			e, err := events.Next(context.Background())
			if err != nil {
				return // closed
			}
			if !canRun(&e) {
				continue
			}
			var told any = e.Tx.Hash()
			if full != nil && *full {
				if told, err = a.pooledTransaction(e.Tx, a.node.PooledProgress()); err != nil {
					continue // its sender was found when it came in, so this cannot be
				}
			}
			if notifier.Notify(s.ID, told) != nil {
				return
			}
		}
	}()
	return s, nil
}
