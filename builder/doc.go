// Package builder runs the builder of a JAM rollup on one log. The host supplies a
// state that executes blocks and undoes them ([Rollup]), and the way to a JAM
// network ([Network]). The package does the rest: the order of writes, the queue of
// bundles, failed blocks, heads, and recovery after a crash.
//
//	b, err := builder.Open(ctx, builder.DefaultConfig(spec), log, rollup, network)
//	go b.Run(ctx)
//	err = b.Submit(ctx, operation) // nil: it is durable, and the user may be told
//	heads := b.Heads()             // pending, latest, finalized
//
// # The model
//
// A builder is a state machine over one log. Each fact that must survive is a
// record: a change of the operations that wait, a block that was executed, a step of
// the queue. Three rules follow. The files submit.go, work.go and
// engine.go show them.
//
//   - Append, then act. A fact is durable before a user or the network can see a
//     consequence of it: before Submit returns, and before a package leaves. The rollup
//     makes a change of its operations first, but each write begins with these changes.
//   - One transition is one append. A block and its place in the queue are one
//     record. A crash cuts the log only at its end.
//   - State is a fold. [Open] gives the records to the same code that followed them
//     before the crash. It calls the rollup as Run did, in the same order.
//
// # What is promised
//
// If the process is killed at any instruction, no accepted operation is lost,
// and none is executed twice. A call of the host that fails or panics is
// repeated later; a failure of Admit is the answer to its user. A call of
// Payload or Pack that hangs is left alone after Config.BuildTimeout, and made
// again. Any other call that hangs holds up its own kind of work: while Admit
// hangs, its operation waits; while Send hangs, its package; while Propose
// hangs, there are no new blocks, but the others become final. While
// TakeChanges hangs, nothing is written to the log, and if it panics, Run ends.
// Apply, Undo, Final, Checkpoint and Prune are calls of the same goroutine as
// Propose. [Builder.Health] names the call.
//
// A rollup that has another root when it executes a block again is stopped with
// ErrDiverged. No package of a block leaves before the rollup has applied it.
//
// Package builder/buildertest tests a rollup against these promises.
//
// # Concurrency
//
// All methods of a [Builder] are safe for concurrent use. Propose, Apply, Undo,
// Root and the optional methods of a rollup are called by one goroutine at a time.
// Admit, TakeChanges and Payload are called concurrently with them. The host's code
// runs under no lock of this package, but all writes to the log wait for TakeChanges.
package builder
