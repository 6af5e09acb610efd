package anchor_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// drawSpec returns a spec with small constants that differ from each other.
func drawSpec(t *rapid.T) jamq.ChainSpec {
	spec := jamq.Tiny()
	spec.RecentHistory = rapid.IntRange(3, 12).Draw(t, "H")
	spec.AvailabilityTimeout = jamq.Slot(rapid.IntRange(1, 12).Draw(t, "U"))
	spec.EpochLength = jamq.Slot(rapid.IntRange(1, 24).Draw(t, "E"))
	spec.MaxLookupAnchorAge = jamq.Slot(rapid.IntRange(1, 40).Draw(t, "L"))
	return spec
}

// TestDeadAtTheLimits checks for each rule that a package is alive at the last
// block at which the next one could still save it, and dead at the one after.
func TestDeadAtTheLimits(t *testing.T) {
	const far = 1 << 30
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		h, l := uint64(spec.RecentHistory), spec.MaxLookupAnchorAge
		u, e := spec.AvailabilityTimeout, spec.EpochLength
		at := func(height uint64, slot jamq.Slot) anchor.Point {
			return anchor.Point{Hash: jamq.HeaderHash{1}, Height: height, Slot: slot}
		}
		parent := []anchor.Prerequisite{{Reported: at(100, 500)}}
		for _, c := range []struct {
			name  string
			facts anchor.Facts
			// height and slot are the first ones at which the package is dead.
			height uint64
			slot   jamq.Slot
			want   anchor.Reason
		}{
			{"D1", anchor.Facts{AnchorHeight: 100, LookupAnchorSlot: far}, 100, 0, anchor.OtherFork},
			{"D2", anchor.Facts{AnchorOnChain: true, AnchorHeight: 100, LookupAnchorSlot: far}, 100 + h, 0, anchor.AnchorExpired},
			{"D3", anchor.Facts{AnchorOnChain: true, AnchorHeight: far, LookupAnchorSlot: 500}, 0, 500 + l, anchor.LookupExpired},
			{"D4", anchor.Facts{AnchorOnChain: true, AnchorHeight: far, LookupAnchorSlot: far, Prerequisites: parent}, 100 + h, 0, anchor.PrerequisiteGone},
			{"D5", anchor.Facts{AnchorOnChain: true, Reported: at(100, 500)}, 0, 500 + u, anchor.Unavailable},
			{"D6", anchor.Facts{AnchorOnChain: true, Reported: at(90, 490), Available: at(100, 500)}, 0, 500 + e, anchor.NeverReady},
		} {
			before := at(50, 50)
			f := c.facts
			if c.height > 0 {
				before.Height = c.height - 1
				f.Head = at(c.height, 50)
			} else {
				before.Slot = c.slot - 1
				f.Head = at(50, c.slot)
			}
			require.Equal(t, c.want, anchor.Dead(&spec, &f), c.name)
			f.Head = before
			require.Equal(t, anchor.Alive, anchor.Dead(&spec, &f), c.name)
			require.Equal(t, anchor.Deadline{Height: c.height, Slot: c.slot}, without(anchor.NextDeath(&spec, &f)), c.name)
		}
	})
}

// without returns a deadline without what lies in the far future.
func without(d anchor.Deadline) anchor.Deadline {
	const far = 1 << 29
	if d.Height > far {
		d.Height = 0
	}
	if d.Slot > far {
		d.Slot = 0
	}
	return d
}

// TestNextDeathIsNeverLate lets random packages grow old on chains that do not
// mention them, and checks that none dies before its deadline.
func TestNextDeathIsNeverLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		height := rapid.Uint64Range(30, 40).Draw(t, "height")
		slot := jamq.Slot(rapid.IntRange(60, 80).Draw(t, "slot"))
		past := func(name string) anchor.Point {
			if rapid.Bool().Draw(t, name) {
				return anchor.Point{}
			}
			back := rapid.Uint64Range(0, 10).Draw(t, name+" back")
			return anchor.Point{Hash: jamq.HeaderHash{2}, Height: height - back, Slot: slot - jamq.Slot(2*back)}
		}
		f := anchor.Facts{
			Head:             anchor.Point{Hash: jamq.HeaderHash{1}, Height: height, Slot: slot},
			AnchorOnChain:    rapid.Bool().Draw(t, "anchor on chain"),
			AnchorHeight:     rapid.Uint64Range(25, 50).Draw(t, "anchor"),
			LookupAnchorSlot: jamq.Slot(rapid.IntRange(40, 90).Draw(t, "lookup anchor")),
			Reported:         past("reported"),
		}
		if !f.Reported.IsZero() {
			f.Available = past("available")
		}
		for range rapid.IntRange(0, 3).Draw(t, "prerequisites") {
			f.Prerequisites = append(f.Prerequisites, anchor.Prerequisite{Reported: past("prerequisite")})
		}
		if anchor.Dead(&spec, &f) != anchor.Alive {
			return
		}
		d := anchor.NextDeath(&spec, &f)
		for range 100 {
			f.Head.Height++
			f.Head.Slot += 1 + jamq.Slot(rapid.IntRange(0, 2).Draw(t, "skipped"))
			reached := d.Height != 0 && f.Head.Height >= d.Height || d.Slot != 0 && f.Head.Slot >= d.Slot
			if reached {
				return
			}
			require.Equal(t, anchor.Alive, anchor.Dead(&spec, &f), "deadline %+v, head %v", d, f.Head)
		}
	})
}
