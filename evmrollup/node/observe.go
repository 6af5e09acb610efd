package node

import (
	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/jamtest"
)

// Observer receives the events of a node, so that a display of the node is always
// up to date. Its methods are called concurrently and should return soon. The calls
// of each single method are in order.
type Observer interface {
	// Import is called with each JAM block, and with the best block after that import. Finalize
	// is called when a JAM block becomes final.
	Import(b jamq.Block, best jamq.HeaderHash)
	Finalize(hash jamq.HeaderHash)
	// Sent is called when the pool has accepted transactions. txs is the number of
	// transactions.
	Sent(txs int)
	// Effect is called with each effect of the queue, for example that a block has reached a new
	// state on JAM.
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

// Observe sets the observer, and first passes the states of the blocks that are not
// final to it. Observe must be called before Run.
func (n *Node) Observe(o Observer) {
	n.observer = o
	for _, change := range n.unfinished() {
		o.Effect(change)
	}
}

// Spec returns the constants of the JAM chain.
func (n *Node) Spec() jamq.ChainSpec { return n.cfg.Spec }

// Simulation returns the simulated JAM chain, so that a host can inject faults into it. It returns
// nil if the node works on the chain of a JAM node.
func (n *Node) Simulation() *jamtest.Driver {
	chain, simulated := n.jam.(*jam.Simulated)
	if !simulated {
		return nil
	}
	return chain.Driver()
}
