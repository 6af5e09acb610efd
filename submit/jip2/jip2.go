// Package jip2 holds the JSON shapes of JIP-2, the RPC of JAM nodes: what goes over the wire, read strictly and written canonically. The
// client is not here yet.
//
// Hashes and blobs are base64 with padding (RFC 4648). Where the proposal leaves a union, as in the status of a work package, exactly one of
// its cases must be there.
package jip2

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

var (
	// ErrMalformed: JSON that JIP-2 does not allow.
	ErrMalformed = errors.New("jip2: malformed")
	// ErrUnknownVersion: parameters of a version that is not V1.
	ErrUnknownVersion = errors.New("jip2: unknown version")
)

// Error codes of JIP-2.
const (
	CodeOther              = 0
	CodeBlockUnavailable   = 1 // the data is the block's hash
	CodeReportUnavailable  = 2
	CodeSegmentUnavailable = 3
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

// Parameters are the constants of a chain that the method "parameters" returns and that decide a package's life.
type Parameters struct {
	CoreCount           int       `json:"core_count"`
	EpochPeriod         jamq.Slot `json:"epoch_period"`
	MaxAccumulateGas    uint64    `json:"max_accumulate_gas"`
	MaxRefineGas        uint64    `json:"max_refine_gas"`
	BlockGasLimit       uint64    `json:"block_gas_limit"`
	RecentBlockCount    int       `json:"recent_block_count"`
	MaxWorkItems        int       `json:"max_work_items"`
	MaxDependencies     int       `json:"max_dependencies"`
	MaxLookupAnchorAge  jamq.Slot `json:"max_lookup_anchor_age"`
	AuthWindow          int       `json:"auth_window"`
	SlotPeriodSec       uint32    `json:"slot_period_sec"`
	AuthQueueLen        int       `json:"auth_queue_len"`
	RotationPeriod      jamq.Slot `json:"rotation_period"`
	MaxExtrinsics       int       `json:"max_extrinsics"`
	AvailabilityTimeout jamq.Slot `json:"availability_timeout"`
	ValCount            int       `json:"val_count"`
	MaxInput            int       `json:"max_input"`
	BasicPieceLen       int       `json:"basic_piece_len"`
	SegmentPieceCount   int       `json:"segment_piece_count"`
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
		Name: name, Validators: p.ValCount, Cores: p.CoreCount, SlotDuration: time.Duration(p.SlotPeriodSec) * time.Second,
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
