package bundlequeue_test

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// A bundle on its way, with the host's part played by hand.
func ExampleQueue_Step() {
	genesis := jamq.Block{Hash: jamq.HeaderHash{1}}
	first := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: genesis.Hash, Slot: 1}
	queue, err := bundlequeue.New(bundlequeue.DefaultConfig(jamq.Tiny()), genesis)
	if err != nil {
		panic(err)
	}
	now := jamq.CommonEra()
	pkg := jamq.PackageHash{0xaa}
	events := []bundlequeue.Event{
		bundlequeue.Imported{Block: first, Best: first.Hash},
		bundlequeue.Enqueue{Number: 1, Bundle: []byte("block 1")},
		bundlequeue.Built{Ticket: 1, Package: pkg, Context: jamq.RefineContext{
			Anchor: genesis.Hash, AnchorSlot: genesis.Slot,
			// Without a final lookup anchor the package is dead when it is
			// built (D3).
			LookupAnchor: genesis.Hash, LookupAnchorSlot: genesis.Slot,
		}},
		bundlequeue.Sent{Ticket: 2, OK: true},
		bundlequeue.Imported{
			Block: jamq.Block{Hash: jamq.HeaderHash{3}, Parent: first.Hash, Slot: 2, Reported: []jamq.Report{{Package: pkg}}},
			Best:  jamq.HeaderHash{3},
		},
	}
	for _, ev := range events {
		effects, err := queue.Step(now, ev)
		if err != nil {
			panic(err)
		}
		for _, e := range effects {
			fmt.Println(e)
		}
	}
	// Output:
	// 1v0 queued → building at none
	// build 1v1 core=0 anchor=0/0:01000000 min=none needs=0
	// 1v1 building → sending at none
	// send 1v1 core=0 attempt=1
	// 1v1 sending → submitted at none
	// 1v1 submitted → guaranteed at 2/2:03000000
}
