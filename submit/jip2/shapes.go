package jip2

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/jamq/jamq"
)

// Hash is a hash of 32 bytes. In JSON it is base64.
type Hash [32]byte

// MarshalText encodes h as padded base64.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalText decodes padded base64 of exactly 32 bytes. The error wraps
// ErrMalformed.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%w: hash %.100q, want base64 of %d bytes", ErrMalformed, text, len(h))
	}
	copy(h[:], raw)
	return nil
}

// maxShape is the maximum size in bytes of the JSON of a small result, such as a
// status or the parameters, which need about 2 KiB. Without this limit a node could
// add any number of unknown fields, and decoding them would take several times
// their size of memory.
const maxShape = 64 << 10

// checkSize returns an error that wraps ErrMalformed for JSON above maxShape.
func checkSize(name string, raw []byte) error {
	if len(raw) > maxShape {
		return fmt.Errorf("%w: %s of %d bytes, want at most %d", ErrMalformed, name, len(raw), maxShape)
	}
	return nil
}

// BlockDescriptor identifies a block. HeaderHash is the hash of the block's header, and Slot is the
// slot of the block.
type BlockDescriptor struct {
	HeaderHash Hash      `json:"header_hash"`
	Slot       jamq.Slot `json:"slot"`
}

// UnmarshalJSON decodes a descriptor. The error wraps ErrMalformed if a field
// is missing or malformed.
func (d *BlockDescriptor) UnmarshalJSON(raw []byte) error {
	if err := checkSize("block descriptor", raw); err != nil {
		return err
	}
	return d.decode(raw)
}

// decode is UnmarshalJSON without the limit on the size.
func (d *BlockDescriptor) decode(raw []byte) error {
	var fields struct {
		HeaderHash *Hash      `json:"header_hash"`
		Slot       *jamq.Slot `json:"slot"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return malformed("block descriptor", err)
	}
	if fields.HeaderHash == nil || fields.Slot == nil {
		return fmt.Errorf("%w: block descriptor without header_hash or slot", ErrMalformed)
	}
	*d = BlockDescriptor{HeaderHash: *fields.HeaderHash, Slot: *fields.Slot}
	return nil
}

// ChainSubUpdate is one update of a subscription to chain data. Value is the value after the block
// that HeaderHash and Slot identify.
type ChainSubUpdate[T any] struct {
	HeaderHash Hash      `json:"header_hash"`
	Slot       jamq.Slot `json:"slot"`
	Value      T         `json:"value"`
}

// UnmarshalJSON decodes an update. Some nodes send updates that do not name their block.
// The error then wraps ErrMalformed, because the value of such an update could not be
// assigned to a block.
func (u *ChainSubUpdate[T]) UnmarshalJSON(raw []byte) error {
	var block BlockDescriptor
	if err := block.decode(raw); err != nil {
		return err
	}
	var fields struct{ Value T }
	if err := json.Unmarshal(raw, &fields); err != nil {
		return malformed("update", err)
	}
	*u = ChainSubUpdate[T]{HeaderHash: block.HeaderHash, Slot: block.Slot, Value: fields.Value}
	return nil
}

// PreimageRequest is the state of a service's request for data. It is nil if
// the service has not requested the data, and empty if the service still waits
// for it. Otherwise it has one to three slots: when the data was provided, when
// it was forgotten, and when it was requested again.
type PreimageRequest []jamq.Slot

// UnmarshalJSON decodes the state of a request. The error wraps ErrMalformed if the state has more
// than three slots.
func (r *PreimageRequest) UnmarshalJSON(raw []byte) error {
	if err := checkSize("request", raw); err != nil {
		return err
	}
	var slots []jamq.Slot
	if err := json.Unmarshal(raw, &slots); err != nil || len(slots) > 3 {
		return fmt.Errorf("%w: a request with %d slots, want at most 3: %v", ErrMalformed, len(slots), err)
	}
	*r = slots
	return nil
}

// segmentSize is the size of a data segment (W_G), in bytes. It is a constant
// of JIP-2. The node's parameters, which describe the pieces of a segment, do
// not change it.
const segmentSize = 4104

// SyncState is the progress of a node's synchronization with the network.
// NumPeers is the number of the node's peers.
type SyncState struct {
	NumPeers uint32 `json:"num_peers"`
	// Status is "InProgress" or "Completed".
	Status string `json:"status"`
}

// Parameters has the constants of a chain that a builder needs, as the method "parameters" returns
// them. The letter in parentheses is the constant's name in the Gray Paper, appendix I.4.4. Fields
// of type jamq.Slot are in slots, sizes in bytes and gas limits in gas.
type Parameters struct {
	// CoreCount is the number of cores (C).
	CoreCount int `json:"core_count"`
	// EpochPeriod is the length of an epoch (E).
	EpochPeriod jamq.Slot `json:"epoch_period"`
	// MaxAccumulateGas is the gas limit for the accumulation of one work report
	// (G_A).
	MaxAccumulateGas uint64 `json:"max_accumulate_gas"`
	// MaxRefineGas is the gas limit for the refinement of a package (G_R).
	MaxRefineGas uint64 `json:"max_refine_gas"`
	// BlockGasLimit is the gas limit for all accumulation in a block (G_T).
	BlockGasLimit uint64 `json:"block_gas_limit"`
	// RecentBlockCount is the length of recent history, in blocks (H).
	RecentBlockCount int `json:"recent_block_count"`
	// MaxWorkItems is the maximum number of work items of a package (I).
	MaxWorkItems int `json:"max_work_items"`
	// MaxDependencies is the maximum number of a package's prerequisites plus its segment-root
	// lookups (J).
	MaxDependencies int `json:"max_dependencies"`
	// MaxLookupAnchorAge is the greatest age of a lookup anchor (L).
	MaxLookupAnchorAge jamq.Slot `json:"max_lookup_anchor_age"`
	// AuthWindow is the number of authorizers in a core's pool (O).
	AuthWindow int `json:"auth_window"`
	// SlotPeriodSec is the duration of a slot in seconds (P). It is a whole number on public
	// chains; a development chain may have shorter slots.
	SlotPeriodSec float64 `json:"slot_period_sec"`
	// AuthQueueLen is the number of authorizers in a core's queue (Q).
	AuthQueueLen int `json:"auth_queue_len"`
	// RotationPeriod is the time after which guarantors change cores (R).
	RotationPeriod jamq.Slot `json:"rotation_period"`
	// MaxExtrinsics is the maximum number of extrinsics of a package (T).
	MaxExtrinsics int `json:"max_extrinsics"`
	// AvailabilityTimeout is the number of slots after which a report that has not become available
	// is removed from its core (U).
	AvailabilityTimeout jamq.Slot `json:"availability_timeout"`
	// ValCount is the number of validators (V). It is 0 if the chain follows Gray Paper 0.8.0 or
	// later, which has no such constant.
	ValCount int `json:"val_count"`
	// MaxInput is the maximum size of a work-package bundle (W_B).
	MaxInput int `json:"max_input"`
}

// decodeParameters decodes the answer of the method "parameters".
func decodeParameters(raw []byte) (Parameters, error) {
	if err := checkSize("parameters", raw); err != nil {
		return Parameters{}, err
	}
	var versions map[string]json.RawMessage
	if err := json.Unmarshal(raw, &versions); err != nil {
		return Parameters{}, fmt.Errorf("%w: parameters: %w", ErrMalformed, err)
	}
	v1, ok := versions["V1"]
	if !ok {
		return Parameters{}, fmt.Errorf("%w: parameters without V1", ErrUnknownVersion)
	}
	var p Parameters
	if err := json.Unmarshal(v1, &p); err != nil {
		return Parameters{}, fmt.Errorf("%w: parameters: %w", ErrMalformed, err)
	}
	return p, nil
}

// Spec returns the chain spec with these constants and the given name. If ValCount is 0, Spec
// assumes three validators for each core. The error wraps jamq.ErrInvalidSpec.
func (p *Parameters) Spec(name string) (jamq.ChainSpec, error) {
	s := jamq.ChainSpec{
		Name: name, Validators: cmp.Or(p.ValCount, jamq.ValidatorsOf(p.CoreCount)), Cores: p.CoreCount, SlotDuration: time.Duration(math.Round(p.SlotPeriodSec*1000)) * time.Millisecond,
		EpochLength: p.EpochPeriod, RecentHistory: p.RecentBlockCount, RotationPeriod: p.RotationPeriod,
		AvailabilityTimeout: p.AvailabilityTimeout, MaxLookupAnchorAge: p.MaxLookupAnchorAge, MaxDependencies: p.MaxDependencies,
		MaxWorkItems: p.MaxWorkItems, MaxExtrinsics: p.MaxExtrinsics, AuthPoolSize: p.AuthWindow, AuthQueueSize: p.AuthQueueLen,
		MaxAccumulateGas: p.MaxAccumulateGas, MaxRefineGas: p.MaxRefineGas, BlockAccumulateGas: p.BlockGasLimit,
		MaxBundleSize: p.MaxInput, SegmentSize: segmentSize,
	}
	return s, s.Validate()
}

// Reportable is the status of a package that has not been reported but still
// can be. RemainingBlocks is the number of following blocks that can report it.
type Reportable struct {
	RemainingBlocks uint32 `json:"remaining_blocks"`
}

// Reported is the status of a package whose report is on a core and not yet
// available. ReportedIn is the block that reported the package, Core is the
// core, and ReportHash is the hash of the report.
type Reported struct {
	ReportedIn BlockDescriptor `json:"reported_in"`
	Core       jamq.CoreIndex  `json:"core"`
	ReportHash Hash            `json:"report_hash"`
}

// Ready is the status of a package whose report became available in the block
// ReadyIn. The service may or may not have accumulated the package since then.
type Ready struct {
	Reported
	ReadyIn BlockDescriptor `json:"ready_in"`
}

// WorkPackageStatus is a node's answer about how far a package has come on the
// chain that ends in a given block. Exactly one of Reportable, Reported, Ready
// and Failed is set.
type WorkPackageStatus struct {
	Reportable *Reportable `json:"Reportable,omitempty"`
	Reported   *Reported   `json:"Reported,omitempty"`
	Ready      *Ready      `json:"Ready,omitempty"`
	// Failed is the node's explanation of why the package cannot become ready
	// on this fork.
	Failed *string `json:"Failed,omitempty"`
}

// String returns the case that is set, with its details, for logs and errors.
func (s *WorkPackageStatus) String() string {
	switch {
	case s.Reportable != nil:
		return fmt.Sprintf("Reportable in %d blocks", s.Reportable.RemainingBlocks)
	case s.Reported != nil:
		return fmt.Sprintf("Reported on core %d in slot %d", s.Reported.Core, s.Reported.ReportedIn.Slot)
	case s.Ready != nil:
		return fmt.Sprintf("Ready since slot %d", s.Ready.ReadyIn.Slot)
	case s.Failed != nil:
		return fmt.Sprintf("Failed: %.200q", *s.Failed)
	}
	return "no status"
}

// UnmarshalJSON decodes a status. See decodeWorkPackageStatus.
func (s *WorkPackageStatus) UnmarshalJSON(raw []byte) (err error) {
	status, err := decodeWorkPackageStatus(raw)
	if err == nil {
		*s = status
	}
	return err
}

// decodeWorkPackageStatus decodes a status, which must have exactly one complete
// case.
func decodeWorkPackageStatus(raw []byte) (WorkPackageStatus, error) {
	if err := checkSize("status", raw); err != nil {
		return WorkPackageStatus{}, err
	}
	var cases map[string]json.RawMessage
	if err := json.Unmarshal(raw, &cases); err != nil {
		return WorkPackageStatus{}, fmt.Errorf("%w: status: %w", ErrMalformed, err)
	}
	var s WorkPackageStatus
	found := 0
	for _, c := range []struct {
		name   string
		into   any
		fields []string
	}{
		{"Reportable", &s.Reportable, []string{"remaining_blocks"}},
		{"Reported", &s.Reported, []string{"reported_in", "core", "report_hash"}},
		{"Ready", &s.Ready, []string{"reported_in", "core", "report_hash", "ready_in"}},
		{"Failed", &s.Failed, nil},
	} {
		body, there := cases[c.name]
		if !there || string(body) == "null" {
			continue
		}
		found++
		// A missing field would read as a zero hash or as zero remaining blocks,
		// and the feed would use that as evidence about the package.
		if err := checkFields(body, c.fields); err != nil {
			return WorkPackageStatus{}, fmt.Errorf("%w: status %s: %w", ErrMalformed, c.name, err)
		}
		if err := json.Unmarshal(body, c.into); err != nil {
			return WorkPackageStatus{}, fmt.Errorf("%w: status %s: %w", ErrMalformed, c.name, err)
		}
	}
	if found != 1 {
		return WorkPackageStatus{}, fmt.Errorf("%w: status with %d of the cases Reportable, Reported, Ready and Failed, want one", ErrMalformed, found)
	}
	return s, nil
}

// checkFields returns an error if a field of a JSON object is missing or null.
func checkFields(object []byte, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	var have map[string]json.RawMessage
	if err := json.Unmarshal(object, &have); err != nil {
		return err
	}
	for _, field := range fields {
		value := have[field]
		if value == nil || string(value) == "null" {
			return fmt.Errorf("no %s", field)
		}
		// These fields are block descriptors, whose fields must be there too.
		if field == "reported_in" || field == "ready_in" {
			if err := checkFields(value, []string{"header_hash", "slot"}); err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	return nil
}
