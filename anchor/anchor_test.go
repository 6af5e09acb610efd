package anchor_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestOffsetTable(t *testing.T) {
	spec := jamq.Tiny()
	for ahead, want := range []int{6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1} {
		require.Equal(t, want, anchor.Offset(&spec, ahead, 2), "%d bundles ahead on two cores", ahead)
	}
	require.Equal(t, 6, anchor.Offset(&spec, -5, 0), "absurd input is brought into range")
	require.Equal(t, 1, anchor.Offset(&spec, 1000, 1))
}

// point is a block whose slot is its height plus gap.
func point(height uint64, gap jamq.Slot) anchor.Point {
	return anchor.Point{Hash: jamq.HeaderHash{1, byte(height)}, Height: height, Slot: jamq.Slot(height) + gap}
}

func TestDead(t *testing.T) {
	spec := jamq.Tiny() // H = 8 blocks, U = 5 slots, E = 12 slots, L = 24 slots
	none := anchor.Point{}
	alive := func(f anchor.Facts) anchor.Facts { // anchored at height 10 on the chain
		f.AnchorOnChain, f.AnchorHeight = true, 10
		return f
	}
	for _, c := range []struct {
		name  string
		facts anchor.Facts
		want  anchor.Reason
	}{
		{"fresh", alive(anchor.Facts{Head: point(11, 0), LookupAnchorSlot: 8}), anchor.Alive},
		{"last reportable block is the next", alive(anchor.Facts{Head: point(17, 0), LookupAnchorSlot: 8}), anchor.Alive},
		{"D1 other fork", anchor.Facts{Head: point(10, 0), AnchorHeight: 10, LookupAnchorSlot: 8}, anchor.OtherFork},
		{"anchor not yet reached", anchor.Facts{Head: point(9, 0), AnchorHeight: 10, LookupAnchorSlot: 8}, anchor.Alive},
		{"D2 expired", alive(anchor.Facts{Head: point(18, 0), LookupAnchorSlot: 8}), anchor.AnchorExpired},
		{"slots do not expire an anchor", alive(anchor.Facts{Head: point(11, 12), LookupAnchorSlot: 8}), anchor.Alive},
		{"D3 lookup anchor", alive(anchor.Facts{Head: point(11, 0), LookupAnchorSlot: 11 - 24 + 24 - 11}), anchor.Alive},
		{"D3 lookup anchor old", alive(anchor.Facts{Head: point(11, 21), LookupAnchorSlot: 8}), anchor.LookupExpired},
		{"D4 parent dead", alive(anchor.Facts{Head: point(11, 0), LookupAnchorSlot: 8, Prerequisites: []anchor.Prerequisite{{Dead: true}}}), anchor.PrerequisiteGone},
		{"D4 parent's report still recent", alive(anchor.Facts{Head: point(15, 0), LookupAnchorSlot: 8, Prerequisites: []anchor.Prerequisite{{Reported: point(8, 0)}}}), anchor.Alive},
		{"D4 parent's report too old, though accumulated", alive(anchor.Facts{Head: point(16, 0), LookupAnchorSlot: 8, Prerequisites: []anchor.Prerequisite{{Reported: point(8, 0)}}}), anchor.PrerequisiteGone},
		{"reported outlives its anchor", alive(anchor.Facts{Head: point(18, 0), Reported: point(14, 0)}), anchor.Alive},
		{"D5 time-out", alive(anchor.Facts{Head: point(15, 4), Reported: point(14, 0)}), anchor.Unavailable},
		{"D5 verdict", alive(anchor.Facts{Head: point(15, 0), Reported: point(14, 0), Removed: point(15, 0)}), anchor.Unavailable},
		{"ready queue", alive(anchor.Facts{Head: point(26, 0), Reported: point(14, 0), Available: point(15, 0)}), anchor.Alive},
		{"D6 dropped", alive(anchor.Facts{Head: point(27, 0), Reported: point(14, 0), Available: point(15, 0)}), anchor.NeverReady},
		{"D6 waits for the dead", alive(anchor.Facts{Head: point(16, 0), Reported: point(14, 0), Available: point(15, 0), Prerequisites: []anchor.Prerequisite{{Dead: true}}}), anchor.NeverReady},
		{"accumulated is never dead", alive(anchor.Facts{Head: point(99, 0), Reported: point(14, 0), Available: point(15, 0), Accumulated: point(15, 0)}), anchor.Alive},
		{"accumulated is never dead, also if its prerequisite was lost", alive(anchor.Facts{Head: point(16, 0), Reported: point(14, 0), Available: point(15, 0), Accumulated: point(15, 0), Prerequisites: []anchor.Prerequisite{{Dead: true}}}), anchor.Alive},
		{"nothing known of the prerequisite", alive(anchor.Facts{Head: point(17, 0), LookupAnchorSlot: 8, Prerequisites: []anchor.Prerequisite{{Reported: none}}}), anchor.Alive},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, anchor.Dead(&spec, &c.facts))
		})
	}
}

func TestPick(t *testing.T) {
	recent := []jamq.AnchorBlock{{Hash: jamq.HeaderHash{1}, Slot: 5}, {Hash: jamq.HeaderHash{2}, Slot: 9}, {Hash: jamq.HeaderHash{3}, Slot: 10}}
	lookup := jamq.AnchorBlock{Hash: jamq.HeaderHash{9}, Slot: 2}
	a, b := jamq.PackageHash{1}, jamq.PackageHash{2}

	context, err := anchor.Pick(recent, recent[1].Hash, lookup, []jamq.PackageHash{b, a, b})
	require.NoError(t, err)
	require.Equal(t, recent[1].Hash, context.Anchor)
	require.Equal(t, jamq.Slot(2), context.LookupAnchorSlot)
	require.Equal(t, []jamq.PackageHash{a, b}, context.Prerequisites, "ascending and distinct")

	_, err = anchor.Pick(recent, recent[2].Hash, lookup, nil)
	require.ErrorIs(t, err, anchor.ErrNoAnchor, "the newest block has no public state root yet")
	_, err = anchor.Pick(recent, jamq.HeaderHash{7}, lookup, nil)
	require.ErrorIs(t, err, anchor.ErrNoAnchor)
}

func ExampleOffset() {
	spec := jamq.Tiny()
	fmt.Println("queue empty:", anchor.Offset(&spec, 0, 2), "blocks behind the newest")
	fmt.Println("four ahead: ", anchor.Offset(&spec, 4, 2), "blocks behind the newest")
	// Output:
	// queue empty: 6 blocks behind the newest
	// four ahead:  4 blocks behind the newest
}

func ExampleDead() {
	spec := jamq.Tiny()
	facts := anchor.Facts{
		Head:             anchor.Point{Hash: jamq.HeaderHash{18}, Height: 18, Slot: 21},
		AnchorOnChain:    true,
		AnchorHeight:     10,
		LookupAnchorSlot: 9,
	}
	fmt.Println(anchor.Dead(&spec, &facts))
	// Output: D2: unreported, anchor expired
}
