// Minimal shows the bundle queue in sixty lines: five bundles on a simulated
// JAM chain that loses a third of the submissions. It needs no goroutine and no
// real time, because the queue is a value: the host passes events in, and
// carries out the effects that are returned.
//
//	go run ./examples/minimal
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type builder struct {
	out   io.Writer
	chain *jamtest.Chain
	queue *bundlequeue.Queue
	sent  map[jamq.PackageHash]jamtest.Package
}

func run(out io.Writer) error {
	network := jamtest.DefaultConfig(jamq.Tiny(), 1)
	network.LossProbability = 0.3
	chain, err := jamtest.New(network)
	if err != nil {
		return err
	}
	queue, err := bundlequeue.New(bundlequeue.DefaultConfig(jamq.Tiny()), chain.Best())
	if err != nil {
		return err
	}
	b := &builder{out, chain, queue, map[jamq.PackageHash]jamtest.Package{}}
	for _, bundle := range []string{"one", "two", "three", "four", "five"} {
		err = errors.Join(err, b.happened(bundlequeue.Enqueue{Number: queue.Next(), Bundle: []byte(bundle)}))
	}
	for err == nil && queue.Pending() > 0 {
		update := chain.Advance() // the next slot
		for _, block := range update.Imported {
			err = errors.Join(err, b.happened(bundlequeue.Imported{Block: block, Best: update.Best}))
		}
		err = errors.Join(err, b.happened(bundlequeue.FinalizedBlock{Hash: update.Finalized}), b.happened(bundlequeue.Tick{}))
	}
	return err
}

// happened passes an event to the queue and carries out the effects.
func (b *builder) happened(event bundlequeue.Event) error {
	now := jamq.NewSlotClock(jamq.Tiny()).Start(b.chain.Slot())
	effects, err := b.queue.Step(now, event)
	if err != nil {
		return err
	}
	for _, effect := range effects {
		switch e := effect.(type) {
		case bundlequeue.Build: // a real builder makes a work package
			refine, err := anchor.Pick(b.chain.Anchors(), e.Anchor.Hash, b.chain.LookupAnchor(), e.Prerequisites)
			if err != nil {
				return err
			}
			p := jamtest.NewPackage(7, refine, e.Bundle)
			b.sent[p.Hash] = p
			err = b.happened(bundlequeue.Built{Ticket: e.Ticket, Package: p.Hash, Context: refine, Bundle: e.Bundle})
			if err != nil {
				return err
			}
		case bundlequeue.Send: // any attempt may be lost
			err := b.chain.Submit(b.sent[e.Package], e.Core, e.Attempt)
			if err := b.happened(bundlequeue.Sent{Ticket: e.Ticket, OK: err == nil}); err != nil {
				return err
			}
		default: // notices: a state changed, a version died
			fmt.Fprintf(b.out, "slot %2d: %s\n", b.chain.Slot(), effect)
		}
	}
	return nil
}
