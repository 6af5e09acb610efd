// Package canonical turns accumulations in any order into one contiguous chain of rollup blocks, and block tags into blocks.
//
// JAM accumulates the packages of a rollup as they become available, on several cores. A rollup's state may only advance
// contiguously. A [Tracker] keeps, for each executed block, how far JAM has come with it, and derives the heads:
//
//	earliest   the block that the tracker began with
//	pending    the newest executed block: Phase 1
//	latest     the highest N such that all up to N are accumulated on the best JAM chain
//	safe       the same on the chain of a justified point, if the host has one; never below finalized
//	finalized  the same on the finalized JAM chain
//
// Always earliest ≤ finalized ≤ safe ≤ latest ≤ pending. A hole stops a head until it is filled, then the head jumps over all that waited
// behind it: the host commits the root of the new head once, and nothing for the blocks between. Finalized never moves back.
//
// # The loop that a host writes
//
//	t.ExecutedBatch(on, blocks)          // a batch was executed on the pending head on
//	t.Accumulate(item)                   // JAM's best chain took a bundle: commit the root if the head moved
//	t.Retract(item)                      // a reorg took it away again
//	t.Justified(item), t.Finalized(item)
//	plan, err := t.Fail(item)            // it can never be accumulated: execute plan.Undone anew on plan.On
//	t.Resolve(tag)                       // every call of the RPC that names a block
//
// A Tracker is a value without clock or lock: it is not safe for concurrent use. Equal calls give equal heads, and a refused call changes
// nothing.
//
// # Whose root counts
//
// A queue's item has a commitment to its block, a number and a root of its own. Which block it is, is looked up in three steps:
// by commitment, which is certain; by number, where one of the two has no commitment; and else it is a block that was not executed here: the
// item's own root counts, and [Source.Warning] says so ([Tracker.Lookup]). An item that contradicts the executed block of its number is refused
// with ErrConflict: one of them must fail first. So it is in every call that speaks of an item: a late word about a block that failed never counts for the
// block that has its number now.
//
// # Pending: chaining and falling back
//
// Batches are executed ahead of JAM, each on the pending head of its time. A batch whose head was replaced meanwhile is refused with
// ErrStaleParent and must be executed again. Pending falls back in two cases:
//
//   - A block fails. All later ones go with it, accumulated or not, because the state that they were executed on never comes to be.
//     Their numbers are used again, so that no hole stays behind and freezes the heads.
//   - A reorg takes away a block that was not executed here and was only known from JAM. Nobody here can bring it back.
//
// A reorg that takes away an executed block leaves pending alone: its bundle is sent again, or fails.
//
// # Retention
//
// Blocks below finalized are kept for a number of blocks that the host chooses, and resolved by number. The first block always is.
// Memory is bounded by that number and the blocks above finalized.
package canonical
