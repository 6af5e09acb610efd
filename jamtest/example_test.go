package jamtest_test

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// A chain on which all goes well is broken while it runs, and repaired.
func ExampleChain_SetFaults() {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.FinalityLag = 4
	chain, err := jamtest.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 10 {
		chain.Advance()
	}
	faults := chain.Faults()
	faults.FinalityStopped = true
	if err := chain.SetFaults(faults); err != nil {
		fmt.Println(err)
	}
	reorg, err := jamtest.ParseScript("at 1 fork 3\nat 1 reorg\nat 1 abandon")
	if err != nil {
		fmt.Println(err)
		return
	}
	chain.Inject(reorg)
	before := chain.Best()
	for range 6 {
		chain.Advance()
	}
	fmt.Println("still on the best chain:", chain.Contains(chain.Best().Hash, before.Hash))
	fmt.Println("final:", chain.Finalized().Slot)

	faults.FinalityStopped = false
	if err := chain.SetFaults(faults); err != nil {
		fmt.Println(err)
	}
	chain.Advance()
	fmt.Println("final again:", chain.Finalized().Slot)
	// Output:
	// still on the best chain: false
	// final: 6
	// final again: 13
}
