package node

import (
	"context"

	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/examples/refnode/ledger"
)

// HeadChange is one step of the latest block.
type HeadChange = ledger.HeadChange

// ErrMissed is returned if the requested changes are too old.
var ErrMissed = ledger.ErrMissed

// followHeads records each move of the heads for subscribers.
func (n *Node) followHeads(ctx context.Context) error {
	last := n.builder.Heads()
	n.moveHeads(last)
	for {
		err := n.builder.Await(ctx, func(h canonical.Heads) (moved bool) {
			moved, last = h != last, h
			return moved
		})
		if err != nil {
			return err
		}
		n.moveHeads(last)
	}
}

func (n *Node) moveHeads(h canonical.Heads) {
	n.headLog.Move(n.BlockByNumber, h.Latest.Number, h.Finalized.Number)
}

// HeadCursor returns a cursor behind the last change.
func (n *Node) HeadCursor() uint64 { return n.headLog.Cursor() }

// HeadChanges returns the changes after a cursor: see ledger.HeadLog.Changes. A reader that asks
// after an edit took a block back sees it as all others do.
func (n *Node) HeadChanges(cursor uint64) (changes []HeadChange, next uint64, more <-chan struct{}, err error) {
	changes, next, more, err = n.headLog.Changes(cursor, n.BlockByNumber)
	for i := range changes {
		if !changes[i].Removed {
			changes[i].Block = n.Present(changes[i].Block)
		}
	}
	return changes, next, more, err
}
