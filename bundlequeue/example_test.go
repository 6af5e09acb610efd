package bundlequeue_test

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// A bundle on its way, with the host's part played by hand.
func ExampleQueue_Step() {
	genesis := jamq.Block{Hash: jamq.HeaderHash{1}}
	first := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: genesis.Hash, Slot: 1}
	queue, err := bundlequeue.New[string](bundlequeue.DefaultConfig(jamq.Tiny()), genesis)
	if err != nil {
		panic(err)
	}
	now := jamq.CommonEra()
	pkg := jamq.PackageHash{0xaa}
	events := []bundlequeue.Event{
		bundlequeue.Imported{Block: first, Best: first.Hash},
		bundlequeue.Enqueue[string]{Number: 1, Bundle: "block 1"},
		bundlequeue.Built[string]{Ticket: 1, Package: pkg, Context: jamq.RefineContext{Anchor: genesis.Hash}},
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

// The calls that builders know, for a host that feeds no blocks.
func ExampleSimple() {
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	cfg.Evidence = bundlequeue.ToldEvidence
	queue, err := bundlequeue.New[string](cfg, jamq.Block{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, now := bundlequeue.NewSimple(queue), jamq.CommonEra()
	print := func(news []bundlequeue.Effect, err error) {
		for _, e := range news {
			fmt.Println(e)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	print(s.Enqueue(now, 1, common.Hash{}, "block 1"))
	job, _ := s.Dequeue()
	pkg := jamq.PackageHash{0xaa} // of the package that was built of job.Bundle
	print(s.MarkSubmitted(now, job, pkg, jamq.RefineContext{Prerequisites: job.Prerequisites}, job.Bundle))
	print(s.OnGuaranteed(now, pkg))
	print(s.OnAccumulated(now, pkg))
	// Output:
	// 1v0 queued → building at none
	// 1v1 building → sending at none
	// 1v1 sending → submitted at none
	// 1v1 submitted → guaranteed at 0/0:746f6c64
	// 1v1 guaranteed → accumulated at 0/0:746f6c64
}
