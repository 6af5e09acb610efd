package anchor

import (
	"errors"
	"fmt"
)

// ErrInvalidDelays is wrapped by the errors of [Distribution.Validate] and [Delays.Validate].
var ErrInvalidDelays = errors.New("anchor: invalid delays")

// Distribution says how soon packages are reported: element k-1 is the probability that the report comes in the k-th
// block after the package was sent. What is missing to 1 is the share that is never reported, however long it
// could be. [Delays] estimates one.
type Distribution []float64

// rounding is how far a sum of probabilities may exceed 1: many times what adding thousands of them can be off by.
const rounding = 1e-9

// Validate reports a probability below 0, or a sum above 1. The error wraps [ErrInvalidDelays].
// An empty distribution is valid: nothing is ever reported.
func (d Distribution) Validate() error {
	sum := 0.0
	for i, p := range d {
		if !(p >= 0) { // written so that NaN is refused
			return fmt.Errorf("%w: probability of block %d is %v, want 0 to 1", ErrInvalidDelays, i+1, p)
		}
		sum += p
	}
	if sum > 1+rounding {
		return fmt.Errorf("%w: probabilities add up to %v, want at most 1", ErrInvalidDelays, sum)
	}
	return nil
}

// Within returns the probability that a package is reported in one of the first given number of blocks.
func (d Distribution) Within(blocks int) float64 {
	reported, _ := d.within(blocks)
	return reported
}

// within also returns the sum of k·p(k) over these blocks.
func (d Distribution) within(blocks int) (reported, sum float64) {
	for i, p := range d[:min(max(0, blocks), len(d))] {
		reported += p
		sum += float64(i+1) * p
	}
	return min(reported, 1), sum
}
