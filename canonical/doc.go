// Package canonical derives one contiguous chain of rollup blocks from
// accumulations that arrive in any order.
//
// JAM accumulates the packages of a rollup as they become available, on several
// cores and therefore out of order. The state of the rollup, however, may advance
// only without gaps. A [Tracker] records how far JAM has come with each executed
// block, and derives from that the heads which the rollup's RPC shows:
//
//	pending    the newest executed block
//	latest     the highest N such that all blocks up to N are accumulated
//	           on the best JAM chain
//	finalized  the same on the finalized JAM chain
//
// At all times finalized ≤ latest ≤ pending. A block that is not accumulated stops
// the latest head, even if later blocks are. When that block is accumulated too,
// the head jumps over all blocks that waited behind it, and the host commits only
// the root of the new head. Finalized never moves back.
//
// # The loop of a host
//
//	t.Executed(head)         // the next block was executed
//	t.Accumulate(item)       // commit the root if latest moved
//	t.Retract(item)          // a reorg removed the block
//	t.Finalized(item)
//	t.Fail(item)             // execute the blocks that it returns again
//
// A Tracker is a value without clock or lock, and it is not safe for concurrent
// use. The same sequence of calls always gives the same heads. A call that returns
// an error changes nothing.
//
// # Which block an item means
//
// An [Item] has a number and, in most cases, a commitment. The tracker finds the
// block by the commitment, or by the number if the item or the block has no
// commitment. If the executed block with that number has a different commitment,
// the call returns ErrConflict. A late call about a block that failed therefore
// never counts for the block that has its number now.
//
// # Falling back
//
// If a block fails, the tracker also removes all later blocks, accumulated or not,
// because they were executed on a state that never exists. Their numbers are used
// again, so that no gap remains. A reorg does not change pending: the bundle of the
// block is either submitted again, or fails.
package canonical
