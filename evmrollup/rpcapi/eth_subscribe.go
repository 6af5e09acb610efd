package rpcapi

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	gethfilters "github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// ethSubscriptions implements the filters, and eth_subscribe, which works only over
// WebSocket. Both follow the latest block. If a reorg of JAM removes latest blocks, log
// subscriptions deliver the logs of these blocks again, marked as removed. Blocks that
// become latest afterwards are delivered as new heads, even if they were delivered
// before.
type ethSubscriptions struct{ *api }

// NewHeads implements eth_subscribe("newHeads"). It delivers the headers of
// blocks that become latest.
func (a *ethSubscriptions) NewHeads(ctx context.Context) (_ *rpc.Subscription, err error) {
	defer ledger.Recover(&err)
	return a.follow(ctx, func(c node.HeadChange, notify func(any) error) error {
		if c.Removed {
			return nil
		}
		return notify(c.Block.Header())
	})
}

// Logs implements eth_subscribe("logs", criteria). It delivers the matching logs of blocks that
// become latest.
func (a *ethSubscriptions) Logs(ctx context.Context, criteria gethfilters.FilterCriteria) (_ *rpc.Subscription, err error) {
	defer ledger.Recover(&err)
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

// receiptQuery selects the transactions whose receipts are delivered; if empty, all.
type receiptQuery struct {
	TransactionHashes []common.Hash `json:"transactionHashes"` // of the receipts; all if empty
}

// maxReceiptHashes is the maximum number of hashes in a receiptQuery. It is geth's value.
const maxReceiptHashes = 200

// TransactionReceipts implements eth_subscribe("transactionReceipts", query). It
// delivers the receipts of blocks that become latest, with one message for each block.
func (a *ethSubscriptions) TransactionReceipts(ctx context.Context, query *receiptQuery) (_ *rpc.Subscription, err error) {
	defer ledger.Recover(&err)
	var wanted []common.Hash
	if query != nil {
		wanted = query.TransactionHashes
	}
	if len(wanted) > maxReceiptHashes {
		return nil, errors.New("exceed max number of transaction hashes allowed per transactionReceipts subscription")
	}
	return a.follow(ctx, func(c node.HeadChange, notify func(any) error) error {
		var receipts []object
		for i, r := range c.Block.Receipts {
			if c.Removed || len(wanted) > 0 && !slices.Contains(wanted, r.TxHash) {
				continue
			}
			receipt, err := a.receipt(c.Block, i)
			if err != nil {
				return err // impossible: the pool recovered the sender
			}
			receipts = append(receipts, receipt)
		}
		if len(receipts) == 0 {
			return nil
		}
		return notify(receipts)
	})
}

// begin opens a subscription on the client's connection, until the returned function is
// called.
func (a *ethSubscriptions) begin(ctx context.Context, weight int) (*rpc.Notifier, *rpc.Subscription, func(), error) {
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

// follow calls send for each head change from now on, until the client unsubscribes.
func (a *ethSubscriptions) follow(ctx context.Context, send func(node.HeadChange, func(any) error) error) (*rpc.Subscription, error) {
	notifier, s, end, err := a.begin(ctx, 1)
	if err != nil {
		return nil, err
	}
	notify := func(v any) error { return notifier.Notify(s.ID, v) }
	cursor := a.node.HeadCursor()
	// A slow subscriber delays neither the node nor other clients.
	go func() {
		defer end()
		for {
			changes, next, more, err := a.node.HeadChanges(cursor)
			if err != nil {
				// The subscriber is too slow: the changes that it has not read are gone. It
				// continues with the next new one.
				cursor = a.node.HeadCursor()
				continue
			}
			for _, c := range changes {
				if send(c, notify) != nil {
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

// NewPendingTransactions implements eth_subscribe("newPendingTransactions", full). It
// delivers the transactions of the pool that become executable: their hashes or, if
// full is true, the whole transactions. If the subscriber is too slow, the newest
// transactions are lost.
func (a *ethSubscriptions) NewPendingTransactions(ctx context.Context, full *bool) (_ *rpc.Subscription, err error) {
	defer ledger.Recover(&err)
	notifier, s, end, err := a.begin(ctx, poolWeight)
	if err != nil {
		return nil, err
	}
	pending, leave := a.node.PendingTransactions(poolBuffer)
	go func() {
		<-s.Err()
		leave()
	}()
	go func() {
		defer end()
		defer leave()
		for tx := range pending {
			var message any = tx.Hash()
			if full != nil && *full {
				if message, err = a.pooledTransaction(tx, a.node.PooledProgress()); err != nil {
					continue // impossible: the pool recovered the sender
				}
			}
			if notifier.Notify(s.ID, message) != nil {
				return
			}
		}
	}()
	return s, nil
}
