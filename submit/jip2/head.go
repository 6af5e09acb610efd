package jip2

import (
	"context"
	"errors"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/headers"
)

// maxVouched is how many parents vouchedHead requests at most from one named block.
const maxVouched = 64

// askHead asks the node for one of its heads until two answers agree.
func (f *Feed) askHead(ctx context.Context, ask func(context.Context) (BlockDescriptor, error)) (BlockDescriptor, error) {
	head, err := agreed(ctx, f.loop.NoteContradiction, true, ask)
	if each := new(disagreement); errors.As(err, &each) {
		// Requests may wait for different times in a slow proxy, so that each of them
		// finds the node at another head.
		if head, found := f.vouchedHead(ctx, each.named); found {
			return head, nil
		}
	}
	return head, err
}

// vouchedHead returns the newest of the named blocks that is an ancestor of the next newer
// one. Two answers of the node vouch for such a block.
func (f *Feed) vouchedHead(ctx context.Context, named []BlockDescriptor) (BlockDescriptor, bool) {
	for i := range named[1:] {
		at, older := named[i], named[i+1]
		if at.Slot == older.Slot || headers.CheckAhead(f.clock, time.Now(), at.Slot) != nil {
			continue
		}
		for n := 0; n < maxVouched && at.Slot > older.Slot; n++ {
			parent, err := f.parentOf(ctx, at)
			if err != nil {
				break
			}
			at = parent
		}
		if at == older {
			return older, true
		}
	}
	return BlockDescriptor{}, false
}

// parentOf returns the parent of a block, and asks the node only if the block was not
// delivered.
func (f *Feed) parentOf(ctx context.Context, block BlockDescriptor) (BlockDescriptor, error) {
	if n := f.tree.Get(jamq.HeaderHash(block.HeaderHash)); n != nil && n.Parent != nil {
		return BlockDescriptor{HeaderHash: Hash(n.Parent.Hash), Slot: n.Parent.Slot}, nil
	}
	return f.parent(ctx, block)
}
