package jip2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// support records whether the node lacks a method.
type support struct{ missing atomic.Bool }

// Parameters returns the constants of the node's chain.
func (c *Client) Parameters(ctx context.Context) (Parameters, error) {
	raw, err := required[rawJSON](ctx, c, "parameters")
	if err != nil {
		return Parameters{}, err
	}
	return decodeParameters(raw)
}

// rawJSON is a result that is decoded later.
type rawJSON []byte

func (r *rawJSON) UnmarshalJSON(raw []byte) error {
	*r = append((*r)[:0], raw...)
	return nil
}

// required calls a method whose result must not be null.
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

// optional calls a method whose result may be null, for which it returns the
// zero value.
func optional[T any](ctx context.Context, c *Client, method string, params ...any) (T, error) {
	var result *T
	var none T
	if err := c.Call(ctx, &result, method, params...); err != nil || result == nil {
		return none, err
	}
	return *result, nil
}

// BestBlock returns the head of the node's best chain.
func (c *Client) BestBlock(ctx context.Context) (BlockDescriptor, error) {
	return required[BlockDescriptor](ctx, c, "bestBlock")
}

// FinalizedBlock returns the newest block that the node considers final.
func (c *Client) FinalizedBlock(ctx context.Context) (BlockDescriptor, error) {
	return required[BlockDescriptor](ctx, c, "finalizedBlock")
}

// Parent returns the parent of a block.
func (c *Client) Parent(ctx context.Context, block jamq.HeaderHash) (BlockDescriptor, error) {
	return required[BlockDescriptor](ctx, c, "parent", Hash(block))
}

// StateRoot returns the state root after a block, which a refine context
// contains for its anchor.
func (c *Client) StateRoot(ctx context.Context, block jamq.HeaderHash) (Hash, error) {
	return required[Hash](ctx, c, "stateRoot", Hash(block))
}

// BeefyRoot returns the super-peak of the accumulation-output log after a
// block, which a refine context contains for its anchor.
func (c *Client) BeefyRoot(ctx context.Context, block jamq.HeaderHash) (Hash, error) {
	return required[Hash](ctx, c, "beefyRoot", Hash(block))
}

// ServiceValue returns a value from the storage of a service after a block. It
// returns nil if there is no value; an empty value is not nil.
func (c *Client) ServiceValue(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, key []byte) ([]byte, error) {
	return optional[[]byte](ctx, c, "serviceValue", Hash(block), service, blob(key))
}

// ServiceData returns the account of a service after a block, encoded as the
// Gray Paper defines it, or nil if there is no such service.
func (c *Client) ServiceData(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID) ([]byte, error) {
	return optional[[]byte](ctx, c, "serviceData", Hash(block), service)
}

// ServicePreimage returns data that was provided to a service on its request, by
// the data's BLAKE2b-256 hash. It returns nil if the data was not provided.
func (c *Client) ServicePreimage(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, hash common.Hash) ([]byte, error) {
	return optional[[]byte](ctx, c, "servicePreimage", Hash(block), service, Hash(hash))
}

// ServiceRequest returns the state of a service's request for data with the
// given hash and length in bytes, after a block.
func (c *Client) ServiceRequest(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, hash common.Hash, length uint32) (PreimageRequest, error) {
	return optional[PreimageRequest](ctx, c, "serviceRequest", Hash(block), service, Hash(hash), length)
}

// ListServices returns the services that the node knows after a block. The list
// may be incomplete.
func (c *Client) ListServices(ctx context.Context, block jamq.HeaderHash) ([]jamq.ServiceID, error) {
	return required[[]jamq.ServiceID](ctx, c, "listServices", Hash(block))
}

// WorkReport returns a work report by its hash, encoded as the Gray Paper
// defines it: see codec.WorkReport. The error is an *[Error] with
// CodeReportUnavailable if the node does not have the report.
func (c *Client) WorkReport(ctx context.Context, report common.Hash) ([]byte, error) {
	return required[[]byte](ctx, c, "workReport", Hash(report))
}

// WorkPackageSegments returns segments that a package has exported, by their
// indices among its exports. Each has 4,104 bytes. The error is an *[Error] with
// CodeSegmentUnavailable if the node cannot get one. Segments that do not fit into one
// answer are fetched with several calls: see Config.MaxAnswer.
func (c *Client) WorkPackageSegments(ctx context.Context, pkg jamq.PackageHash, indices []uint16) ([][]byte, error) {
	return c.segments(ctx, "fetchWorkPackageSegments", Hash(pkg), indices)
}

// Segments returns segments under a segment root, by their indices. It is
// otherwise like WorkPackageSegments.
func (c *Client) Segments(ctx context.Context, root common.Hash, indices []uint16) ([][]byte, error) {
	return c.segments(ctx, "fetchSegments", Hash(root), indices)
}

// answeredSegment is the room for a segment in an answer, in bytes: its base64, quotes
// and a comma.
const answeredSegment = 6000

func (c *Client) segments(ctx context.Context, method string, of Hash, indices []uint16) ([][]byte, error) {
	most := int(min(max(c.cfg.MaxAnswer/answeredSegment, 1), maxBatch))
	for all := [][]byte{}; ; {
		n := min(most, len(indices))
		some, err := c.someSegments(ctx, method, of, indices[:n])
		if err != nil {
			return nil, err
		}
		if all, indices = append(all, some...), indices[n:]; len(indices) == 0 {
			return all, nil
		}
	}
}

// someSegments fetches segments that fit into one answer.
func (c *Client) someSegments(ctx context.Context, method string, of Hash, indices []uint16) ([][]byte, error) {
	if indices == nil {
		indices = []uint16{}
	}
	raw, err := required[rawJSON](ctx, c, method, of, indices)
	if err != nil {
		return nil, err
	}
	list, isArray := elements(raw, len(indices))
	if !isArray || len(list) != len(indices) {
		return nil, fmt.Errorf("%s: %w: want an array of %d segments", method, ErrMalformed, len(indices))
	}
	segments := make([][]byte, len(list))
	for i := range list {
		if err := json.Unmarshal(list[i], &segments[i]); err != nil || len(segments[i]) != segmentSize {
			return nil, fmt.Errorf("%s: %w: segment %d of %d bytes, want %d: %v", method, ErrMalformed, indices[i], len(segments[i]), segmentSize, err)
		}
	}
	return segments, nil
}

// blob returns an empty slice for nil, which would be encoded as null.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// WorkPackageStatus returns the status of a package after a block. anchor is
// the anchor of the package.
func (c *Client) WorkPackageStatus(ctx context.Context, block jamq.HeaderHash, pkg jamq.PackageHash, anchor jamq.HeaderHash) (WorkPackageStatus, error) {
	return required[WorkPackageStatus](ctx, c, "workPackageStatus", Hash(block), Hash(pkg), Hash(anchor))
}

// SyncState returns the progress of the node's synchronization.
func (c *Client) SyncState(ctx context.Context) (SyncState, error) {
	return required[SyncState](ctx, c, "syncState")
}

// SubmitWorkPackage sends a package and its extrinsics, in order, to the
// guarantors of a core. A nil error means that the node accepted the package,
// not that it will be reported. Errors have a class: see submit.ClassOf.
func (c *Client) SubmitWorkPackage(ctx context.Context, core jamq.CoreIndex, pkg []byte, extrinsics [][]byte) error {
	if extrinsics == nil {
		extrinsics = [][]byte{}
	}
	return classify(c.Call(ctx, nil, "submitWorkPackage", core, blob(pkg), extrinsics))
}

// SubmitWorkPackageBundle sends a whole bundle to the guarantors of a core. The
// error wraps ErrUnsupported if the node lacks the method, as older nodes do, or
// does not understand the call. The same bundle may then be sent as a package
// with its extrinsics. If the node lacks the method, later calls return the
// error without contacting the node. Errors have a class: see submit.ClassOf.
func (c *Client) SubmitWorkPackageBundle(ctx context.Context, core jamq.CoreIndex, bundle []byte) error {
	const method = "submitWorkPackageBundle"
	if c.bundles.missing.Load() {
		return submit.WithClass(submit.Fatal, fmt.Errorf("%w: %s", ErrUnsupported, method))
	}
	err := c.Call(ctx, nil, method, core, blob(bundle))
	if unknownMethod(err) {
		c.bundles.missing.Store(true)
	}
	if unknownMethod(err) || notUnderstood(err) {
		return submit.WithClass(submit.Fatal, fmt.Errorf("%w: %w", ErrUnsupported, err))
	}
	return classify(err)
}

// SubmitPreimage gives the node data that a service has requested.
func (c *Client) SubmitPreimage(ctx context.Context, service jamq.ServiceID, data []byte) error {
	return c.Call(ctx, nil, "submitPreimage", service, blob(data))
}

// SubscribeBestBlock follows the head of the best chain.
func (c *Client) SubscribeBestBlock(ctx context.Context) (*Subscription[BlockDescriptor], error) {
	return Subscribe[BlockDescriptor](ctx, c, "subscribeBestBlock")
}

// SubscribeFinalizedBlock follows the newest finalized block.
func (c *Client) SubscribeFinalizedBlock(ctx context.Context) (*Subscription[BlockDescriptor], error) {
	return Subscribe[BlockDescriptor](ctx, c, "subscribeFinalizedBlock")
}

// SubscribeSyncStatus follows whether the node has synchronized. A value is
// "InProgress" or "Completed", as in SyncState.Status.
func (c *Client) SubscribeSyncStatus(ctx context.Context) (*Subscription[string], error) {
	return Subscribe[string](ctx, c, "subscribeSyncStatus")
}

// SubscribeWorkPackageStatus follows the status of a package on the best chain
// or, if finalized is true, on the finalized chain. Close the subscription when
// it is no longer needed: nodes limit their number.
func (c *Client) SubscribeWorkPackageStatus(ctx context.Context, pkg jamq.PackageHash, anchor jamq.HeaderHash, finalized bool) (*Subscription[ChainSubUpdate[WorkPackageStatus]], error) {
	return Subscribe[ChainSubUpdate[WorkPackageStatus]](ctx, c, "subscribeWorkPackageStatus", Hash(pkg), Hash(anchor), finalized)
}

// SubscribeServiceValue follows a value in the storage of a service, on the
// best chain or, if finalized is true, on the finalized chain. An update's
// value is nil if the key has no value.
func (c *Client) SubscribeServiceValue(ctx context.Context, service jamq.ServiceID, key []byte, finalized bool) (*Subscription[ChainSubUpdate[*[]byte]], error) {
	return Subscribe[ChainSubUpdate[*[]byte]](ctx, c, "subscribeServiceValue", service, blob(key), finalized)
}

// unknownMethod reports whether an answer means that the node lacks the method.
// Some nodes send code 0 and a message instead of CodeMethodNotFound.
func unknownMethod(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Message)
	return e.Code == CodeMethodNotFound || e.Code == CodeOther && strings.Contains(text, "method") &&
		slices.ContainsFunc(missingTexts, func(t string) bool { return strings.Contains(text, t) })
}

// missingTexts are in the messages of nodes that lack a method and answer code
// 0.
var missingTexts = []string{"not found", "unknown", "unsupported", "not exist", "not implemented"}

// notUnderstood reports whether the node answered that it does not understand a
// call: an invalid request, an unknown method or invalid parameters.
func notUnderstood(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code <= CodeInvalidRequest && e.Code >= CodeInvalidParams
}

// classify adds the class to the error of a submission. An error that is not
// the node's answer is retryable, since the request may have arrived. Code 0
// depends on this node and this time, for example a validator that accepts no
// submissions, so another guarantor may accept the package.
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
	case unknownMethod(err), notUnderstood(err):
		return submit.WithClass(submit.Fatal, err)
	case e.Code == CodeOther:
		return submit.WithClass(submit.OtherGuarantor, err)
	}
	return submit.WithClass(submit.Retryable, err)
}
