package jamq

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq/internal/fields"
)

// CoreIndex is the index of a core of a JAM chain, from 0 to Cores-1.
type CoreIndex uint16

// ServiceID identifies a service of a JAM chain. A rollup is one service.
type ServiceID uint32

// ErrInvalidSpec is wrapped by every error of [ChainSpec.Validate].
var ErrInvalidSpec = errors.New("jamq: invalid chain spec")

// ChainSpec contains the constants of a JAM chain that determine how long a work
// package can be reported and how large it can be. The letters in parentheses are those
// of the Gray Paper, appendix I.4.4.
//
// The zero value is not valid. Start from [Tiny] or [Full], change the fields that
// differ, and call Validate. A JAM node returns the constants of its chain through the
// RPC method "parameters" (JIP-2).
type ChainSpec struct {
	// Name is used in logs, tables and errors.
	Name string
	// Validators is the size of the validator set (V), at least 1.
	Validators int
	// Cores is the number of cores (C), at least 1.
	Cores int
	// SlotDuration is the time between slots (P), a positive multiple of a millisecond.
	SlotDuration time.Duration
	// EpochLength is the length of an epoch (E), in slots, at least 1. It limits how long a report
	// waits in the ready queue, and how long the chain remembers accumulated packages.
	EpochLength Slot
	// RecentHistory is the number of newest blocks that can serve as an anchor or contain a
	// prerequisite (H). It is at least 3, because the anchor needs a child block, and only
	// a later block can report the package.
	RecentHistory int
	// RotationPeriod is the number of slots for which guarantors are assigned to the same
	// core (R), at least 1.
	RotationPeriod Slot
	// AvailabilityTimeout is the number of slots for which a report can occupy its core
	// without becoming available (U), at least 1.
	AvailabilityTimeout Slot
	// MaxLookupAnchorAge is the greatest age of a lookup anchor in slots (L), at least 1. A
	// package with an older lookup anchor cannot be reported.
	MaxLookupAnchorAge Slot
	// MaxDependencies is the maximum number of prerequisites and segment-root lookups that
	// one package may have in total (J), at least 1.
	MaxDependencies int
	// MaxWorkItems is the maximum number of work items of a package (I), at
	// least 1.
	MaxWorkItems int
	// MaxExtrinsics is the maximum number of extrinsics of a package (T), at
	// least 0.
	MaxExtrinsics int
	// AuthPoolSize is the number of authorizers in a core's pool (O), at least 1.
	AuthPoolSize int
	// AuthQueueSize is the number of authorizers in a core's queue (Q), at least 1.
	AuthQueueSize int
	// MaxAccumulateGas is the gas that the accumulation of one work report may
	// use (G_A), at least 1.
	MaxAccumulateGas uint64
	// MaxRefineGas is the gas that the refinement of one work package may use
	// (G_R), at least 1.
	MaxRefineGas uint64
	// BlockAccumulateGas is the gas that all accumulation in a block may use
	// (G_T), at least MaxAccumulateGas.
	BlockAccumulateGas uint64
	// MaxBundleSize is the maximum size of a work-package bundle (W_B), in
	// bytes, at least 1.
	MaxBundleSize int
	// SegmentSize is the size of a data segment (W_G), in bytes, at least 1.
	SegmentSize int
}

// Tiny returns the spec of the public test networks, with 6 validators, 2 cores
// and epochs of 12 slots.
func Tiny() ChainSpec {
	s := Full()
	s.Name = "tiny"
	s.Validators, s.Cores = 6, 2
	s.EpochLength, s.RotationPeriod = 12, 4
	s.MaxLookupAnchorAge = 24
	s.MaxRefineGas, s.BlockAccumulateGas = 1_000_000_000, 20_000_000
	return s
}

// Full returns the spec in the Gray Paper, with 1023 validators, 341 cores and
// epochs of 600 slots.
func Full() ChainSpec {
	return ChainSpec{
		Name:                "full",
		Validators:          1023,
		Cores:               341,
		SlotDuration:        6 * time.Second,
		EpochLength:         600,
		RecentHistory:       8,
		RotationPeriod:      10,
		AvailabilityTimeout: 5,
		MaxLookupAnchorAge:  14_400,
		MaxDependencies:     8,
		MaxWorkItems:        16,
		MaxExtrinsics:       128,
		AuthPoolSize:        8,
		AuthQueueSize:       80,
		MaxAccumulateGas:    10_000_000,
		MaxRefineGas:        5_000_000_000,
		BlockAccumulateGas:  3_500_000_000,
		MaxBundleSize:       13_791_360,
		SegmentSize:         4_104,
	}
}

// Upper bounds for a spec that comes from a JAM node. They are far above the values of
// any real chain, and low enough to prevent overflow and excessive use of memory.
const (
	maxIndexed = 1 << 16 // 16-bit indices, and recent history
	maxSlots   = 1 << 24
	maxCount   = 1 << 31
	longest    = 24 * time.Hour
)

// Validate returns an error that wraps [ErrInvalidSpec] and lists each field
// that is out of range, with its value and the range.
func (s ChainSpec) Validate() error {
	var wrong fields.Errors
	fields.Range(&wrong, "Validators", s.Validators, 1, maxIndexed)
	fields.Range(&wrong, "Cores", s.Cores, 1, maxIndexed)
	fields.Range(&wrong, "EpochLength", s.EpochLength, 1, maxSlots)
	fields.Range(&wrong, "RecentHistory", s.RecentHistory, 3, maxIndexed)
	fields.Range(&wrong, "RotationPeriod", s.RotationPeriod, 1, maxSlots)
	fields.Range(&wrong, "AvailabilityTimeout", s.AvailabilityTimeout, 1, maxSlots)
	fields.Range(&wrong, "MaxLookupAnchorAge", s.MaxLookupAnchorAge, 1, maxSlots)
	fields.Range(&wrong, "MaxDependencies", int64(s.MaxDependencies), 1, maxCount)
	fields.Range(&wrong, "MaxWorkItems", int64(s.MaxWorkItems), 1, maxCount)
	fields.Range(&wrong, "MaxExtrinsics", int64(s.MaxExtrinsics), 0, maxCount)
	fields.Range(&wrong, "AuthPoolSize", int64(s.AuthPoolSize), 1, maxCount)
	fields.Range(&wrong, "AuthQueueSize", int64(s.AuthQueueSize), 1, maxCount)
	fields.Range(&wrong, "MaxBundleSize", int64(s.MaxBundleSize), 1, maxCount)
	fields.Range(&wrong, "SegmentSize", int64(s.SegmentSize), 1, maxCount)
	slot := s.SlotDuration
	wrong.Want(slot >= time.Millisecond && slot <= longest && slot%time.Millisecond == 0, "SlotDuration", slot, fmt.Sprintf("a positive multiple of 1ms, at most %v", longest))
	fields.Positive(&wrong, "MaxAccumulateGas", s.MaxAccumulateGas)
	fields.Positive(&wrong, "MaxRefineGas", s.MaxRefineGas)
	wrong.Want(s.BlockAccumulateGas >= s.MaxAccumulateGas, "BlockAccumulateGas", s.BlockAccumulateGas, fmt.Sprintf("at least MaxAccumulateGas %d", s.MaxAccumulateGas))
	return wrong.Wrap(ErrInvalidSpec)
}

// ValidatorsOf returns the number of validators of a chain with the given number of
// cores: three for each core. It is for chains from Gray Paper 0.8.0 on, whose
// constants do not contain the number of validators.
func ValidatorsOf(cores int) int {
	const perCore = 3
	return perCore * cores
}
