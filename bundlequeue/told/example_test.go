package told_test

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
)

// The calls that builders know, for a host that feeds no blocks.
func ExampleSimple() {
	spec := jamq.Tiny()
	s, err := told.New(bundlequeue.DefaultConfig(spec), told.DefaultConfig(spec))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := jamq.CommonEra()
	print := func(news []bundlequeue.Effect, err error) {
		for _, e := range news {
			fmt.Println(e)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	print(s.Enqueue(now, 1, common.Hash{}, []byte("block 1")))
	job, _ := s.Dequeue()
	pkg := jamq.PackageHash{0xaa} // of the package that was built of job.Bundle
	print(s.MarkSubmitted(now, job, pkg, jamq.RefineContext{Prerequisites: job.Prerequisites}, job.Bundle))
	const blockTime = 18 * time.Second
	now = now.Add(blockTime) // the reports are in the next block
	print(s.OnGuaranteed(now, pkg))
	now = now.Add(blockTime)
	print(s.OnAccumulated(now, pkg))
	// Output:
	// 1v0 queued → building at none
	// 1v1 building → sending at none
	// 1v1 sending → submitted at none
	// 1v1 submitted → guaranteed at 2/3:746f6c64
	// 1v1 guaranteed → accumulated at 3/4:746f6c64
}
