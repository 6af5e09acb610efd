// Package buildertest tests a rollup that runs on package builder. It plays the
// rollup's whole life against a simulated JAM chain, in virtual time, from seeds:
// lost packages, skipped slots, forks, blocks that fail, a process that is killed
// before or after any write or call, calls that are slow, fail or panic, users who have
// not received an answer and ask again, a log that fails or refuses checkpoints, and
// simulated JAM chains that end with their process.
//
//	func TestRollup(t *testing.T) {
//		buildertest.Run(t, buildertest.Case[Block]{
//			New:       func() builder.Rollup[Block] { return New() },
//			Operation: func(i int) []byte { return fmt.Appendf(nil, "transfer %d", i) },
//			Executed:  func(payload []byte) [][]byte { … },
//		})
//	}
//
// It checks for the user:
//
//   - Each accepted operation is executed exactly once on the final JAM chain, or
//     dropped by the rollup. None is executed twice, also if it is submitted twice.
//   - No operation is executed that was refused, or that the rollup says it has dropped.
//   - The blocks on the final chain continue one another, by number and by root.
//   - Execution is deterministic: each block is applied twice, with the same root.
//   - Undo restores the state before the block.
//   - The builder comes to an end: no operation waits forever.
//
// [Provoke] makes mistakes of a host outside of its rollup, for example a field of the JAM
// blocks that it leaves out, and returns the error with which the builder stops.
//
// Calls overlap as in a real process. With the race detector (go test -race) a run also finds
// a rollup without the mutex that it needs.
//
// A run that fails prints the command that repeats it, and a log of the last calls and of all
// that have an operation which the problem names. The seed determines all faults and delays,
// but not the order of goroutines that run at the same moment, so a fault that depends on it
// can need several repetitions.
//
// BUILDERTEST_SEEDS is the number of seeds, 50 by default, and BUILDERTEST_SEED the
// only one.
package buildertest
