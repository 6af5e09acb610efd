// Package mempool keeps the transactions of a txpool.Pool in the log of a builder, for
// rollups on package builder that take Ethereum transactions. A host adds it to its
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
// A transaction is in the log when the builder's Submit or Add returns nil.
// From then on it is executed once, or it leaves the pool with an event that
// names the reason, also if the process is killed at any instruction. The rules
// for that are here, and not in the host:
//
//   - The records of the pool are records of the builder's log, in one order with the
//     blocks. They are read together at the end of a recovery, when the state is the
//     newest one.
//   - A block that was undone gives its transactions back. A record tells when the pool
//     has them. A block without this record gives them back again after a restart,
//     because the process may have been killed in between.
//   - A transaction in a block is recognized by its nonce after a restart, so txpool.State
//     must show the newest block that was applied.
//   - A checkpoint has the pool's content. Records of earlier changes may follow it.
//   - The transactions of a proposal are locked until another one is proposed, or a
//     block is applied, so that users cannot replace them meanwhile.
//   - If the log fails, the builder stops, and additions return its error.
//   - While an undone block returns, the state is older than the pool knows. Calls of
//     Add wait, because a sender's next transaction would seem to be behind a gap. The
//     block waits a second for calls of Add that run; one that hangs holds up nothing else.
//   - A panic of the host's state, or of a function in txpool.Config, costs that call. If it
//     comes while a block is applied or undone, it costs the pool: see ErrPanic.
//   - A user who submits a transaction again gets txpool.ErrAlreadyKnown when the log has it.
//
// # Concurrency
//
// A [Pool] is safe for concurrent use, except that the builder calls Build, Applied,
// Undone, Records, ReplayChange and Recovered one at a time, as it calls the methods of a
// rollup. The host must not call Reset and Restore of the embedded pool.
package mempool
