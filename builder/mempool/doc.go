// Package mempool keeps the transactions of a txpool.Pool in the log of a
// builder, so that an accepted transaction survives a crash. It is for rollups
// on package builder that accept Ethereum transactions. A host adds it to its
// rollup in four places:
//
//	type rollup struct {
//		*mempool.Pool // implements builder.Operations
//		…             // the state
//	}
//
//	Propose  session := r.Build(ctx, budget); execute session.Next() until it is nil
//	Apply    change the state; r.Applied(transactions)
//	Undo     return r.Undone(b.Number, transactions, func() error { restore the state })
//	Checkpoint and Restore, if the rollup has them: append r.Records(), and give the
//	         records that Owns reports to r.ReplayChange
//
// # What is promised
//
// A transaction is in the log when Submit of the builder, or Add, returns nil.
// From then on it is executed once, or it leaves the pool with an event that
// names the reason, even if the process is killed at any instruction. This
// package, and not the host, follows the rules that this promise needs:
//
//   - The records of the pool are records of the builder's log, in one order
//     with the blocks. The pool reads them together at the end of a recovery,
//     when the state is the newest one.
//   - A block that was undone gives its transactions back to the pool, and a
//     record then confirms that the pool has them. After a restart, a block
//     without this record gives its transactions back again, because the
//     process may have been killed in between.
//   - After a restart, a transaction that is already in a block is recognized
//     by its nonce, so txpool.State must show the newest block that was
//     applied.
//   - A checkpoint contains the content of the pool. Records of earlier changes
//     may follow it.
//   - The transactions of a proposal are locked until the next proposal, or
//     until a block is applied, so that users cannot replace them in the
//     meantime.
//   - If the log fails, the builder stops, and additions return its error.
//   - While a block is undone, the state is older than the pool knows. Calls of
//     Add wait, because a sender's next transaction would seem to be behind a
//     gap. The undoing waits up to a second for the calls of Add that already
//     run, so that a call that hangs does not block everything else.
//   - A panic of the host's state, or of a function in txpool.Config, affects
//     only that call. If it happens while a block is applied or undone, the
//     pool can no longer be used: see ErrPanic.
//   - A user who submits a transaction again gets txpool.ErrAlreadyKnown when
//     the log has the transaction.
//
// # Concurrency
//
// A [Pool] is safe for concurrent use with one exception: Build, Applied,
// Undone, Records, ReplayChange and Recovered must be called one at a time, as
// the builder calls the methods of a rollup. The host must not call the methods
// Reset and Restore of the embedded pool.
package mempool
