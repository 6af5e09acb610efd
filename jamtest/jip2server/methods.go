package jip2server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit/codec"
)

// object is a JSON object in an answer or a notification.
type object map[string]any

// completed is the sync status that the node always reports. It makes its own chain, so
// it is never behind.
const completed = "Completed"

// args reads the positional parameters of a call one by one. It keeps the first error.
type args struct {
	rest []json.RawMessage
	at   int
	err  error
}

func next[T any](a *args) (v T) {
	if a.err == nil && len(a.rest) == 0 {
		a.err = fmt.Errorf("parameter %d is missing", a.at)
	}
	if a.err != nil {
		return v
	}
	if err := json.Unmarshal(a.rest[0], &v); err != nil {
		a.err = fmt.Errorf("parameter %d: %w", a.at, err)
	}
	a.rest, a.at = a.rest[1:], a.at+1
	return v
}

func (a *args) hash() (h [32]byte) {
	raw, err := base64.StdEncoding.Strict().DecodeString(next[string](a))
	if a.err == nil && (err != nil || len(raw) != len(h)) {
		a.err = fmt.Errorf("parameter %d: want base64 of 32 bytes", a.at-1)
	}
	copy(h[:], raw)
	return h
}

func (a *args) blob() []byte {
	raw, err := base64.StdEncoding.Strict().DecodeString(next[string](a))
	if a.err == nil && err != nil {
		a.err = fmt.Errorf("parameter %d: %w", a.at-1, err)
	}
	return raw
}

// fail records that the parameter that was read last is wrong, unless an earlier one
// was.
func (a *args) fail(format string, values ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("parameter %d: %s", a.at-1, fmt.Sprintf(format, values...))
	}
}

// done returns an error if a parameter was missing, malformed or unexpected.
func (a *args) done() *Error {
	if a.err == nil && len(a.rest) > 0 {
		a.err = fmt.Errorf("%d parameters too many", len(a.rest))
	}
	if a.err != nil {
		return &Error{Code: codeParams, Message: a.err.Error()}
	}
	return nil
}

func text(h [32]byte) string { return base64.StdEncoding.EncodeToString(h[:]) }

func descriptor(p jamtest.Point) object { return object{"header_hash": text(p.Hash), "slot": p.Slot} }

func blockOf(b jamq.Block) object { return object{"header_hash": text(b.Hash), "slot": b.Slot} }

func unavailable(h jamq.HeaderHash) *Error {
	return &Error{Code: codeUnavailable, Message: "block unavailable", Data: text(h)}
}

// pruned returns the answer to a query for a state that the node has dropped.
func (s *Server) pruned(h jamq.HeaderHash) *Error {
	e := unavailable(h)
	e.Code = s.cfg.PrunedCode
	return e
}

// dispatch carries out a call, unless the node's deviations determine the answer.
func (s *Server) dispatch(p *peer, c *call) (any, *Error) {
	a := &args{rest: c.Params}
	if result, e, done := s.cfg.deviates(c); done {
		return result, e
	}
	if name, ok := strings.CutPrefix(c.Method, "un"); ok && strings.HasPrefix(name, "subscribe") {
		return s.unsubscribe(p, name, a)
	}
	switch c.Method {
	case "submitWorkPackage":
		core, pkg, extrinsics := next[jamq.CoreIndex](a), a.blob(), next[[][]byte](a)
		if e := a.done(); e != nil {
			return nil, e
		}
		return nil, s.submitPackage(core, pkg, extrinsics)
	case "submitWorkPackageBundle":
		core, bundle := next[jamq.CoreIndex](a), a.blob()
		if e := a.done(); e != nil {
			return nil, e
		}
		return nil, s.submitBundle(core, bundle)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(c.Method, "subscribe") {
		return s.subscribe(p, c.Method, a)
	}
	return s.query(c.Method, a)
}

// query answers calls that change nothing. The caller holds the server's lock.
func (s *Server) query(method string, a *args) (any, *Error) {
	switch method {
	case "parameters":
		return s.parameters(), a.done()
	case "bestBlock":
		return blockOf(s.chain.Best()), a.done()
	case "finalizedBlock":
		return blockOf(s.finalized()), a.done()
	case "syncState":
		return object{"num_peers": s.cfg.Chain.Spec.Validators, "status": completed}, a.done()
	case "parent", "stateRoot", "beefyRoot":
		head := jamq.HeaderHash(a.hash())
		if e := a.done(); e != nil {
			return nil, e
		}
		return s.ofBlock(method, head)
	case "serviceValue":
		head, service, key := jamq.HeaderHash(a.hash()), next[jamq.ServiceID](a), a.blob()
		if e := a.done(); e != nil {
			return nil, e
		}
		return s.serviceValue(head, service, key)
	case "serviceData":
		head, service := jamq.HeaderHash(a.hash()), next[jamq.ServiceID](a)
		if e := a.done(); e != nil {
			return nil, e
		}
		return s.serviceData(head, service)
	case "workPackageStatus":
		head, pkg, anchor := jamq.HeaderHash(a.hash()), jamq.PackageHash(a.hash()), jamq.HeaderHash(a.hash())
		if e := a.done(); e != nil {
			return nil, e
		}
		return s.status(head, pkg, anchor)
	}
	if slices.Contains(stateMethods, method) {
		return s.stateQuery(method, a)
	}
	if slices.Contains(proofMethods, method) {
		return s.proofs(method, a)
	}
	return nil, s.cfg.unknown(method)
}

func (s *Server) ofBlock(method string, hash jamq.HeaderHash) (any, *Error) {
	at, ok := s.chain.AnchorBlock(hash)
	if !ok {
		return nil, unavailable(hash)
	}
	switch method {
	case "stateRoot":
		return text(at.StateRoot), nil
	case "beefyRoot":
		return text(at.BeefyRoot), nil
	}
	b, _ := s.chain.Block(hash)
	parent, ok := s.chain.Locate(b.Parent)
	if !ok {
		return nil, unavailable(b.Parent)
	}
	return descriptor(parent), nil
}

func (s *Server) parameters() object {
	spec := &s.cfg.Chain.Spec
	period := any(spec.SlotDuration.Seconds())
	return object{"V1": object{
		"deposit_per_item": 10, "deposit_per_byte": 1, "deposit_per_account": 100, "core_count": spec.Cores, "min_turnaround_period": 19_200,
		"epoch_period": spec.EpochLength, "max_accumulate_gas": spec.MaxAccumulateGas, "max_is_authorized_gas": 50_000_000,
		"max_refine_gas": spec.MaxRefineGas, "block_gas_limit": spec.BlockAccumulateGas, "recent_block_count": spec.RecentHistory,
		"max_work_items": spec.MaxWorkItems, "max_dependencies": spec.MaxDependencies, "max_tickets_per_block": 3,
		"max_lookup_anchor_age": spec.MaxLookupAnchorAge, "tickets_attempts_number": 3, "auth_window": spec.AuthPoolSize,
		"slot_period_sec": period, "auth_queue_len": spec.AuthQueueSize, "rotation_period": spec.RotationPeriod, "max_extrinsics": spec.MaxExtrinsics,
		"availability_timeout": spec.AvailabilityTimeout, "val_count": spec.Validators, "max_authorizer_code_size": 64_000,
		"max_input": spec.MaxBundleSize, "max_service_code_size": 4_000_000, "basic_piece_len": 4, "max_imports": 3_072,
		"segment_piece_count": spec.SegmentSize / 4, "max_report_elective_data": 48 << 10, "transfer_memo_size": 128, "max_exports": 3_072,
		"epoch_tail_start": spec.EpochLength * 5 / 6,
	}}
}

// serviceData returns the encoded account of a service (Gray Paper D.2), or null.
func (s *Server) serviceData(head jamq.HeaderHash, service jamq.ServiceID) (any, *Error) {
	if _, ok := s.state(head); !ok {
		return nil, s.pruned(head)
	}
	return orNull(s.chain.Account(service, head))
}

// serviceValue returns a value from the storage of a service, or null.
func (s *Server) serviceValue(head jamq.HeaderHash, service jamq.ServiceID, key []byte) (any, *Error) {
	if _, ok := s.state(head); !ok {
		return nil, s.pruned(head)
	}
	return orNull(s.chain.Value(service, head, key))
}

// orNull returns a value of the state as an answer, or null if there is none. On a
// chain without services, there are no values.
func orNull(value []byte, err error) (any, *Error) {
	switch {
	case err != nil && !errors.Is(err, jamtest.ErrNoServices):
		return nil, &Error{Code: codeOther, Message: err.Error()}
	case value == nil:
		return nil, nil
	}
	return value, nil
}

// status returns the node's answer about a package on the chain that ends in head.
// anchor is the package's anchor, which limits the blocks that may still report the
// package.
func (s *Server) status(head jamq.HeaderHash, pkg jamq.PackageHash, anchor jamq.HeaderHash) (any, *Error) {
	at, ok := s.state(head)
	if !ok {
		return nil, s.pruned(head)
	}
	status, err := s.chain.Status(pkg, head)
	if err != nil {
		return nil, &Error{Code: codeOther, Message: err.Error()}
	}
	reported := object{"reported_in": descriptor(status.Reported), "core": status.Core, "report_hash": s.reportHash(pkg, status.Reported.Hash)}
	switch status.Stage {
	case jamtest.Unreported:
		return s.unreported(at, anchor), nil
	case jamtest.Cleared, jamtest.TimedOut:
		return object{"Failed": status.String()}, nil
	}
	if status.Stage == jamtest.OnCore || s.cfg.StuckAtReported {
		return object{"Reported": reported}, nil
	}
	reported["ready_in"] = descriptor(status.Available)
	return object{"Ready": reported}, nil
}

// state returns the position of a block, and whether the node still has its state.
func (s *Server) state(head jamq.HeaderHash) (jamtest.Point, bool) {
	at, ok := s.chain.Locate(head)
	if keep := s.cfg.KeepStates; keep > 0 && at.Height+uint64(keep) <= s.chain.Height() {
		return at, false
	}
	return at, ok
}

// unreported returns the status of a package that no block has reported. It contains
// the number of blocks that may still report the package, or a failure if the anchor is
// too old or on another chain.
func (s *Server) unreported(at jamtest.Point, anchor jamq.HeaderHash) object {
	from, ok := s.chain.Locate(anchor)
	if !ok || !s.chain.Contains(at.Hash, anchor) {
		return object{"Failed": "the anchor is not on this chain"}
	}
	last := from.Height + uint64(s.cfg.Chain.Spec.RecentHistory)
	if at.Height >= last {
		return object{"Failed": "the anchor is too old"}
	}
	return object{"Reportable": object{"remaining_blocks": last - at.Height}}
}

func (s *Server) reportHash(pkg jamq.PackageHash, in jamq.HeaderHash) string {
	b, _ := s.chain.Block(in)
	for _, r := range b.Reported {
		if r.Package == pkg {
			return text(r.Hash)
		}
	}
	return text([32]byte{})
}

func (s *Server) submitPackage(core jamq.CoreIndex, pkg []byte, extrinsics [][]byte) *Error {
	p, err := codec.Decode[codec.WorkPackage](s.codec, pkg)
	if err == nil {
		err = checkExtrinsics(&p, bytes.Join(extrinsics, nil), len(extrinsics))
	}
	if err == nil {
		err = s.take(core, pkg)
	}
	if err != nil {
		return &Error{Code: codeOther, Message: err.Error()}
	}
	return nil
}

// submitBundle accepts a bundle: a package with its extrinsics, its imported segments
// and the proofs of these segments.
func (s *Server) submitBundle(core jamq.CoreIndex, bundle []byte) *Error {
	err := func() error {
		p, rest, err := codec.DecodePrefix[codec.WorkPackage](s.codec, bundle)
		if err != nil {
			return err
		}
		pkg := bundle[:len(bundle)-len(rest)]
		size, imports := 0, 0
		for i := range p.Items {
			imports += len(p.Items[i].Imports)
			for _, x := range p.Items[i].Extrinsics {
				size += int(x.Length)
			}
		}
		if len(rest) < size {
			return fmt.Errorf("%w: %d bytes of extrinsics, want %d", jamtest.ErrRefused, len(rest), size)
		}
		if err := checkExtrinsics(&p, rest[:size], -1); err != nil {
			return err
		}
		rest = rest[size:]
		if segments := imports * s.cfg.Chain.Spec.SegmentSize; len(rest) < segments {
			return fmt.Errorf("%w: %d bytes of segments, want %d", jamtest.ErrRefused, len(rest), segments)
		} else {
			rest = rest[segments:]
		}
		for range imports {
			var n uint64
			if n, rest, err = codec.DecodeNatural(rest); err != nil {
				return err
			}
			if n > uint64(len(rest)/32) {
				return fmt.Errorf("%w: proof of %d hashes in %d bytes", jamtest.ErrRefused, n, len(rest))
			}
			rest = rest[32*n:]
		}
		if len(rest) > 0 {
			return fmt.Errorf("%w: %d bytes after the bundle", jamtest.ErrRefused, len(rest))
		}
		return s.take(core, pkg)
	}()
	if err != nil {
		return &Error{Code: codeOther, Message: err.Error()}
	}
	return nil
}

// checkExtrinsics compares data with the extrinsics that the package's items declare,
// which have a length and a hash. count is the number of separate extrinsics that the
// client sent. It is negative for a bundle, in which they are not separate.
func checkExtrinsics(p *codec.WorkPackage, data []byte, count int) error {
	wanted := 0
	for i := range p.Items {
		for _, x := range p.Items[i].Extrinsics {
			wanted++
			if uint64(len(data)) < uint64(x.Length) || blake2b.Sum256(data[:x.Length]) != x.Hash {
				return fmt.Errorf("%w: extrinsic %d differs from its hash in the package", jamtest.ErrRefused, wanted-1)
			}
			data = data[x.Length:]
		}
	}
	if len(data) > 0 || count >= 0 && count != wanted {
		return fmt.Errorf("%w: %d extrinsics and %d surplus bytes, want %d extrinsics", jamtest.ErrRefused, count, len(data), wanted)
	}
	return nil
}
