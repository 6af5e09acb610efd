// Package buildertest tests a rollup that runs on package builder. It plays the
// rollup's whole life against a simulated JAM chain in virtual time. The seed of a
// run decides on the events:
//
//   - on the JAM chain: lost packages, skipped slots, forks, blocks that fail, and
//     chains that end with their process
//   - in the process: it is killed before or after any write or call, and calls are
//     slow, fail or panic
//   - in the log: writes fail, and checkpoints are refused
//   - at the users: they submit an operation again if they have received no answer
//
// A test needs little code:
//
//	func TestRollup(t *testing.T) {
//		buildertest.Run(t, buildertest.Case[Block]{
//			New:       func() builder.Rollup[Block] { return New() },
//			Operation: func(i int) []byte { return fmt.Appendf(nil, "transfer %d", i) },
//			Executed:  func(payload []byte) [][]byte { … },
//		})
//	}
//
// A run checks that the users' operations are safe:
//
//   - Each accepted operation is executed exactly once on the final JAM chain, or
//     the rollup drops it. No operation is executed twice, even if it is submitted
//     twice.
//   - No operation is executed that was refused, or that the rollup reports as
//     dropped.
//   - The blocks on the final chain continue one another, by number and by root.
//   - Execution is deterministic: each block is applied twice, with the same root.
//   - Undo restores the state before the block.
//   - No operation waits forever.
//
// [Provoke] makes mistakes of a host outside its rollup, for example a network that
// leaves out a field of the JAM blocks, and returns the error with which the
// builder stops.
//
// Calls overlap as in a real process. With the race detector (go test -race), a run
// also detects if a rollup lacks a mutex that it needs.
//
// A run that fails prints the command that repeats it. It also prints a log of the
// last calls, and of all earlier calls with an operation that the problem names.
// The seed determines all faults and delays, but not the order of goroutines that
// run at the same moment, so a failure that depends on this order may need several
// repetitions.
//
// The environment variable BUILDERTEST_SEEDS is the number of seeds, 50 by default.
// BUILDERTEST_SEED selects a single seed.
package buildertest
