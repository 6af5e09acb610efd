package jip2

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// support is what is known of a node's support for a method.
type support struct{ missing atomic.Bool }

// Parameters returns the chain's constants.
func (c *Client) Parameters(ctx context.Context) (Parameters, error) {
	raw, err := required[rawJSON](ctx, c, "parameters")
	if err != nil {
		return Parameters{}, err
	}
	return DecodeParameters(raw)
}

// rawJSON is a result that is read later.
type rawJSON []byte

func (r *rawJSON) UnmarshalJSON(raw []byte) error {
	*r = append((*r)[:0], raw...)
	return nil
}

// required is a call whose result must not be null.
func required[T any](ctx context.Context, c *Client, method string, params ...any) (T, error) {
	var result *T
	var none T
	if err := c.Call(ctx, &result, method, params...); err != nil {
		return none, err
	}
	if result == nil {
		return none, fmt.Errorf("%s: %w: null", method, ErrMalformed)
	}
	return *result, nil
}

// BestBlock returns the head of the node's best chain.
func (c *Client) BestBlock(ctx context.Context) (BlockDescriptor, error) {
	return required[BlockDescriptor](ctx, c, "bestBlock")
}

// FinalizedBlock returns the last block that the node holds for final.
func (c *Client) FinalizedBlock(ctx context.Context) (BlockDescriptor, error) {
	return required[BlockDescriptor](ctx, c, "finalizedBlock")
}

// Parent returns the block before another one.
func (c *Client) Parent(ctx context.Context, block jamq.HeaderHash) (BlockDescriptor, error) {
	return required[BlockDescriptor](ctx, c, "parent", Hash(block))
}

// StateRoot returns the state root after a block, BeefyRoot the peak of its accumulation-output log: what a refine context says of its anchor.
func (c *Client) StateRoot(ctx context.Context, block jamq.HeaderHash) (Hash, error) {
	return required[Hash](ctx, c, "stateRoot", Hash(block))
}

// BeefyRoot returns the peak of the accumulation-output log after a block.
func (c *Client) BeefyRoot(ctx context.Context, block jamq.HeaderHash) (Hash, error) {
	return required[Hash](ctx, c, "beefyRoot", Hash(block))
}

// ServiceValue returns a value of a service's storage after a block, or nil if there is none; an empty value is not nil.
func (c *Client) ServiceValue(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, key []byte) ([]byte, error) {
	var value *[]byte
	if err := c.Call(ctx, &value, "serviceValue", Hash(block), service, blob(key)); err != nil || value == nil {
		return nil, err
	}
	return *value, nil
}

// blob makes bytes a Blob: without this, nil would be written as null.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// WorkPackageStatus returns the status of a package with the given anchor, after a block.
func (c *Client) WorkPackageStatus(ctx context.Context, block jamq.HeaderHash, pkg jamq.PackageHash, anchor jamq.HeaderHash) (WorkPackageStatus, error) {
	return required[WorkPackageStatus](ctx, c, "workPackageStatus", Hash(block), Hash(pkg), Hash(anchor))
}

// SyncState says whether the node is up to date.
func (c *Client) SyncState(ctx context.Context) (SyncState, error) {
	return required[SyncState](ctx, c, "syncState")
}

// SubmitWorkPackage gives a package to the guarantors of a core, with its extrinsics in order. Nil says that one of them has it, not that it
// will be reported. The error has a class: see submit.ClassOf.
func (c *Client) SubmitWorkPackage(ctx context.Context, core jamq.CoreIndex, pkg []byte, extrinsics [][]byte) error {
	if extrinsics == nil {
		extrinsics = [][]byte{}
	}
	return classify(c.Call(ctx, nil, "submitWorkPackage", core, blob(pkg), extrinsics))
}

// SubmitWorkPackageBundle gives a whole bundle to the guarantors of a core. Older nodes cannot take one: then the error wraps ErrUnsupported,
// and so it does from then on, without asking. Errors have a class.
func (c *Client) SubmitWorkPackageBundle(ctx context.Context, core jamq.CoreIndex, bundle []byte) error {
	const method = "submitWorkPackageBundle"
	if c.bundles.missing.Load() {
		return submit.WithClass(submit.Fatal, fmt.Errorf("%w: %s", ErrUnsupported, method))
	}
	err := c.Call(ctx, nil, method, core, blob(bundle))
	if unknownMethod(err) {
		c.bundles.missing.Store(true)
		return submit.WithClass(submit.Fatal, fmt.Errorf("%w: %w", ErrUnsupported, err))
	}
	return classify(err)
}

// SubmitPreimage gives a node data that a service asked for.
func (c *Client) SubmitPreimage(ctx context.Context, service jamq.ServiceID, data []byte) error {
	return c.Call(ctx, nil, "submitPreimage", service, blob(data))
}

// SubscribeBestBlock follows the head of the best chain.
func (c *Client) SubscribeBestBlock(ctx context.Context) (*Subscription[BlockDescriptor], error) {
	return Subscribe[BlockDescriptor](ctx, c, "subscribeBestBlock")
}

// SubscribeFinalizedBlock follows finality.
func (c *Client) SubscribeFinalizedBlock(ctx context.Context) (*Subscription[BlockDescriptor], error) {
	return Subscribe[BlockDescriptor](ctx, c, "subscribeFinalizedBlock")
}

// SubscribeWorkPackageStatus follows a package's status on the best chain, or the finalized one. Nodes cap such subscriptions: close what has
// served.
func (c *Client) SubscribeWorkPackageStatus(ctx context.Context, pkg jamq.PackageHash, anchor jamq.HeaderHash, finalized bool) (*Subscription[ChainSubUpdate[WorkPackageStatus]], error) {
	return Subscribe[ChainSubUpdate[WorkPackageStatus]](ctx, c, "subscribeWorkPackageStatus", Hash(pkg), Hash(anchor), finalized)
}

// SubscribeServiceValue follows a value of a service's storage; it is nil where there is none.
func (c *Client) SubscribeServiceValue(ctx context.Context, service jamq.ServiceID, key []byte, finalized bool) (*Subscription[ChainSubUpdate[*[]byte]], error) {
	return Subscribe[ChainSubUpdate[*[]byte]](ctx, c, "subscribeServiceValue", service, blob(key), finalized)
}

// unknownMethod reports whether an answer says that the node does not know the method. Some say it with code 0 and words.
func unknownMethod(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Message)
	return e.Code == CodeMethodNotFound || e.Code == CodeOther && strings.Contains(text, "method") &&
		(strings.Contains(text, "not found") || strings.Contains(text, "unknown") || strings.Contains(text, "unsupported") || strings.Contains(text, "not exist"))
}

// classify says what a failed submission calls for. What is not the node's own answer may have been on its way: it is retried. An answer of code 0 is
// about this node at this time: a validator that takes none, an epoch too early, a guarantor that refuses.
func classify(err error) error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooLarge):
		return submit.WithClass(submit.Rebuild, err)
	case errors.Is(err, ErrClosed):
		return submit.WithClass(submit.Fatal, err)
	case !errors.As(err, &e):
		return submit.WithClass(submit.Retryable, err)
	case unknownMethod(err), e.Code <= -32600 && e.Code >= -32602:
		return submit.WithClass(submit.Fatal, err)
	case e.Code == CodeOther:
		return submit.WithClass(submit.OtherGuarantor, err)
	}
	return submit.WithClass(submit.Retryable, err)
}
