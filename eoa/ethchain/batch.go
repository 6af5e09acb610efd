package ethchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

// checkID returns an error unless the node is on the chain of Options.ChainID.
func (c *Chain) checkID(ctx context.Context) error {
	// A node that was on the right chain is trusted until a call fails. After a failure the
	// connection may lead to a different node, so its chain id is checked again.
	if c.o.ChainID == 0 || c.proven.Load() {
		return nil
	}
	var id hexutil.Uint64
	calls := []rpc.BatchElem{call(&id, "eth_chainId")}
	if err := c.once(ctx, calls); err != nil {
		return err
	}
	if err := worked(calls); err != nil {
		return err
	}
	if uint64(id) != c.o.ChainID {
		return fmt.Errorf("%w: the node is on chain %d, want %d", ErrNode, uint64(id), c.o.ChainID)
	}
	c.proven.Store(true)
	return nil
}

// batch makes calls, split into as many batches as the node's limit requires.
func (c *Chain) batch(ctx context.Context, calls []rpc.BatchElem) error {
	if err := c.checkID(ctx); err != nil {
		return err
	}
	n := c.limit()
	halved := false
	for len(calls) > 0 {
		part := calls[:min(n, len(calls))]
		err := c.once(ctx, part)
		if len(part) > 1 && isTooLarge(err, part) {
			n, halved = len(part)/2, true
			continue
		}
		// The error of a single call is stored in that call, and is no error of the
		// batch.
		if err != nil {
			return err
		}
		if halved && len(part) == n { // the node accepts this many
			c.most.Store(int64(n))
		}
		calls = calls[len(part):]
	}
	return nil
}

// limit returns how many calls go into a batch.
func (c *Chain) limit() int {
	// An earlier batch was too large for the node. found is the number of calls that the node
	// is known to accept.
	if found := int(c.most.Load()); found > 0 {
		return min(found, c.o.MaxBatch)
	}
	return c.o.MaxBatch
}

// once makes calls in one batch.
func (c *Chain) once(ctx context.Context, calls []rpc.BatchElem) error {
	for i := range calls {
		calls[i].Error = nil
	}
	var wait time.Duration
	err := c.client.BatchCallContext(context.WithValue(ctx, waitKey{}, &wait), calls)
	if err == nil {
		return nil
	}
	c.proven.Store(false) // the connection may lead to another node now
	var failed rpc.HTTPError
	if errors.As(err, &failed) && isBusy(failed.StatusCode) {
		err = &eoa.BusyError{RetryAfter: wait, Err: err}
	}
	return fmt.Errorf("ethchain: %w", err)
}

// isTooLarge reports whether the node has probably refused a batch for its size.
func isTooLarge(err error, calls []rpc.BatchElem) bool {
	var status rpc.HTTPError
	var notList *json.UnmarshalTypeError
	switch {
	// Some gateways refuse with an HTTP status.
	case errors.As(err, &status):
		return status.StatusCode == http.StatusRequestEntityTooLarge || status.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(string(status.Body)), "batch")
	// Others return a single error object instead of a list.
	case err != nil:
		return errors.As(err, &notList)
	}
	// go-ethereum returns an error for the first call, and no answer to the others.
	for i := range calls[1:] {
		if !errors.Is(calls[1+i].Error, rpc.ErrMissingBatchResponse) {
			return false
		}
	}
	var refusal rpc.Error
	return errors.As(calls[0].Error, &refusal) && !isRateLimit(refusal) || errors.Is(calls[0].Error, rpc.ErrMissingBatchResponse)
}
