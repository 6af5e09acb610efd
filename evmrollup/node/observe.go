package node

import (
	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/jamtest"
)

// Observer receives the events of a node, for example to display them. Its methods
// should return soon. Different methods may be called concurrently, but the calls of
// each method are in order.
type Observer interface {
	// Import is called with each JAM block and the hash of the best block after its import.
	// Finalize is called when a JAM block becomes final.
	Import(b jamq.Block, best jamq.HeaderHash)
	Finalize(hash jamq.HeaderHash)
	// Sent is called with the number of transactions that the pool has just accepted.
	Sent(txs int)
	// Effect is called with each effect of the queue, for example when a block has reached
	// a new state on JAM.
	Effect(e bundlequeue.Effect)
}

// noObserver is the observer of a node until Observe is called. It does nothing.
type noObserver struct{}

// Import implements Observer.
func (noObserver) Import(jamq.Block, jamq.HeaderHash) {}

// Finalize implements Observer.
func (noObserver) Finalize(jamq.HeaderHash) {}

// Sent implements Observer.
func (noObserver) Sent(int) {}

// Effect implements Observer.
func (noObserver) Effect(bundlequeue.Effect) {}

// Observe sets the observer, and first reports the states of all blocks that are not
// final to it. Observe must be called before Run.
func (n *Node) Observe(o Observer) {
	n.observer = o
	for _, change := range n.unfinished() {
		o.Effect(change)
	}
}

// Spec returns the constants of the JAM chain.
func (n *Node) Spec() jamq.ChainSpec { return n.cfg.Spec }

// Simulation returns the simulated JAM chain, for example to inject faults. It returns
// nil if the node uses the chain of a JAM node.
func (n *Node) Simulation() *jamtest.Driver {
	chain, simulated := n.jam.(*jam.Simulated)
	if !simulated {
		return nil
	}
	return chain.Driver()
}
