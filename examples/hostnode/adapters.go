package main

import (
	"context"
	"encoding/json"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/examples/hostnode/host"
	"github.com/jamq/jamq/submit"
)

// This file is all the glue that the node needs. Hashes and slots are converted,
// blocks are converted by copying seven fields, and the node's functions implement
// builder.Network.

// network is the way to JAM: the node itself.
type network struct{ node *host.Node }

// Root implements builder.Network.
func (n network) Root(context.Context) (jamq.Block, error) { return block(n.node.FinalizedHead()), nil }

// Received implements builder.Receiver. With it the builder refuses an empty log for a service that
// is in use.
func (n network) Received(context.Context) (uint64, error) {
	accepted, err := n.node.Accepted(service)
	return uint64(accepted), err
}

// Follow implements builder.Network. The node imports blocks also while no builder runs, so
// it delivers first the blocks after the last one that the builder knows as final. Blocks
// that the builder has already are harmless.
func (n network) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	seen := n.node.After(host.Hash(found.Finalized.Hash))
	for {
		events, err := n.node.Events(ctx, seen)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := n.deliver(ctx, e, found, to); err != nil {
				return err // the builder accepts no more blocks
			}
		}
		seen += len(events)
	}
}

// deliver passes an event to the builder, which knows no blocks that do not descend from its
// last final one.
func (n network) deliver(ctx context.Context, e host.Event, found submit.Recovery, to submit.ChainSink) error {
	final := host.Hash(found.Finalized.Hash)
	newer := jamq.Slot(e.Final.Header.Slot) > found.Finalized.Slot
	if newer {
		final = e.Final.ID
	}
	if b := e.Imported; b != nil && n.node.Descends(b.ID, final) {
		best := e.Best
		if !n.node.Descends(best, final) { // that was another fork
			best = b.ID
		}
		if err := to.Import(ctx, block(*b), jamq.HeaderHash(best)); err != nil {
			return err
		}
	}
	if !newer {
		return nil
	}
	return to.Finalize(ctx, jamq.HeaderHash(e.Final.ID))
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

// Pack implements builder.Network. The data of a package is the node's own type.
func (n network) Pack(_ context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	history, lookup := n.node.History()
	var recent []jamq.AnchorBlock
	for _, b := range history {
		recent = append(recent, anchorBlock(b))
	}
	refine, err := anchor.Pick(recent, at.Hash, anchorBlock(lookup), at.Prerequisites)
	if err != nil {
		return builder.Package{}, err
	}
	w := host.WorkBundle{ServiceID: service, Payload: payload, Context: host.Context{
		Anchor: host.Hash(refine.Anchor), AnchorStateRoot: host.Hash(refine.StateRoot), AnchorBeefyRoot: host.Hash(refine.BeefyRoot),
		Lookup: host.Hash(refine.LookupAnchor), LookupSlot: host.Timeslot(refine.LookupAnchorSlot),
	}}
	for _, p := range refine.Prerequisites {
		w.Context.Prerequisites = append(w.Context.Prerequisites, host.Hash(p))
	}
	w.PackageHash = n.node.HashBundle(w)
	data, err := json.Marshal(w)
	return builder.Package{Hash: jamq.PackageHash(w.PackageHash), Context: refine, Data: data}, err
}

func anchorBlock(r host.Recent) jamq.AnchorBlock {
	return jamq.AnchorBlock{Hash: jamq.HeaderHash(r.HeaderHash), Slot: jamq.Slot(r.Slot), StateRoot: [32]byte(r.StateRoot), BeefyRoot: [32]byte(r.AccumulationRoot)}
}

// Send implements builder.Network. Each attempt goes to a different validator of the
// core.
func (n network) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	var w host.WorkBundle
	if err := json.Unmarshal(pkg.Data, &w); err != nil {
		return err
	}
	return n.node.SendBundle(ctx, uint16(core), attempt, w)
}
