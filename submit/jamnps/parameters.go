package jamnps

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

// The possible sizes of encoded protocol parameters, in bytes:
//
//   - parametersSize is the size before Gray Paper 0.8.0.
//   - olderParametersSize is the size in the example of JIP-4. Its older encoding
//     has 4 bytes instead of 2 for each of H and R.
//   - newerParametersSize is the size from Gray Paper 0.8.0 on, which no longer has
//     N and V (2 bytes each) and W_E and W_P (4 bytes each).
const (
	parametersSize      = 134
	olderParametersSize = parametersSize + 2 + 2
	newerParametersSize = parametersSize - 2*2 - 2*4
)

// decodeParameters decodes a chain's constants from the encoding that the host call
// fetch returns (Gray Paper B.6). The constants are integers of 2, 4 and 8 bytes,
// little-endian, in the alphabetical order of their letters. From Gray Paper 0.8.0 on,
// they do not include the number of validators, which the function validators then
// computes from the others. The error wraps ErrMalformed or jamq.ErrInvalidSpec.
func decodeParameters(name string, raw []byte, validators func(s jamq.ChainSpec) int) (jamq.ChainSpec, error) {
	historySize, rotationSize, removed := 2, 2, 2
	switch len(raw) {
	case parametersSize:
	case olderParametersSize:
		historySize, rotationSize = 4, 4
	case newerParametersSize:
		removed = 0
	default:
		return jamq.ChainSpec{}, fmt.Errorf("%w: protocol parameters of %d bytes, want %d, %d from Gray Paper 0.8.0 on, or %d as in the example of JIP-4",
			ErrMalformed, len(raw), parametersSize, newerParametersSize, olderParametersSize)
	}
	next := func(size int) uint64 {
		var b [8]byte
		copy(b[:], raw[:size])
		raw = raw[size:]
		return binary.LittleEndian.Uint64(b[:])
	}
	skip := func(size int) { raw = raw[size:] }
	slots := func(size int) jamq.Slot { return jamq.Slot(next(size)) }
	count := func(size int) int { return int(next(size)) }

	s := jamq.ChainSpec{Name: name, SegmentSize: segmentSize}
	skip(3 * 8) // deposits: B_I, B_L, B_S
	s.Cores = count(2)
	skip(4) // D
	s.EpochLength = slots(4)
	s.MaxAccumulateGas = next(8)
	skip(8) // G_I
	s.MaxRefineGas, s.BlockAccumulateGas = next(8), next(8)
	s.RecentHistory, s.MaxWorkItems, s.MaxDependencies = count(historySize), count(2), count(2)
	skip(2) // K
	s.MaxLookupAnchorAge = slots(4)
	skip(removed) // N
	s.AuthPoolSize = count(2)
	s.SlotDuration = time.Duration(next(2)) * time.Second
	s.AuthQueueSize = count(2)
	s.RotationPeriod = slots(rotationSize)
	s.MaxExtrinsics = count(2)
	s.AvailabilityTimeout = slots(2)
	s.Validators = count(removed)
	skip(4) // W_A
	s.MaxBundleSize = count(4)
	if removed == 0 {
		s.Validators = validators(s)
	}
	return s, s.Validate()
}
