// Package canonical derives one contiguous chain of rollup blocks from
// accumulations in any order, and resolves block tags.
//
// JAM accumulates the packages of a rollup as they become available, on several
// cores. The state of a rollup may advance only without gaps. A [Tracker]
// records how far JAM has come with each executed block, and derives the heads:
//
//	earliest   the block that the tracker began with
//	pending    the newest executed block
//	latest     the highest N such that all blocks up to N are accumulated
//	           on the best JAM chain
//	safe       the same on the chain of a justified point, if the host has
//	           one; never below finalized
//	finalized  the same on the finalized JAM chain
//
// At all times earliest ≤ finalized ≤ safe ≤ latest ≤ pending. A gap stops a
// head until it is filled. The head then jumps over all blocks that waited
// behind the gap, and the host commits the root of the new head only. Finalized
// never moves back.
//
// # The loop of a host
//
//	t.ExecutedBatch(on, blocks)           // blocks were executed on the head on
//	t.Accumulate(item)                    // commit the root if latest moved
//	t.Retract(item)                       // a reorg removed the block
//	t.Justified(item); t.Finalized(item)
//	plan, err := t.Fail(item)             // execute plan.Undone again on plan.On
//	t.Resolve(tag)                        // for RPC calls that name a block
//
// A Tracker is a value without clock or lock, and not safe for concurrent use.
// Equal calls give equal heads. A call that returns an error changes nothing.
//
// # Which block an item means
//
// An [Item] has a number, a root and, in most cases, a commitment. The tracker
// finds its block in three steps ([Tracker.Lookup]): by commitment; by number,
// if the item or the block has no commitment; otherwise the block was not
// executed here, and the item's root counts. In the last case [Source.Warning]
// returns a text for the operator. An item that contradicts the executed block
// of its number is refused with ErrConflict. This holds for every call: a late
// call about a block that failed never counts for the block that has its number
// now. While the number is unused, it counts as a block that was not executed
// here. The host therefore ignores later calls about blocks that it gave up.
//
// # Chaining and falling back
//
// Batches are executed ahead of JAM, each on the pending head of its time. If
// that head was replaced meanwhile, the batch is refused with ErrStaleParent
// and must be executed again. Pending falls back in two cases:
//
//   - A block fails. All later blocks are removed too, accumulated or not,
//     because the state that they were executed on never exists. Their numbers
//     are used again, so that no gap remains.
//   - A reorg removes a block that was learned from JAM only. This host cannot
//     submit it again.
//
// A reorg that removes an executed block does not change pending: its bundle is
// submitted again, or fails.
//
// # Retention
//
// The host chooses for how many numbers below finalized a block can still be
// resolved. The first block always can. Memory is bounded by that number and
// the blocks above finalized.
package canonical
