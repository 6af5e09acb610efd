// Package canonical derives one contiguous chain of rollup blocks from
// accumulations in any order.
//
// JAM accumulates the packages of a rollup as they become available, on several
// cores. The state of a rollup may advance only without gaps. A [Tracker]
// records how far JAM has come with each executed block, and derives the heads:
//
//	pending    the newest executed block
//	latest     the highest N such that all blocks up to N are accumulated
//	           on the best JAM chain
//	finalized  the same on the finalized JAM chain
//
// At all times finalized ≤ latest ≤ pending. A gap stops a head until it is
// filled. The head then jumps over all blocks that waited behind the gap, and
// the host commits the root of the new head only. Finalized never moves back.
//
// # The loop of a host
//
//	t.Executed(head)         // the next block was executed
//	t.Accumulate(item)       // commit the root if latest moved
//	t.Retract(item)          // a reorg removed the block
//	t.Finalized(item)
//	t.Fail(item)             // execute the blocks that it returns again
//
// A Tracker is a value without clock or lock, and not safe for concurrent use.
// Equal calls give equal heads. A call that returns an error changes nothing.
//
// # Which block an item means
//
// An [Item] has a number and, in most cases, a commitment. The tracker finds its
// block by the commitment, or by the number if the item or the block has no
// commitment. An item that contradicts the executed block of its number is
// refused with ErrConflict: a late call about a block that failed never counts
// for the block that has its number now.
//
// # Falling back
//
// If a block fails, all later blocks are removed too, accumulated or not,
// because the state that they were executed on never exists. Their numbers are
// used again, so that no gap remains. A reorg does not change pending: the
// bundle of the block is submitted again, or fails.
package canonical
