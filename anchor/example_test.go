package anchor_test

import (
	"errors"
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

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
	recent := []jamq.AnchorBlock{{Hash: jamq.HeaderHash{1}, Slot: 101}, {Hash: jamq.HeaderHash{2}, Slot: 103}, {Hash: jamq.HeaderHash{3}, Slot: 104}}
	finalized := jamq.AnchorBlock{Hash: jamq.HeaderHash{9}, Slot: 95}

	context, err := anchor.Pick(recent, jamq.HeaderHash{2}, finalized, nil)
	fmt.Println(context.Anchor == recent[1].Hash, context.LookupAnchorSlot, err)

	_, err = anchor.Pick(recent, jamq.HeaderHash{3}, finalized, nil)
	fmt.Println(errors.Is(err, anchor.ErrNoAnchor))
	// Output:
	// true 95 <nil>
	// true
}
