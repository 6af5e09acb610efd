package chainview_test

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// A package is lost: eight blocks after its anchor it is dead, and the evidence is the block that
// proves it.
func ExampleView() {
	spec := jamq.Tiny()
	block := func(n byte) jamq.Block {
		return jamq.Block{Hash: jamq.HeaderHash{n}, Parent: jamq.HeaderHash{n - 1}, Slot: jamq.Slot(n)}
	}
	view, err := chainview.New(&spec, block(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = view.Watch(jamq.PackageHash{7}, chainview.Package{Anchor: jamq.HeaderHash{1}, LookupAnchorSlot: 1}); err != nil {
		fmt.Println(err)
		return
	}
	for n := byte(2); n <= 10; n++ {
		b := block(n)
		if err := view.ImportBest(&b, b.Hash); err != nil {
			fmt.Println(err)
			return
		}
	}
	view.Changes(func(t *chainview.Trace) {
		s := t.Status()
		fmt.Println(s.Dead, "since slot", s.DeadSince.Slot)
	})
	// Output: D2: unreported, anchor expired since slot 9
}
