package eoa

import (
	"context"
	"crypto/rand"
)

// Handle lets a user follow and change one request. [Client.Send] returns the
// handle of a new request. [Client.Handle] returns the handle of a request that was
// submitted before, even by another process. All methods are safe for concurrent
// use.
type Handle struct {
	client *Client
	key    string
}

// Send submits a request and returns its handle. When it returns without an error, the
// request is durable and will be executed once.
//
// With a [Request.Key], Send can be repeated: after any error, and after a restart,
// send the same request with the same key again. If Key is empty, Send chooses a
// random key. After an error it is then unknown whether the request was accepted,
// and a second Send would submit a second request. The errors are those of
// [Client.Submit].
func (c *Client) Send(ctx context.Context, r Request) (*Handle, error) {
	if r.Key == "" {
		r.Key = rand.Text()
	}
	if _, err := c.Submit(ctx, r); err != nil {
		return nil, err
	}
	return c.Handle(r.Key), nil
}

// Handle returns the handle of the request with the given key. It does not check
// that the request exists.
func (c *Client) Handle(key string) *Handle { return &Handle{client: c, key: key} }

// Key returns the key of the request.
func (h *Handle) Key() string { return h.key }

// Wait waits until the transaction of the request is in a block at the given depth
// in the chain. The newest block has depth 1, and 0 means Config.Confirmations. A
// final block is deep enough for any depth. The returned record contains the fields
// of the receipt: Tx, Height, Block, GasUsed, Contract and Logs.
//
// The error is that of [Record.Err]:
//
//   - It wraps ErrReverted if the transaction in the block failed.
//   - It wraps ErrNotExecuted if the request ended without a transaction, or if the
//     block contains a no-op in its place, for example because of [Handle.Cancel].
//   - It wraps ErrNotReplaced if the block contains the transaction from before the
//     last [Handle.Replace].
//
// If ctx ends first, Wait returns the record as last read, and ctx's error. The
// request goes on, so Wait can be called again.
//
// If another process works on the account, this process does not know the newest
// block. Wait then distinguishes only the depths 1, Config.Confirmations and final,
// and waits until the next of these is reached.
func (h *Handle) Wait(ctx context.Context, depth uint64) (Record, error) {
	if depth == 0 {
		depth = h.client.confirmations
	}
	r, err := h.client.wait(ctx, h.key, func(r *Record, height uint64) bool {
		return r.State.Terminal() || r.State >= Mined && depth <= max(1, h.client.depth(r, height))
	})
	if err == nil {
		err = r.Err()
	}
	return r, err
}

// depth returns the depth that the block of a mined record has at least.
func (c *Client) depth(r *Record, height uint64) (depth uint64) {
	if r.State == Confirmed {
		depth = c.confirmations
	}
	// The block was known to be on the chain at this height.
	if height >= r.Height {
		depth = max(depth, height-r.Height+1)
	}
	return depth
}

// Cancel withdraws this request; see [Client.Cancel].
func (h *Handle) Cancel(ctx context.Context) error { return h.client.Cancel(ctx, h.key) }

// Replace gives this request another payload; see [Client.Replace].
func (h *Handle) Replace(ctx context.Context, payload Request) error {
	return h.client.Replace(ctx, h.key, payload)
}
