// Package builder runs the builder of a JAM rollup on one log. The host supplies a
// state that can execute and undo blocks ([Rollup]) and a connection to a JAM
// network ([Network]). The package does the rest: the order of writes, the queue of
// bundles, failed blocks, heads, and recovery after a crash.
//
//	b, err := builder.Open(ctx, builder.DefaultConfig(spec), log, rollup, network)
//	go b.Run(ctx)
//	err = b.Submit(ctx, operation) // nil: the operation is durable, and the user may get an answer
//	heads := b.Heads()             // pending, latest, finalized
//
// # The model
//
// A builder is a state machine over one log. Each fact that must survive is a
// record: a change of the operations that wait, a block that was executed, or a
// step of the queue. Three rules follow from this, and the files submit.go, work.go
// and engine.go implement them.
//
//   - Append, then act. A fact is durable before a user or the network can see a
//     consequence of it. For example, an operation is in the log before Submit
//     returns, and a step of the queue is in the log before a package is sent. The
//     rollup changes its operations before the log has the change, but each write
//     to the log begins with these changes.
//   - One transition is one append. A block and its position in the queue are one
//     record, so that a crash, which can only cut off the end of the log, never
//     separates them.
//   - State is a fold over the log. [Open] passes the records to the same code that
//     processed them before the crash, and that code makes the same calls of the
//     rollup in the same order.
//
// # What is promised
//
// If the process is killed at any instruction, no accepted operation is lost, and
// none is executed twice.
//
// A call of the host that fails or panics is repeated later. The exception is
// Admit, whose error is the answer to the user. If a call of Payload or Pack hangs,
// the builder abandons it after Config.BuildTimeout and makes another call. Any
// other call that hangs holds up its own kind of work:
//
//   - Admit holds up its operation.
//   - Send holds up its package.
//   - Propose holds up new blocks, while older blocks still become final. Apply,
//     Undo, Final, Checkpoint and Prune are called by the same goroutine.
//   - TakeChanges holds up all writes to the log. If it panics, Run ends.
//
// [Builder.Health] names the call that hangs.
//
// The builder executes each block a second time with Apply. If the root then
// differs from the proposed one, the builder stops with ErrDiverged. It sends no
// package of a block before the rollup has applied the block.
//
// Package builder/buildertest tests a rollup against these promises.
//
// # Concurrency
//
// All methods of a [Builder] are safe for concurrent use. One goroutine at a time
// calls Propose, Apply, Undo, Root and the optional methods of a rollup. Admit,
// TakeChanges and Payload are called concurrently with them. The builder holds no
// lock while it calls the host, but all writes to the log wait for TakeChanges.
package builder
