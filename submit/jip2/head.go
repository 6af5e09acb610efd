package jip2

import (
	"context"
	"errors"
	"slices"
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
		// Behind a slow proxy, each request may reach the node at a different time, when it has
		// a different head. The answers then differ without a lie.
		if head, found := f.vouchedHead(ctx, each.named); found {
			return head, nil
		}
	}
	return head, err
}

// vouchedHead finds a block among the named heads that is an ancestor of another named
// head. Two answers of the node confirm such a block, so it can be trusted. named begins
// with the newest block.
func (f *Feed) vouchedHead(ctx context.Context, named []BlockDescriptor) (BlockDescriptor, bool) {
	oldest := named[len(named)-1]
	for i, at := range named {
		if headers.CheckAhead(f.clock, time.Now(), at.Slot) != nil {
			continue
		}
		for n := 0; n < maxVouched && at.Slot > oldest.Slot; n++ {
			parent, err := f.parentOf(ctx, at)
			if err != nil {
				break
			}
			if at = parent; slices.Contains(named[i+1:], at) {
				return at, true
			}
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
