// Package repeat decides how often a test repeats a proof.
//
// A test that plays seeds, or that fails at each moment in turn, repeats it:
//
//   - in the deep stage, which sets JAMQ_SEED, as often as a rule needs to be trusted;
//   - in the gate, which must be quick, often enough to find what breaks the rule often;
//   - under the race detector, which makes a test about ten times slower, a few times,
//     because further repetitions visit the same code and find the same races.
package repeat

import (
	"os"
	"strconv"
)

// seed is the variable that the deep stage sets.
const seed = "JAMQ_SEED"

// First returns the first seed of a test that counts seeds: JAMQ_SEED, or 0.
func First() uint64 {
	first, _ := strconv.ParseUint(os.Getenv(seed), 10, 64)
	return first
}

// Times returns how often a proof is repeated: gate times, deep times in the deep
// stage, or an eighth of gate under the race detector, at least once.
func Times(gate, deep int) int {
	const share = 8
	switch {
	case race:
		return max(gate/share, 1)
	case os.Getenv(seed) != "":
		return deep
	}
	return gate
}

// Step returns the step of a loop that sweeps over moments: 5, 1 in the deep stage,
// or 11 under the race detector. These are primes, because some tests do another thing
// at every second moment, and the calls of a program recur in short cycles.
func Step() int {
	const gate, raced = 5, 11
	switch {
	case race:
		return raced
	case os.Getenv(seed) != "":
		return 1
	}
	return gate
}
