package jamq_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
)

func TestSpecsAreValid(t *testing.T) {
	for _, spec := range []jamq.ChainSpec{jamq.Tiny(), jamq.Full()} {
		require.NoError(t, spec.Validate(), spec.Name)
	}
}

func TestSpecValidateNamesTheField(t *testing.T) {
	for field, change := range map[string]func(*jamq.ChainSpec){
		"Validators":         func(s *jamq.ChainSpec) { s.Validators = 0 },
		"Cores":              func(s *jamq.ChainSpec) { s.Cores = 1<<16 + 1 },
		"RecentHistory":      func(s *jamq.ChainSpec) { s.RecentHistory = 2 },
		"SlotDuration":       func(s *jamq.ChainSpec) { s.SlotDuration = 1500 * time.Microsecond },
		"MaxAccumulateGas":   func(s *jamq.ChainSpec) { s.MaxAccumulateGas = 0 },
		"BlockAccumulateGas": func(s *jamq.ChainSpec) { s.BlockAccumulateGas = 1 },
		"Validators is":      func(s *jamq.ChainSpec) { s.Validators = 1<<16 + 1 },
		"RecentHistory is":   func(s *jamq.ChainSpec) { s.RecentHistory = 1 << 17 },
		"EpochLength":        func(s *jamq.ChainSpec) { s.EpochLength = jamq.MaxSlot },
		"SegmentSize":        func(s *jamq.ChainSpec) { s.SegmentSize = math.MaxInt },
		"SlotDuration is":    func(s *jamq.ChainSpec) { s.SlotDuration = 1000 * time.Hour },
	} {
		spec := jamq.Tiny()
		change(&spec)
		err := spec.Validate()
		require.ErrorIs(t, err, jamq.ErrInvalidSpec)
		require.ErrorContains(t, err, field)
	}
	require.ErrorIs(t, jamq.ChainSpec{}.Validate(), jamq.ErrInvalidSpec)
}

func TestSlotClock(t *testing.T) {
	clock := jamq.NewSlotClock(jamq.Tiny())
	era := jamq.CommonEra()
	for _, c := range []struct {
		after time.Duration
		slot  jamq.Slot
	}{{-time.Hour, 0}, {0, 0}, {5999 * time.Millisecond, 0}, {6 * time.Second, 1}, {6*time.Second + 1, 1}, {time.Hour, 600}} {
		require.Equal(t, c.slot, clock.SlotAt(era.Add(c.after)), c.after)
	}
	require.Equal(t, era, clock.Next(era.Add(-time.Second)))
	require.Equal(t, era.Add(6*time.Second), clock.Next(era))
	require.Equal(t, jamq.MaxSlot, clock.SlotAt(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, 2841, clock.Start(jamq.MaxSlot).Year(), "no overflow at the end of time")
	require.Equal(t, jamq.Slot(0), jamq.SlotClock{}.SlotAt(time.Now()))
}

func TestSlotClockRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := jamq.SlotClock{Era: jamq.CommonEra(), SlotDuration: time.Duration(rapid.IntRange(1, 60_000).Draw(t, "ms")) * time.Millisecond}
		slot := jamq.Slot(rapid.Uint32().Draw(t, "slot"))
		start := clock.Start(slot)
		if clock.SlotAt(start) != slot {
			t.Fatalf("slot %d starts at %v, which is in slot %d", slot, start, clock.SlotAt(start))
		}
		if slot > 0 && clock.SlotAt(start.Add(-1)) != slot-1 {
			t.Fatalf("the instant before slot %d is in slot %d", slot, clock.SlotAt(start.Add(-1)))
		}
	})
}

func TestSlotArithmeticSaturates(t *testing.T) {
	require.Equal(t, jamq.MaxSlot, (jamq.MaxSlot - 1).Add(5))
	require.Equal(t, jamq.Slot(0), jamq.Slot(3).Since(4))
	require.Equal(t, jamq.Slot(1), jamq.Slot(4).Since(3))
}

func TestHashText(t *testing.T) {
	h := jamq.PackageHash{0xab, 0xcd}
	text, err := json.Marshal(h)
	require.NoError(t, err)
	var back jamq.PackageHash
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, h, back)
	require.Equal(t, "abcd0000", h.Short())
	require.Error(t, back.UnmarshalText([]byte("0x12")))
	require.Equal(t, h, back, "a refused text changes nothing")
	require.Equal(t, -1, jamq.PackageHash{}.Compare(h))
}

// TestHashFormat: hashes are formatted as common.Hash is, and not as the text of their digits.
func TestHashFormat(t *testing.T) {
	hash := common.Hash{0xab, 0xcd}
	for _, format := range []string{"%x", "%#x", "%X", "%s", "%v", "%+v", "%q"} {
		want := fmt.Sprintf(format, hash)
		require.Equal(t, want, fmt.Sprintf(format, jamq.PackageHash(hash)), format)
		require.Equal(t, want, fmt.Sprintf(format, jamq.HeaderHash(hash)), format)
	}
	require.Equal(t, "abcd"+strings.Repeat("00", 30), fmt.Sprintf("%x", jamq.PackageHash(hash)))
	require.Equal(t, "["+hash.Hex()+"]", fmt.Sprint([]jamq.PackageHash{jamq.PackageHash(hash)}))
}

func TestBlockValidate(t *testing.T) {
	spec := jamq.Tiny()
	good := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: jamq.HeaderHash{1}, Slot: 1,
		Reported: []jamq.Report{{Core: 0}, {Core: 1}}, Available: []jamq.CoreIndex{0, 1}}
	require.NoError(t, good.Validate(&spec))
	for name, b := range map[string]jamq.Block{
		"zero hash":      {},
		"own parent":     {Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{1}},
		"core":           {Hash: jamq.HeaderHash{1}, Reported: []jamq.Report{{Core: 2}}},
		"two on a core":  {Hash: jamq.HeaderHash{1}, Reported: []jamq.Report{{Core: 1}, {Core: 1}}},
		"available core": {Hash: jamq.HeaderHash{1}, Available: []jamq.CoreIndex{9}},
		"unsorted twice": {Hash: jamq.HeaderHash{1}, Reported: []jamq.Report{{Core: 1}, {Core: 0}, {Core: 1}}},
	} {
		require.ErrorIs(t, b.Validate(&spec), jamq.ErrInvalidBlock, name)
	}
}

// More than two thirds of six validators are five.
func TestAvailableCores(t *testing.T) {
	spec := jamq.Tiny()
	fields := [][]byte{{0b11}, {0b11}, {0b11}, {0b11}, {0b01}, {0b1100}}
	assured := jamq.CountAssurances(spec.Cores, fields)
	require.Equal(t, []uint16{5, 4}, assured)
	require.Equal(t, []jamq.CoreIndex{0}, jamq.AvailableCores(spec.Validators, assured))
	require.Empty(t, jamq.AvailableCores(spec.Validators, jamq.CountAssurances(spec.Cores, nil)))
	require.Empty(t, jamq.AvailableCores(spec.Validators, jamq.CountAssurances(spec.Cores, [][]byte{{}, nil})))
}

func ExampleChainSpec_Validate() {
	spec := jamq.Tiny()
	spec.Cores = 0
	err := spec.Validate()
	fmt.Println(errors.Is(err, jamq.ErrInvalidSpec), err)
	// Output: true jamq: invalid chain spec: Cores is 0, want 1 to 65536
}

func ExampleSlotClock() {
	clock := jamq.NewSlotClock(jamq.Full())
	noon := time.Date(2025, time.January, 1, 12, 1, 3, 0, time.UTC)
	fmt.Println("slot", clock.SlotAt(noon), "and the next one in", clock.Next(noon).Sub(noon))
	// Output: slot 10 and the next one in 3s
}
