// Package host stands for an existing JAM node in Go, with its own types and
// callbacks. It does not know jamq. A simulated chain is behind its API, so
// that the example runs; a real node has its importer, its state and its
// network there.
package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// Hash is any hash of 32 bytes.
type Hash [32]byte

// Timeslot is the number of a slot.
type Timeslot uint32

// Header is the part of a block's header that the node stores.
type Header struct {
	ParentHash     Hash
	PriorStateRoot Hash
	Slot           Timeslot
}

// Guarantee is a work report that a block puts on a core.
type Guarantee struct {
	ReportHash, WorkPackageHash, SegmentRoot, AnchorHash Hash
	CoreIndex                                            uint16
	Dependencies                                         []Hash
}

// Block is an imported block.
type Block struct {
	ID         Hash
	Header     Header
	Guarantees []Guarantee
	// BecameAvailable are cores whose report two thirds of the validators
	// assured. BadReports are the reports that verdicts condemned.
	BecameAvailable []uint16
	BadReports      []Hash
}

// Recent is an entry of the node's recent history.
type Recent struct {
	HeaderHash, StateRoot, AccumulationRoot Hash
	Slot                                    Timeslot
}

// Context is the refine context of a work package.
type Context struct {
	Anchor, AnchorStateRoot, AnchorBeefyRoot, Lookup Hash
	LookupSlot                                       Timeslot
	Prerequisites                                    []Hash
}

// WorkBundle is the message that the node sends to guarantors.
type WorkBundle struct {
	ServiceID   uint32
	Context     Context
	Payload     []byte
	PackageHash Hash // of the encoding
}

// Event is an imported block, or none, with the best and the last final block after it.
type Event struct {
	Imported *Block
	Best     Hash
	Final    Block
}

// Node is a JAM node. It keeps the events since its start, in order.
type Node struct {
	driver *jamtest.Driver
	slot   time.Duration

	mu      sync.Mutex
	events  []Event
	parents map[Hash]Hash
	more    chan struct{} // closed at the next event
}

// New starts a node whose chain loses a part of the submissions.
func New(slot time.Duration) (*Node, error) {
	spec := jamq.Tiny()
	spec.SlotDuration = slot
	cfg := jamtest.DefaultConfig(spec, 3)
	cfg.LossProbability, cfg.SkipProbability = 0.2, 0.1
	cfg.StartSlot = jamq.NewSlotClock(spec).SlotAt(time.Now())
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Node{driver: jamtest.NewDriver(chain), slot: slot, parents: make(map[Hash]Hash), more: make(chan struct{})}, nil
}

// SlotDuration is the length of a slot.
func (n *Node) SlotDuration() time.Duration { return n.slot }

// FinalizedHead returns the last final block.
func (n *Node) FinalizedHead() Block {
	_, final := n.driver.Heads()
	return blockOf(final)
}

// Accepted returns the number of packages that a service has accepted, from the state of the
// best block.
func (n *Node) Accepted(service uint32) (count int, err error) {
	n.driver.View(func(chain *jamtest.Chain) {
		var accepted []jamtest.Accumulation
		accepted, err = chain.Inbox(jamq.ServiceID(service), chain.Best().Hash)
		count = len(accepted)
	})
	return count, err
}

// Run imports blocks until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	return n.driver.Run(ctx, func(u jamtest.Update) {
		final := n.FinalizedHead()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, b := range u.Imported {
			imported := blockOf(b)
			n.parents[imported.ID] = imported.Header.ParentHash
			n.events = append(n.events, Event{&imported, Hash(u.Best), final})
		}
		n.events = append(n.events, Event{nil, Hash(u.Best), final})
		close(n.more)
		n.more = make(chan struct{})
	})
}

// After returns the number of events up to the import of a block. It is 0 for a block from
// before the start.
func (n *Node) After(block Hash) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return 1 + slices.IndexFunc(n.events, func(e Event) bool { return e.Imported != nil && e.Imported.ID == block })
}

// Descends reports whether a block is another one or descends from it.
func (n *Node) Descends(block, from Hash) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for known := true; known && block != from; {
		block, known = n.parents[block]
	}
	return block == from
}

// Events returns the events after the given number of them. It waits until there is one.
func (n *Node) Events(ctx context.Context, after int) ([]Event, error) {
	for {
		n.mu.Lock()
		events, more := n.events[after:], n.more
		n.mu.Unlock()
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// History returns the recent history of the best chain, oldest first, and the
// block for preimage lookups.
func (n *Node) History() (recent []Recent, lookup Recent) {
	blocks, final := n.driver.Anchors()
	for _, b := range blocks {
		recent = append(recent, recentOf(b))
	}
	return recent, recentOf(final)
}

// HashBundle returns the hash of the package in a bundle.
func (n *Node) HashBundle(w WorkBundle) Hash { return Hash(packageOf(w).Hash) }

// SendBundle sends a bundle to a validator that guarantees for a core.
func (n *Node) SendBundle(_ context.Context, core uint16, validator int, w WorkBundle) error {
	return n.driver.Submit(packageOf(w), jamq.CoreIndex(core), validator)
}

// The rest of this file is the simulation behind the node.

func blockOf(b jamq.Block) Block {
	out := Block{ID: Hash(b.Hash), Header: Header{Hash(b.Parent), Hash(b.ParentStateRoot), Timeslot(b.Slot)}}
	for _, r := range b.Reported {
		g := Guarantee{Hash(r.Hash), Hash(r.Package), Hash(r.SegmentRoot), Hash(r.Anchor), uint16(r.Core), nil}
		for _, p := range r.Prerequisites {
			g.Dependencies = append(g.Dependencies, Hash(p))
		}
		out.Guarantees = append(out.Guarantees, g)
	}
	for _, core := range b.Available {
		out.BecameAvailable = append(out.BecameAvailable, uint16(core))
	}
	for _, h := range b.Condemned {
		out.BadReports = append(out.BadReports, Hash(h))
	}
	return out
}

func recentOf(b jamq.AnchorBlock) Recent {
	return Recent{Hash(b.Hash), Hash(b.StateRoot), Hash(b.BeefyRoot), Timeslot(b.Slot)}
}

func packageOf(w WorkBundle) jamtest.Package {
	refine := jamq.RefineContext{
		Anchor: jamq.HeaderHash(w.Context.Anchor), StateRoot: [32]byte(w.Context.AnchorStateRoot), BeefyRoot: [32]byte(w.Context.AnchorBeefyRoot),
		LookupAnchor: jamq.HeaderHash(w.Context.Lookup), LookupAnchorSlot: jamq.Slot(w.Context.LookupSlot),
	}
	for _, p := range w.Context.Prerequisites {
		refine.Prerequisites = append(refine.Prerequisites, jamq.PackageHash(p))
	}
	return jamtest.NewPackage(jamq.ServiceID(w.ServiceID), refine, w.Payload)
}
