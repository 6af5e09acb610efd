package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Client submits requests of one account, follows them, and cancels or changes
// them. It works through the store, so that another process may carry out the
// requests. Each [Executor] is a client of its account, and [Fleet.Client] returns
// a client of any account. All methods are safe for concurrent use.
type Client struct {
	account Account
	store   Store
	now     func() time.Time
	// confirmations is the value of Config.Confirmations.
	confirmations uint64
	// notify wakes the account's executor if it runs in this process. progress
	// returns that executor's progress, or the zero value.
	notify   func()
	progress func() progress
}

// progress tells a waiting caller how far the account's executor has come.
type progress struct {
	// height is the newest block height up to which the stored records agree with the chain:
	// every record that is mined there is really in a block. 0 means that this is not known.
	height uint64
	// changed is closed at the executor's next write or new block.
	changed <-chan struct{}
}

// Submit stores requests, all or none. When Submit returns nil, the requests are
// durable and will be executed. After any error, submit the same requests with the
// same keys again. The error wraps ErrInvalidRequest or ErrKeyReused, or comes from
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

// ByHash returns the record of the request that has a transaction with the given hash. It
// returns ErrUnknownRequest if there is none.
func (c *Client) ByHash(ctx context.Context, tx common.Hash) (Record, error) {
	return c.store.ByHash(ctx, c.account, tx)
}

// List returns up to limit records with ids above after, in the order of their ids.
// Begin with after 0, and continue with the last id that was returned.
func (c *Client) List(ctx context.Context, after uint64, limit int) ([]Record, error) {
	return c.store.List(ctx, c.account, after, limit)
}

// Cancel orders the executor to withdraw a request, and returns when this order is
// durable. A request that has no nonce yet simply ends. Otherwise the executor
// signs a no-op transaction with the same nonce, at a higher price. Nodes may
// still include the earlier transaction, so only the final state of the record
// shows whether the request was cancelled.
func (c *Client) Cancel(ctx context.Context, key string) error {
	if _, err := c.store.Get(ctx, c.account, key); err != nil {
		return err
	}
	return c.order(ctx, Order{Kind: account.OrderCancel, Key: key})
}

// Replace orders the executor to give a request another payload and other limits,
// and returns when this order is durable. The request keeps its key, group and
// priority, and its nonce if it has one. Nodes may still include the earlier
// transaction. A payload of kind Blob can replace only a request of kind Blob, and
// the other kinds can replace only each other.
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
	return c.order(ctx, Order{Kind: account.OrderReplace, Key: key, Payload: &payload})
}

// ResetNonce orders the executor to set the next nonce to the lowest nonce that is
// neither used on the chain nor assigned to a record. ResetNonce returns when this
// order is durable. With force, the executor first gives up the requests in flight.
// Use force only if their transactions can never be mined. Otherwise, a request
// that you submit again may be executed twice.
func (c *Client) ResetNonce(ctx context.Context, force bool) error {
	return c.order(ctx, Order{Kind: account.OrderReset, Force: force})
}

func (c *Client) order(ctx context.Context, o Order) error {
	if err := c.store.Order(ctx, c.account, c.now(), o); err != nil {
		return err
	}
	c.notify()
	return nil
}

// Wait waits until the record with the given key has reached the state, usually
// Mined, Confirmed or Final, or has ended in any way, and returns the record. If
// ctx ends first, Wait returns the record as last read, and ctx's error.
//
// Another process may do the work, so Wait also reads the store: first after 50 milliseconds,
// and then in longer intervals of at most 3.2 seconds.
func (c *Client) Wait(ctx context.Context, key string, state State) (Record, error) {
	return c.wait(ctx, key, func(r *Record, _ uint64) bool { return r.State >= state })
}

// wait returns the record with the given key as soon as done returns true.
func (c *Client) wait(ctx context.Context, key string, done func(r *Record, height uint64) bool) (Record, error) {
	for pause := firstWait; ; pause = min(2*pause, longestWait) {
		before := c.progress()
		r, err := c.store.Get(ctx, c.account, key)
		// A reorg can happen between the two reads of the height, so the lower one counts.
		if err != nil || done(&r, min(before.height, c.progress().height)) {
			return r, err
		}
		if err := waitForChange(ctx, pause, before.changed); err != nil {
			return r, err
		}
	}
}

// waitForChange waits until changed is closed or pause has passed.
func waitForChange(ctx context.Context, pause time.Duration, changed <-chan struct{}) error {
	select {
	case <-changed:
	// Changes by other processes do not close the channel.
	case <-time.After(pause):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// firstWait and longestWait limit the time between two reads of the store.
const firstWait, longestWait = 50 * time.Millisecond, 3200 * time.Millisecond

// Resume orders that a stopped account go on. It does nothing for an account that
// is not stopped. First find out what happened: the error of the stop wraps one of
// the two causes below.
//
// ErrStoreRolledBack means that the store has lost the last requests, or the
// transactions that were sent for them.
//
//   - Wait until the chain has included the account's transactions that are in
//     pools.
//   - Compare the pending requests ([Client.List]) with the account's transactions
//     on the chain, and [Client.Cancel] those that were executed. Orders are also
//     carried out while the account is stopped.
//   - Requests that the store has lost altogether can be submitted again if they
//     were not executed.
//   - If the account merely sent transactions before it was used with an exclusive
//     store, there is nothing to repair. Call Resume before the first step to
//     accept these transactions in advance.
//
// ErrOtherChain means that the node is on another chain: connect the right node. If
// the chain was started again on purpose, call [Client.ResetNonce] with force after
// Resume.
//
// Resume returns when the order is durable.
func (c *Client) Resume(ctx context.Context) error {
	return c.order(ctx, Order{Kind: account.OrderResume})
}
