package main

import (
	"context"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/examples/hostnode/host"
	"github.com/jamq/jamq/submit"
)

// This file is all the glue that the node needs. Hashes and slots are converted,
// blocks are converted by copying seven fields, and the node's functions
// implement three small interfaces. The queue's bundle type is the node's type.

// feed implements submit.ChainFeed with the node's subscription.
type feed struct{ node *host.Node }

// Follow implements submit.ChainFeed.
func (f feed) Follow(ctx context.Context, to submit.ChainSink) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	keep := func(err error) {
		if err != nil {
			stop(err) // the queue accepts no more blocks
		}
	}
	err := f.node.Subscribe(ctx,
		func(b host.Block, best host.Hash) { keep(to.Import(ctx, block(b), jamq.HeaderHash(best))) },
		func(final host.Hash) { keep(to.Finalize(ctx, jamq.HeaderHash(final))) },
	)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// block converts an imported block for the queue.
func block(b host.Block) jamq.Block {
	out := jamq.Block{
		Hash:            jamq.HeaderHash(b.ID),
		Parent:          jamq.HeaderHash(b.Header.ParentHash),
		ParentStateRoot: [32]byte(b.Header.PriorStateRoot),
		Slot:            jamq.Slot(b.Header.Slot),
	}
	for _, g := range b.Guarantees {
		out.Reported = append(out.Reported, jamq.Report{
			Hash: [32]byte(g.ReportHash), Package: jamq.PackageHash(g.WorkPackageHash), SegmentRoot: [32]byte(g.SegmentRoot),
			Core: jamq.CoreIndex(g.CoreIndex), Anchor: jamq.HeaderHash(g.AnchorHash), Prerequisites: packages(g.Dependencies),
		})
	}
	for _, core := range b.BecameAvailable {
		out.Available = append(out.Available, jamq.CoreIndex(core))
	}
	for _, report := range b.BadReports {
		out.Condemned = append(out.Condemned, [32]byte(report))
	}
	return out
}

func packages(hashes []host.Hash) (out []jamq.PackageHash) {
	for _, h := range hashes {
		out = append(out, jamq.PackageHash(h))
	}
	return out
}

// workshop implements submit.Builder and submit.Submitter with the node's
// functions.
type workshop struct{ node *host.Node }

// Build implements submit.Builder.
func (w workshop) Build(_ context.Context, r bundlequeue.Build[host.WorkBundle]) (submit.Package[host.WorkBundle], error) {
	history, lookup := w.node.History()
	var recent []jamq.AnchorBlock
	for _, b := range history {
		recent = append(recent, anchorBlock(b))
	}
	refine, err := anchor.Pick(recent, r.Anchor.Hash, anchorBlock(lookup), r.Prerequisites)
	if err != nil {
		return submit.Package[host.WorkBundle]{}, err
	}
	b := r.Bundle // a copy, because the queue keeps the original
	b.Context = host.Context{
		Anchor: host.Hash(refine.Anchor), AnchorStateRoot: host.Hash(refine.StateRoot), AnchorBeefyRoot: host.Hash(refine.BeefyRoot),
		Lookup: host.Hash(refine.LookupAnchor), LookupSlot: host.Timeslot(refine.LookupAnchorSlot),
	}
	for _, p := range refine.Prerequisites {
		b.Context.Prerequisites = append(b.Context.Prerequisites, host.Hash(p))
	}
	b.PackageHash = w.node.HashBundle(b)
	return submit.Package[host.WorkBundle]{Hash: jamq.PackageHash(b.PackageHash), Context: refine, Bundle: b}, nil
}

func anchorBlock(r host.Recent) jamq.AnchorBlock {
	return jamq.AnchorBlock{Hash: jamq.HeaderHash(r.HeaderHash), Slot: jamq.Slot(r.Slot), StateRoot: [32]byte(r.StateRoot), BeefyRoot: [32]byte(r.AccumulationRoot)}
}

// Submit implements submit.Submitter. Each attempt goes to a different
// validator of the core.
func (w workshop) Submit(ctx context.Context, r bundlequeue.Send[host.WorkBundle]) error {
	return w.node.SendBundle(ctx, uint16(r.Core), r.Attempt, r.Bundle)
}
