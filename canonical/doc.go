// Package canonical turns accumulations in any order into one contiguous chain of rollup blocks, and block tags into blocks.
//
// JAM accumulates the packages of a rollup as they become available, on several cores. A rollup's state may only advance
// contiguously. A [Tracker] keeps, for each executed block, whether the best JAM chain has accumulated it and whether the finalized
// one has, and derives the heads:
//
//	pending    the newest executed block
//	latest     the highest N such that 1..N are accumulated on the best JAM chain
//	safe       the finalized one; a host with a justified point of its own may know better
//	finalized  the highest N such that 1..N are accumulated on the finalized JAM chain
//
// Every call that takes a block goes through [Tracker.Resolve], so that a tag means the same block in all of them. A Tracker is a
// value without clock or lock: it is not safe for concurrent use.
//
// # Blocks that fail
//
// A block that can never be accumulated takes all later ones with it, because their state is gone: [Tracker.Fail]. Their numbers are
// used again by the blocks that are executed instead, so that no hole stays behind and freezes the head.
package canonical
