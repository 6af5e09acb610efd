package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Client is the side of an account that its users see. It submits requests, follows
// them, and orders changes. It works through the store, so that another process may
// do what it orders. Each [Executor] is a client of its account, and [Fleet.Client]
// returns one. All methods are safe for concurrent use.
type Client struct {
	account Account
	store   Store
	now     func() time.Time
	// confirmations is Config.Confirmations.
	confirmations uint64
	// notify makes the account's executor look at the store. progress returns how
	// far the executor is, or zero values if there is none in this process.
	notify   func()
	progress func() progress
}

// progress is how far an executor is.
type progress struct {
	// height is a height at which the blocks of all mined records are still part of
	// the chain; 0 means unknown.
	height uint64
	// changed is closed when the executor has written a step or seen a block.
	changed <-chan struct{}
}

// Submit accepts requests, all or none. When it returns nil, they are durable.
// After any error the same requests may be submitted again with the same keys.
// Errors wrap ErrInvalidRequest, ErrKeyReused or ErrTooManyBlobs, or come from
// the store.
func (c *Client) Submit(ctx context.Context, requests ...Request) ([]Record, error) {
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
	}
	records, err := c.store.Submit(ctx, c.account, c.now(), requests...)
	if err == nil {
		c.notify()
	}
	return records, err
}

// Get returns the record with the given key. It returns ErrUnknownRequest if
// there is none.
func (c *Client) Get(ctx context.Context, key string) (Record, error) {
	return c.store.Get(ctx, c.account, key)
}

// ByHash returns the record that has a transaction with the given hash. It
// returns ErrUnknownRequest if there is none.
func (c *Client) ByHash(ctx context.Context, tx common.Hash) (Record, error) {
	return c.store.ByHash(ctx, c.account, tx)
}

// List returns the records with ids above after, ascending, at most limit.
func (c *Client) List(ctx context.Context, after uint64, limit int) ([]Record, error) {
	return c.store.List(ctx, c.account, after, limit)
}

// Cancel orders that a request be withdrawn. If its transaction may already be
// on a node, a noop with the same nonce replaces it. The transaction that is
// mined decides, so the record's final state shows whether the request was
// cancelled. Cancel returns when the order is durable.
func (c *Client) Cancel(ctx context.Context, key string) error {
	return c.order(ctx, Order{Kind: OrderCancel, Key: key})
}

// Replace orders that a request get another payload and other limits, at the
// same nonce. Its key, group and priority stay. The transaction that is mined
// decides. A blob request can only get a payload with blobs, and any other
// request only one without. Replace returns when the order is durable.
func (c *Client) Replace(ctx context.Context, key string, payload Request) error {
	if err := account.CheckPayload(&payload); err != nil {
		return err
	}
	r, err := c.store.Get(ctx, c.account, key)
	if err != nil {
		return err
	}
	if err := account.CheckReplacement(&r.Request, &payload); err != nil {
		return err
	}
	return c.order(ctx, Order{Kind: OrderReplace, Key: key, Payload: &payload})
}

// ResetNonce orders that the next nonce become the lowest one that neither the
// chain has used nor a record holds. With force, the requests in flight are
// given up first. Use force only if they can never be mined; otherwise, a
// request that is submitted again may be sent twice.
func (c *Client) ResetNonce(ctx context.Context, force bool) error {
	return c.order(ctx, Order{Kind: OrderReset, Force: force})
}

func (c *Client) order(ctx context.Context, o Order) error {
	if o.Key != "" {
		if _, err := c.store.Get(ctx, c.account, o.Key); err != nil {
			return err
		}
	}
	if err := c.store.Order(ctx, c.account, c.now(), o); err != nil {
		return err
	}
	c.notify()
	return nil
}

// Wait returns the record with the given key as soon as it has reached state or
// has ended in any way. state is usually Mined, Confirmed or Final. Other
// processes may do the work: Wait also reads the store, first after 50
// milliseconds and then in longer intervals, of at most 3.2 seconds. When ctx
// ends, it returns the record as last read and ctx's error.
func (c *Client) Wait(ctx context.Context, key string, state State) (Record, error) {
	return c.wait(ctx, key, func(r *Record, _ uint64) bool { return r.State >= state })
}

// wait returns the record with the given key as soon as done returns true for it.
// The height is that of progress, as of before and after the record was read.
func (c *Client) wait(ctx context.Context, key string, done func(r *Record, height uint64) bool) (Record, error) {
	for pause := firstWait; ; pause = min(2*pause, longestWait) {
		before := c.progress()
		r, err := c.store.Get(ctx, c.account, key)
		if err != nil || done(&r, min(before.height, c.progress().height)) {
			return r, err
		}
		if err := rest(ctx, pause, before.changed); err != nil {
			return r, err
		}
	}
}

// rest waits until an executor of this process has changed something, but not
// longer than pause, because another process may have.
func rest(ctx context.Context, pause time.Duration, changed <-chan struct{}) error {
	again := time.NewTimer(pause)
	defer again.Stop()
	select {
	case <-changed:
	case <-again.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// firstWait and longestWait are the times between two reads of the store.
const firstWait, longestWait = 50 * time.Millisecond, 3200 * time.Millisecond

// Resume orders that a stopped account go on; for an account that works it does
// nothing. First find out what happened:
//
//   - ErrStoreRolledBack: the store has forgotten the last requests, or the
//     transactions that were sent for them. Let the chain include the account's
//     transactions that are in pools. Then compare the pending requests
//     ([Client.List]) with the account's transactions on the chain, and
//     [Client.Cancel] the requests that were executed. A stopped account
//     carries out orders. Requests that the store forgot altogether can be
//     submitted again if they were not executed.
//     If the account sent transactions before it came to an exclusive store, and
//     none for a request that the store has lost, nothing is to be done. Resume
//     before the first look at the chain accepts them in advance.
//   - ErrOtherChain: connect the right node. If the chain has been started again
//     on purpose, call [Client.ResetNonce] with force after Resume.
//
// Resume returns when the order is durable.
func (c *Client) Resume(ctx context.Context) error {
	return c.order(ctx, Order{Kind: OrderResume})
}
