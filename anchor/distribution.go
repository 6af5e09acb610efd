package anchor

import (
	"errors"
	"fmt"
)

// ErrInvalidDelays is wrapped by the errors of [Delays.Validate].
var ErrInvalidDelays = errors.New("anchor: invalid delays")

// Distribution is the probability distribution of the delay from the send of a
// package to its report. Element k-1 is the probability of a report in the k-th
// block after the send. If the sum is below 1, the rest is the probability that the
// package is never reported, for any anchor. [Delays] estimates a Distribution.
type Distribution []float64

// rounding is by how much the sum of the probabilities may exceed 1, so that a valid
// distribution is not refused because of rounding errors. It is larger than the error of
// thousands of additions.
const rounding = 1e-9

// validate returns an error if a probability is out of range, or their sum above 1.
func (d Distribution) validate() error {
	// An empty distribution is valid, and means that no package is ever reported.
	sum := 0.0
	for i, p := range d {
		if !(p >= 0) { // also true for NaN
			return fmt.Errorf("%w: probability of block %d is %v, want 0 to 1", ErrInvalidDelays, i+1, p)
		}
		sum += p
	}
	if sum > 1+rounding {
		return fmt.Errorf("%w: probabilities add up to %v, want at most 1", ErrInvalidDelays, sum)
	}
	return nil
}

// within returns the probability that a package is reported in one of the first blocks
// after its send. sum is the contribution of these blocks to the mean delay: the sum of
// k·p(k), where k counts the blocks from 1.
func (d Distribution) within(blocks int) (reported, sum float64) {
	for i, p := range d[:min(max(0, blocks), len(d))] {
		reported += p
		sum += float64(i+1) * p
	}
	return min(reported, 1), sum
}
