package anchor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// TestNextDeath gives the deadline of each kind of package on the tiny chain,
// where H is 8 blocks, U 5 slots, E 12 slots and L 24 slots.
func TestNextDeath(t *testing.T) {
	at := func(height uint64, slot jamq.Slot) anchor.Point {
		return anchor.Point{Hash: jamq.HeaderHash{2}, Height: height, Slot: slot}
	}
	spec := jamq.Tiny()
	unreported := anchor.Facts{Head: at(30, 60), AnchorOnChain: true, AnchorHeight: 28, LookupAnchorSlot: 50}
	last := anchor.LastReportable(&spec, 28)
	for name, c := range map[string]struct {
		change func(*anchor.Facts)
		want   anchor.Deadline
	}{
		"D2 and D3: the anchor and the lookup anchor expire": {
			func(*anchor.Facts) {}, anchor.Deadline{Height: last, Slot: 74},
		},
		"D4: an older prerequisite leaves recent history first": {
			func(f *anchor.Facts) {
				f.Prerequisites = []anchor.Prerequisite{{Reported: at(29, 59)}, {Reported: at(25, 55)}, {}}
			}, anchor.Deadline{Height: anchor.LastReportable(&spec, 25), Slot: 74},
		},
		"D2: a newer prerequisite leaves it later than the anchor": {
			func(f *anchor.Facts) { f.Prerequisites = []anchor.Prerequisite{{Reported: at(29, 59)}} },
			anchor.Deadline{Height: last, Slot: 74},
		},
		"D5: a report is not available in time": {
			func(f *anchor.Facts) { f.Reported = at(30, 60) }, anchor.Deadline{Slot: 65},
		},
		"D6: a report leaves the ready queue": {
			func(f *anchor.Facts) { f.Reported, f.Available = at(29, 59), at(30, 60) }, anchor.Deadline{Slot: 72},
		},
		"D2 and D3: available by a report from before the facts": {
			func(f *anchor.Facts) { f.Available = at(30, 60) }, anchor.Deadline{Height: last, Slot: 74},
		},
		"an accumulated package has no deadline": {
			func(f *anchor.Facts) { f.Reported, f.Available, f.Accumulated = at(29, 59), at(30, 60), at(30, 60) },
			anchor.Deadline{},
		},
		"D1: the chain reaches the height of an anchor on another fork": {
			func(f *anchor.Facts) { f.AnchorOnChain, f.AnchorHeight = false, 32 }, anchor.Deadline{Height: 32, Slot: 74},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := unreported
			c.change(&f)
			require.Equal(t, c.want, anchor.NextDeath(&spec, &f))
		})
	}
}
