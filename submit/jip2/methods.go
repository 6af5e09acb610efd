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

// support remembers that the node lacks a method, so that the client does not
// call it again.
type support struct{ missing atomic.Bool }

// Parameters returns the constants of the node's chain.
func (c *Client) Parameters(ctx context.Context) (Parameters, error) {
	raw, err := required[rawJSON](ctx, c, "parameters")
	if err != nil {
		return Parameters{}, err
	}
	return decodeParameters(raw)
}

// rawJSON is the undecoded result of a call, for callers that decode it
// themselves.
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

// optional calls a method whose result may be null, which gives the zero value.
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

// StateRoot returns the root of the JAM state after a block. The refine context
// of a package contains the state roots of the package's anchor and lookup
// anchor.
func (c *Client) StateRoot(ctx context.Context, block jamq.HeaderHash) (Hash, error) {
	return required[Hash](ctx, c, "stateRoot", Hash(block))
}

// BeefyRoot returns the BEEFY root after a block, which is the super-peak of
// the accumulation-output log. The refine context of a package contains this
// root for the package's anchor.
func (c *Client) BeefyRoot(ctx context.Context, block jamq.HeaderHash) (Hash, error) {
	return required[Hash](ctx, c, "beefyRoot", Hash(block))
}

// ServiceValue returns the value that a service has stored under a key, as it
// is after a block. It returns nil if the key has no value; an empty value is
// not nil.
func (c *Client) ServiceValue(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, key []byte) ([]byte, error) {
	return optional[[]byte](ctx, c, "serviceValue", Hash(block), service, blob(key))
}

// ServiceData returns the account of a service after a block, encoded as the
// Gray Paper defines it, or nil if there is no such service.
func (c *Client) ServiceData(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID) ([]byte, error) {
	return optional[[]byte](ctx, c, "serviceData", Hash(block), service)
}

// ServicePreimage returns data that a service has requested by its BLAKE2b-256
// hash. It returns nil if the data has not been provided to the service.
func (c *Client) ServicePreimage(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, hash common.Hash) ([]byte, error) {
	return optional[[]byte](ctx, c, "servicePreimage", Hash(block), service, Hash(hash))
}

// ServiceRequest returns the state, after a block, of a service's request for
// data: for example that the service still waits for the data, or since when it
// has the data. The data is identified by its hash and its length in bytes.
func (c *Client) ServiceRequest(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID, hash common.Hash, length uint32) (PreimageRequest, error) {
	return optional[PreimageRequest](ctx, c, "serviceRequest", Hash(block), service, Hash(hash), length)
}

// ListServices returns the ids of the services that the node knows after a block. The list may be
// incomplete.
func (c *Client) ListServices(ctx context.Context, block jamq.HeaderHash) ([]jamq.ServiceID, error) {
	return required[[]jamq.ServiceID](ctx, c, "listServices", Hash(block))
}

// WorkReport returns the work report with the given hash, encoded as the Gray Paper defines it;
// codec.WorkReport decodes it. The error is an *[Error] with CodeReportUnavailable if the node does
// not have the report.
func (c *Client) WorkReport(ctx context.Context, report common.Hash) ([]byte, error) {
	return required[[]byte](ctx, c, "workReport", Hash(report))
}

// WorkPackageSegments returns some of the segments that a package has exported.
// indices are their positions among the package's exports. Each segment has
// 4,104 bytes. If the segments do not fit into one answer, they are fetched
// with several calls: see Config.MaxAnswer. If the node cannot get one of the
// segments, the error is an *[Error] with CodeSegmentUnavailable.
func (c *Client) WorkPackageSegments(ctx context.Context, pkg jamq.PackageHash, indices []uint16) ([][]byte, error) {
	return c.segments(ctx, "fetchWorkPackageSegments", Hash(pkg), indices)
}

// Segments returns some of the segments under a segment root, which is the root
// over all segments that a package has exported. indices are their positions
// under this root. In all other respects Segments works like
// WorkPackageSegments.
func (c *Client) Segments(ctx context.Context, root common.Hash, indices []uint16) ([][]byte, error) {
	return c.segments(ctx, "fetchSegments", Hash(root), indices)
}

// answeredSegment is the number of bytes that the client reserves in an answer
// for one segment: its base64, two quotes and a comma. It determines how many
// segments one call requests.
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

// blob returns b, or an empty slice if b is nil.
func blob(b []byte) []byte {
	// JSON would encode nil as null and not as an empty value.
	if b == nil {
		return []byte{}
	}
	return b
}

// WorkPackageStatus returns how far a package has come on the chain that ends in the given block.
// anchor is the anchor in the package's refine context.
func (c *Client) WorkPackageStatus(ctx context.Context, block jamq.HeaderHash, pkg jamq.PackageHash, anchor jamq.HeaderHash) (WorkPackageStatus, error) {
	return required[WorkPackageStatus](ctx, c, "workPackageStatus", Hash(block), Hash(pkg), Hash(anchor))
}

// SyncState returns the progress of the node's synchronization.
func (c *Client) SyncState(ctx context.Context) (SyncState, error) {
	return required[SyncState](ctx, c, "syncState")
}

// SubmitWorkPackage gives the node a package and its extrinsics, in order, for
// the guarantors of a core. A nil error means that the node has accepted the
// package, which does not promise that it will be reported. Errors have a class
// that tells the caller how to continue: see submit.ClassOf.
func (c *Client) SubmitWorkPackage(ctx context.Context, core jamq.CoreIndex, pkg []byte, extrinsics [][]byte) error {
	if extrinsics == nil {
		extrinsics = [][]byte{}
	}
	return classify(c.Call(ctx, nil, "submitWorkPackage", core, blob(pkg), extrinsics))
}

// SubmitWorkPackageBundle gives the node a whole bundle for the guarantors of a
// core. A bundle is a package with its extrinsics and imported segments.
//
// The error wraps ErrUnsupported if the node lacks the method, as older nodes
// do, or does not understand the call. The caller may then send the same
// content with SubmitWorkPackage. Once the node has answered that it lacks the
// method, later calls return the error without contacting the node. Errors have
// a class: see submit.ClassOf.
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

// SubmitPreimage gives the node data that a service has requested by its hash.
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

// SubscribeSyncStatus follows whether the node is still synchronizing. Each
// value is "InProgress" or "Completed", as in SyncState.Status.
func (c *Client) SubscribeSyncStatus(ctx context.Context) (*Subscription[string], error) {
	return Subscribe[string](ctx, c, "subscribeSyncStatus")
}

// SubscribeWorkPackageStatus follows the status of a package on the best chain or, if finalized is
// true, on the finalized chain. Close the subscription when you no longer need it, because nodes
// limit the number of subscriptions.
func (c *Client) SubscribeWorkPackageStatus(ctx context.Context, pkg jamq.PackageHash, anchor jamq.HeaderHash, finalized bool) (*Subscription[ChainSubUpdate[WorkPackageStatus]], error) {
	return Subscribe[ChainSubUpdate[WorkPackageStatus]](ctx, c, "subscribeWorkPackageStatus", Hash(pkg), Hash(anchor), finalized)
}

// SubscribeServiceValue follows the value that a service has stored under a
// key, on the best chain or, if finalized is true, on the finalized chain. The
// value of an update is nil if the key has no value.
func (c *Client) SubscribeServiceValue(ctx context.Context, service jamq.ServiceID, key []byte, finalized bool) (*Subscription[ChainSubUpdate[*[]byte]], error) {
	return Subscribe[ChainSubUpdate[*[]byte]](ctx, c, "subscribeServiceValue", service, blob(key), finalized)
}

// unknownMethod reports whether err is a node's answer that it lacks the method.
func unknownMethod(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Message)
	// Some nodes answer with code 0 instead of CodeMethodNotFound, so search the
	// message too.
	return e.Code == CodeMethodNotFound || e.Code == CodeOther && strings.Contains(text, "method") &&
		slices.ContainsFunc(missingTexts, func(t string) bool { return strings.Contains(text, t) })
}

// missingTexts are the phrases by which unknownMethod recognizes that a node
// lacks a method although it answers with code 0.
var missingTexts = []string{"not found", "unknown", "unsupported", "not exist", "not implemented"}

// notUnderstood reports whether the node answers that it does not understand the
// call.
func notUnderstood(err error) bool {
	var e *Error
	// These are the codes of an invalid request, an unknown method and invalid
	// parameters.
	return errors.As(err, &e) && e.Code <= CodeInvalidRequest && e.Code >= CodeInvalidParams
}

// classify adds to the error of a submission the class that submit.ClassOf returns.
func classify(err error) error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooLarge):
		return submit.WithClass(submit.Rebuild, err)
	case errors.Is(err, ErrClosed):
		return submit.WithClass(submit.Fatal, err)
	// The node has not answered, and the request may have arrived.
	case !errors.As(err, &e):
		return submit.WithClass(submit.Retryable, err)
	case unknownMethod(err), notUnderstood(err):
		return submit.WithClass(submit.Fatal, err)
	// Another node may accept the package. For example, this node may be a validator that
	// takes no submissions.
	case e.Code == CodeOther:
		return submit.WithClass(submit.OtherGuarantor, err)
	}
	return submit.WithClass(submit.Retryable, err)
}
