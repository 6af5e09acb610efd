package node

import (
	"context"
	"math"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// HeadChange is one step of the latest block: it has either advanced to a block, or was
// moved back by a reorg from that block to the one before it.
type HeadChange = ledger.HeadChange

// ErrMissed is returned if a caller asks for changes so old that the node has dropped
// them.
var ErrMissed = ledger.ErrMissed

// followBuilder reads the builder's events in order, from now on.
func (n *Node) followBuilder(ctx context.Context) error {
	return n.builder.Watch(ctx, math.MaxUint64, func(events []builder.Event, heads canonical.Heads) error {
		for _, e := range events {
			switch e := e.Effect.(type) {
			case bundlequeue.Changed:
				n.progress.note(&e, n.JAMSlot())
			case bundlequeue.Failed:
				n.progress.forget(e.Number)
			}
			n.observer.Effect(e.Effect)
		}
		n.moveHeads(heads)
		return nil
	})
}

func (n *Node) moveHeads(h canonical.Heads) {
	n.progress.queued(h.Finalized.Number+1, h.Pending.Number, n.JAMSlot())
	n.headLog.Move(n.BlockByNumber, h.Latest.Number, h.Finalized.Number)
}

// HeadCursor returns the position after the newest change, from which HeadChanges
// can continue.
func (n *Node) HeadCursor() uint64 { return n.headLog.Cursor() }

// HeadChanges returns the changes of the latest block after a cursor: see
// ledger.HeadLog.Changes. If a developer's edit has restored a state from before a
// block, the result contains only the header of that block, as in all methods of Node.
func (n *Node) HeadChanges(cursor uint64) (changes []HeadChange, next uint64, more <-chan struct{}, err error) {
	changes, next, more, err = n.headLog.Changes(cursor, n.BlockByNumber)
	for i := range changes {
		if !changes[i].Removed {
			changes[i].Block = n.Present(changes[i].Block)
		}
	}
	return changes, next, more, err
}
