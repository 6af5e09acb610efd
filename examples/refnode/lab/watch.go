package lab

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/examples/refnode/live"
)

// Live returns the hub that shows the node's activity. It publishes while Run
// is active.
func (n *Node) Live() *live.Hub { return n.live }

// makeLive creates the hub, after the JAM chain is known and the blocks are
// recovered.
func (n *Node) makeLive() {
	spec := n.Spec()
	jam := fmt.Sprintf("simulated, %s", spec.Name)
	if n.cfg.JAMURL != "" {
		jam = n.cfg.JAMURL
	}
	n.live = live.NewHub(live.Info{
		ChainID: n.cfg.ChainID.String(), JAM: jam, SlotMillis: spec.SlotDuration.Milliseconds(), Cores: spec.Cores,
	}, spec, n.Node.Heads().Finalized.Number, watched{n})
}

// Import implements node.Observer.
func (n *Node) Import(b jamq.Block, best jamq.HeaderHash) { n.live.Import(b, best) }

// Finalize implements node.Observer.
func (n *Node) Finalize(hash jamq.HeaderHash) { n.live.Finalize(hash) }

// Sent implements node.Observer.
func (n *Node) Sent(txs int) { n.live.Sent(txs) }

// Effect implements node.Observer. It passes an effect of the queue to the hub.
func (n *Node) Effect(e bundlequeue.Effect) {
	switch e := e.(type) {
	case bundlequeue.Changed:
		txs, _ := watched{n}.Txs(e.Number)
		n.live.Changed(e, txs) // 0 before the block is applied
	case bundlequeue.Died:
		n.live.Died(e.Number, e.Version, e.Reason)
	case bundlequeue.Build:
		txs, _ := watched{n}.Txs(e.Number)
		n.live.Build(e.Number, e.Version, txs, e.Core)
	case bundlequeue.Send:
		n.live.Send(e.Number, e.Version, e.Package, e.Core)
	case bundlequeue.Failed:
		n.live.Failed(e.Number, e.Reason)
	}
}

// watched is the node as a source of the hub.
type watched struct{ *Node }

// Pool implements live.Source. The base fee is that of the next block. The pool
// learns it with the first block only.
func (w watched) Pool() live.Pool {
	s := w.PoolStats()
	return live.Pool{Txs: s.Size() - s.Locked, Max: w.cfg.MaxPool, Base: w.NextBaseFee().Uint64(), Floor: s.Floor, Surge: s.Surge}
}

// Heads implements live.Source.
func (w watched) Heads() live.Heads {
	h := w.Node.Heads()
	return live.Heads{Pending: h.Pending.Number, Latest: h.Latest.Number, Safe: h.Safe.Number, Finalized: h.Finalized.Number}
}

// Txs implements live.Source.
func (w watched) Txs(number uint64) (int, bool) {
	b := w.BlockByNumber(number)
	if b == nil {
		return 0, false
	}
	return len(b.Transactions()), true
}

// Cluster implements live.Source.
func (w watched) Cluster() *live.Cluster { return w.replicas.Load() }

// Lab implements live.Source.
func (w watched) Lab() *live.Lab {
	lab := w.Node.Lab()
	if lab == nil {
		return nil
	}
	return lab.state()
}
