package jip2

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/jamq/jamq"
)

// Hash is 32 bytes in base64.
type Hash [32]byte

// MarshalText writes padded base64.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalText reads padded base64 of exactly 32 bytes. The error wraps ErrMalformed.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%w: hash %q, want base64 of %d bytes", ErrMalformed, text, len(h))
	}
	copy(h[:], raw)
	return nil
}

// BlockDescriptor names a block.
type BlockDescriptor struct {
	HeaderHash Hash      `json:"header_hash"`
	Slot       jamq.Slot `json:"slot"`
}

// UnmarshalJSON reads a descriptor. The error wraps ErrMalformed where a field is missing: a zero would otherwise stand for a block.
func (d *BlockDescriptor) UnmarshalJSON(raw []byte) error {
	var fields struct {
		HeaderHash *Hash      `json:"header_hash"`
		Slot       *jamq.Slot `json:"slot"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("%w: block descriptor: %w", ErrMalformed, err)
	}
	if fields.HeaderHash == nil || fields.Slot == nil {
		return fmt.Errorf("%w: block descriptor without header_hash or slot", ErrMalformed)
	}
	*d = BlockDescriptor{HeaderHash: *fields.HeaderHash, Slot: *fields.Slot}
	return nil
}

// ChainSubUpdate is a value and the block after which it holds.
type ChainSubUpdate[T any] struct {
	HeaderHash Hash      `json:"header_hash"`
	Slot       jamq.Slot `json:"slot"`
	Value      T         `json:"value"`
}

// SyncState says whether a node is up to date.
type SyncState struct {
	NumPeers uint32 `json:"num_peers"`
	// Status is "InProgress" or "Completed".
	Status string `json:"status"`
}

// Parameters are the constants of a chain, as the method "parameters" returns them. Gas, slots, counts and sizes are in their own units,
// sizes in bytes; see jamq.ChainSpec for what decides a package's life.
type Parameters struct {
	DepositPerItem        uint64    `json:"deposit_per_item"`
	DepositPerByte        uint64    `json:"deposit_per_byte"`
	DepositPerAccount     uint64    `json:"deposit_per_account"`
	CoreCount             int       `json:"core_count"`
	MinTurnaroundPeriod   jamq.Slot `json:"min_turnaround_period"`
	EpochPeriod           jamq.Slot `json:"epoch_period"`
	MaxAccumulateGas      uint64    `json:"max_accumulate_gas"`
	MaxIsAuthorizedGas    uint64    `json:"max_is_authorized_gas"`
	MaxRefineGas          uint64    `json:"max_refine_gas"`
	BlockGasLimit         uint64    `json:"block_gas_limit"`
	RecentBlockCount      int       `json:"recent_block_count"`
	MaxWorkItems          int       `json:"max_work_items"`
	MaxDependencies       int       `json:"max_dependencies"`
	MaxTicketsPerBlock    int       `json:"max_tickets_per_block"`
	MaxLookupAnchorAge    jamq.Slot `json:"max_lookup_anchor_age"`
	TicketsAttemptsNumber int       `json:"tickets_attempts_number"`
	AuthWindow            int       `json:"auth_window"`
	SlotPeriodSec         float64   `json:"slot_period_sec"` // whole seconds; a development chain may be faster
	AuthQueueLen          int       `json:"auth_queue_len"`
	RotationPeriod        jamq.Slot `json:"rotation_period"`
	MaxExtrinsics         int       `json:"max_extrinsics"`
	AvailabilityTimeout   jamq.Slot `json:"availability_timeout"`
	ValCount              int       `json:"val_count"`
	MaxAuthorizerCodeSize int       `json:"max_authorizer_code_size"`
	MaxInput              int       `json:"max_input"`
	MaxServiceCodeSize    int       `json:"max_service_code_size"`
	BasicPieceLen         int       `json:"basic_piece_len"`
	MaxImports            int       `json:"max_imports"`
	SegmentPieceCount     int       `json:"segment_piece_count"`
	MaxReportElectiveData int       `json:"max_report_elective_data"`
	TransferMemoSize      int       `json:"transfer_memo_size"`
	MaxExports            int       `json:"max_exports"`
	EpochTailStart        jamq.Slot `json:"epoch_tail_start"`
}

// DecodeParameters reads the answer of "parameters". Errors wrap ErrMalformed or ErrUnknownVersion.
func DecodeParameters(raw []byte) (Parameters, error) {
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

// Spec returns the chain spec of the parameters. The error wraps jamq.ErrInvalidSpec.
func (p *Parameters) Spec(name string) (jamq.ChainSpec, error) {
	s := jamq.ChainSpec{
		Name: name, Validators: p.ValCount, Cores: p.CoreCount, SlotDuration: time.Duration(math.Round(p.SlotPeriodSec*1000)) * time.Millisecond,
		EpochLength: p.EpochPeriod, RecentHistory: p.RecentBlockCount, RotationPeriod: p.RotationPeriod,
		AvailabilityTimeout: p.AvailabilityTimeout, MaxLookupAnchorAge: p.MaxLookupAnchorAge, MaxDependencies: p.MaxDependencies,
		MaxWorkItems: p.MaxWorkItems, MaxExtrinsics: p.MaxExtrinsics, AuthPoolSize: p.AuthWindow, AuthQueueSize: p.AuthQueueLen,
		MaxAccumulateGas: p.MaxAccumulateGas, MaxRefineGas: p.MaxRefineGas, BlockAccumulateGas: p.BlockGasLimit,
		MaxBundleSize: p.MaxInput, SegmentSize: p.BasicPieceLen * p.SegmentPieceCount,
	}
	return s, s.Validate()
}

// Reportable says that a package may still be reported, in this many blocks.
type Reportable struct {
	RemainingBlocks uint32 `json:"remaining_blocks"`
}

// Reported says that a package is on a core.
type Reported struct {
	ReportedIn BlockDescriptor `json:"reported_in"`
	Core       jamq.CoreIndex  `json:"core"`
	ReportHash Hash            `json:"report_hash"`
}

// Ready says that a package's report became available. It does not say that it was accumulated.
type Ready struct {
	Reported
	ReadyIn BlockDescriptor `json:"ready_in"`
}

// WorkPackageStatus is the status of a package at a block: exactly one field is set.
type WorkPackageStatus struct {
	Reportable *Reportable `json:"Reportable,omitempty"`
	Reported   *Reported   `json:"Reported,omitempty"`
	Ready      *Ready      `json:"Ready,omitempty"`
	// Failed says in words why the package cannot become ready on this fork.
	Failed *string `json:"Failed,omitempty"`
}

// UnmarshalJSON reads a status as [DecodeWorkPackageStatus] does.
func (s *WorkPackageStatus) UnmarshalJSON(raw []byte) (err error) {
	status, err := DecodeWorkPackageStatus(raw)
	if err == nil {
		*s = status
	}
	return err
}

// DecodeWorkPackageStatus reads a status. The error wraps ErrMalformed unless exactly one case is there, with all of its fields: a field
// that is missing would otherwise read as a zero hash or no remaining blocks, which is evidence of something.
func DecodeWorkPackageStatus(raw []byte) (WorkPackageStatus, error) {
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

// checkFields reports a field of an object that is missing or null, and the same of block descriptors in it.
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
		if field == "reported_in" || field == "ready_in" {
			if err := checkFields(value, []string{"header_hash", "slot"}); err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	return nil
}
