package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/txpool"
)

// ErrNotReady is returned if the node works but should not receive transactions now.
var ErrNotReady = errors.New("node: not ready")

// Levels contains the measurements of a node at one moment.
type Levels struct {
	Pool       txpool.Stats      // of the pool
	PoolUsed   float64           // the result of PoolPressure
	Queue      bundlequeue.Stats // of the queue; zero if another replica leads
	Builder    builder.Health    // of the builder
	Feed       submit.FeedHealth // of the connection to the JAM chain
	Heads      canonical.Heads   // of the rollup
	JAMSlot    uint64            // slot of the best JAM block
	SlotLength time.Duration     // duration of a slot on the JAM chain
	Roots      int               // number of states in memory
	Replaced   uint64            // number of executed blocks that were undone
	// Replicas describes the cluster, and Lag is the number of writes that this node has
	// not read yet. Both are zero without a cluster, and while the database does not
	// answer.
	Replicas Replicas
	Lag      uint64
}

// Levels returns the node's present measurements for monitoring. It returns an error if
// the builder has stopped.
func (n *Node) Levels(ctx context.Context) (Levels, error) {
	queue, err := n.builder.Stats(ctx)
	if errors.Is(err, builder.ErrFollows) {
		err = nil // the queue is the leader's
	}
	now := Levels{
		Pool: n.PoolStats(), PoolUsed: n.PoolPressure(), Queue: queue, Builder: n.builder.Health(), Feed: n.jam.Health(), Heads: n.builder.Heads(),
		JAMSlot: uint64(n.JAMSlot()), SlotLength: n.cfg.Spec.SlotDuration, Roots: n.States(), Replaced: n.ReplacedBlocks(),
	}
	if replicas, err := n.Replicas(ctx); err == nil {
		now.Replicas, now.Lag = replicas, replicas.lagOf(n.cfg.Cluster.Address)
	}
	return now, err
}

// Alive returns an error if the node no longer works and must be restarted. The error
// wraps ErrDisk, ledger.ErrDamaged or builder.ErrStopped.
func (n *Node) Alive() error {
	if err := cmp.Or(n.store.Err(), n.Damage()); err != nil {
		return err
	}
	if h := n.builder.Health(); !h.Running {
		return errors.Join(builder.ErrStopped, h.Err)
	}
	return nil
}

// staleSlots is the number of slots without a new JAM block after which a node is not
// ready.
const staleSlots = 8

// Ready returns an error if users should use a different node for now. The error wraps
// ErrNotReady, or is that of Alive if the node has failed.
func (n *Node) Ready() error {
	if err := n.Alive(); err != nil {
		return err
	}
	h := n.builder.Health()
	if h.Follows {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return n.followerReady(ctx)
	}
	if err := n.builder.Busy(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	stale := staleSlots * n.cfg.Spec.SlotDuration
	switch since := time.Since(h.LastImport); {
	case h.Held:
		return fmt.Errorf("%w: the node has restarted and waits for newer JAM blocks", ErrNotReady)
	case h.LastImport.IsZero():
		return fmt.Errorf("%w: no JAM block yet", ErrNotReady)
	case since > stale:
		return fmt.Errorf("%w: no JAM block for %v, want one within %v", ErrNotReady, since.Round(time.Second), stale)
	case h.Paused != nil:
		return fmt.Errorf("%w: the node is paused until an operator resumes it: %w", ErrNotReady, h.Paused)
	case h.Delayed:
		return fmt.Errorf("%w: block %d has waited since %s: %s", ErrNotReady, h.Waiting.Number, h.Waiting.Since.Format(time.TimeOnly), h.Waiting.Reason)
	}
	if call, found := h.Stuck(stale); found {
		return fmt.Errorf("%w: %s", ErrNotReady, call)
	}
	// The lookup anchor of a package must be a final block that is not too old when the
	// package is reported (D3; Gray Paper 11.34).
	best, final := n.jam.Heads()
	if age := n.cfg.Spec.MaxLookupAnchorAge; best.Slot >= final.Slot.Add(age) {
		return fmt.Errorf("%w: JAM has finalized no block after slot %d and is at slot %d; packages need a final block of the last %d slots", ErrNotReady, final.Slot, best.Slot, age)
	}
	return nil
}

// Resume lets the node build and send packages again after a fatal error has paused it:
// see submit.Fatal. The error wraps builder.ErrStopped if the node has stopped.
func (n *Node) Resume(ctx context.Context) error { return n.builder.Resume(ctx) }

// GiveUp makes the node build no more packages for a block that is not final. If none
// of the block's packages is accumulated, the transactions of this block and of later
// blocks are executed again. The error wraps bundlequeue.ErrWrongNumber or
// builder.ErrStopped.
func (n *Node) GiveUp(ctx context.Context, number uint64, reason string) error {
	return n.builder.GiveUp(ctx, number, reason)
}
