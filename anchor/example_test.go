package anchor_test

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func ExampleWindowOf() {
	spec := jamq.Tiny()
	window := anchor.WindowOf(&spec, 10)
	head := anchor.Point{Hash: jamq.HeaderHash{1}, Height: 16, Slot: 20}
	fmt.Println(window, "leaves", window.Remaining(head.Height), "blocks")
	fmt.Println("dead in slot", anchor.EarliestDeath(&spec, 10, head), "at the earliest")
	// Output:
	// [11, 18] leaves 2 blocks
	// dead in slot 22 at the earliest
}

func ExampleBest() {
	spec := jamq.Tiny()
	delays := anchor.NewDelays(&spec)
	fmt.Println("nothing known:  ", anchor.Best(&spec, delays.Estimate(), 0, 2))

	for range 30 { // guarantors that need three or four blocks
		delays.Observe(3)
		delays.Observe(4)
	}
	fmt.Println("slow guarantors:", anchor.Best(&spec, delays.Estimate(), 0, 2))
	fmt.Println("two rounds more:", anchor.Best(&spec, delays.Estimate(), 4, 2))
	// Output:
	// nothing known:   6
	// slow guarantors: 4
	// two rounds more: 2
}

func ExamplePick() {
	spec := jamq.Tiny()
	recent := []jamq.AnchorBlock{{Hash: jamq.HeaderHash{1}, Slot: 101}, {Hash: jamq.HeaderHash{2}, Slot: 103}, {Hash: jamq.HeaderHash{3}, Slot: 104}}
	finalized := jamq.AnchorBlock{Hash: jamq.HeaderHash{9}, Slot: 95}

	context, err := anchor.Pick(recent, jamq.HeaderHash{2}, finalized, nil)
	fmt.Println(context.Anchor == recent[1].Hash, context.LookupAnchorSlot, err)
	fmt.Println(anchor.CheckContext(&spec, &context, 0, 105))

	_, err = anchor.PickOffset(recent, 0, finalized, nil)
	fmt.Println(err)
	// Output:
	// true 95 <nil>
	// <nil>
	// anchor: no admissible anchor: offset is 0, want 1 to 2 in a recent history of 3 blocks
}
