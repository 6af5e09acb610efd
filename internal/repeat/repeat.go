// Package repeat decides how often a test repeats a proof.
//
// A test that plays seeds, or that fails at each moment in turn, does so often
// enough for its rule. Under the race detector, which makes it about ten times
// slower, each further repetition visits the same code: a few of them find the
// same races. The gate and the deep stage run all repetitions without it.
package repeat

// share means that one of this many repetitions remains under the race detector.
const share = 8

// Times returns n, or an eighth of it under the race detector, at least 1.
func Times(n int) int {
	if race {
		return max(n/share, 1)
	}
	return n
}

// Step returns the step of a loop that sweeps over moments: 1, or 8 under the race
// detector.
func Step() int {
	if race {
		return share
	}
	return 1
}
