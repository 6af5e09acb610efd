package node

import (
	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/jamtest"
)

// Observer is shown what a node does, so that a view of it is always up to date. Its methods are
// called concurrently, and should return soon. The calls of each method are in order.
type Observer interface {
	// Import and Finalize are called with the blocks of the JAM chain.
	Import(b jamq.Block, best jamq.HeaderHash)
	Finalize(hash jamq.HeaderHash)
	// Sent is called when the pool has accepted transactions.
	Sent(txs int)
	// Effect is called with each effect of the queue.
	Effect(e bundlequeue.Effect)
}

// noObserver is the observer of a node that has none.
type noObserver struct{}

// Import implements Observer.
func (noObserver) Import(jamq.Block, jamq.HeaderHash) {}

// Finalize implements Observer.
func (noObserver) Finalize(jamq.HeaderHash) {}

// Sent implements Observer.
func (noObserver) Sent(int) {}

// Effect implements Observer.
func (noObserver) Effect(bundlequeue.Effect) {}

// Observe sets the observer, and shows it the blocks that are not final. It must be called before
// Run.
func (n *Node) Observe(o Observer) {
	n.observer = o
	for _, change := range n.unfinished() {
		o.Effect(change)
	}
}

// Spec returns the constants of the JAM chain.
func (n *Node) Spec() jamq.ChainSpec { return n.cfg.Spec }

// Simulation returns the embedded JAM chain, so that a host can inject faults into it. It is nil if
// the node works on the chain of a JAM node.
func (n *Node) Simulation() *jamtest.Driver {
	chain, simulated := n.jam.(*jam.Simulated)
	if !simulated {
		return nil
	}
	return chain.Driver()
}
