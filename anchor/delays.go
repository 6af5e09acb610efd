package anchor

import (
	"fmt"

	"github.com/jamq/jamq"
)

// Delays is a histogram of the delays between the first send of packages and their
// reports. [Delays.Estimate] converts it to the distribution that [Best] needs.
// Create it with [NewDelays]. The fields are exported so that hosts can store them.
// Call Validate after loading them. A Delays is not safe for concurrent use.
//
// A histogram has 2·(H-1) counters. When they reach a total of 512 packages, all
// counters are halved, so that old observations lose weight and the estimate
// follows the network.
type Delays struct {
	// ReportedIn[i] counts the packages that were reported in block i+1 after
	// they were sent.
	ReportedIn []uint32
	// LostAfter[i] counts the packages that died unreported after i+1 blocks.
	LostAfter []uint32
}

// maxDelays is the total at which all counters are halved, so that old observations
// lose weight. It is 25 times the weight of the prior, so the prior hardly matters by
// then. With one package per slot of six seconds, the total is reached in less than an
// hour.
const maxDelays = 512

// prior is the assumed number of reports in the first and in the second block before
// there are observations. Together with priorLost, it describes 20 imagined packages: 8
// reported in the first block, 8 in the second, and 4 never. With this assumption Best
// chooses the same offset as the table of [Offset], because a second block is useful
// and a third is not.
var prior = [...]float64{8, 8}

const priorLost = 4

// NewDelays returns an empty histogram for a chain.
func NewDelays(spec *jamq.ChainSpec) *Delays {
	n := max(1, spec.RecentHistory-1)
	return &Delays{ReportedIn: make([]uint32, n), LostAfter: make([]uint32, n)}
}

// Observe counts a reported package. blocks is the number of blocks from the first
// send of the package to its report, which is at least 1. It is the height of the
// reporting block, minus the height of the newest block at the first send, minus
// the rounds ahead of the package (see [Offset]). A later send of the same bytes
// does not restart the count.
//
// Observe ignores a number below 1. If the number exceeds the size of the
// histogram, Observe counts the package as unreported in all blocks of the
// histogram, like Lost.
func (d *Delays) Observe(blocks int) {
	if blocks > len(d.ReportedIn) {
		d.Lost(blocks)
		return
	}
	d.count(d.ReportedIn, blocks)
}

// Lost counts a package that died unreported. blocks is how many blocks could have
// reported it, counted from its first send as for Observe. If the package died because its
// anchor expired, this is H minus the offset of the anchor. Estimate considers that the
// package might have been reported with a newer anchor. Lost ignores a number below 1.
func (d *Delays) Lost(blocks int) { d.count(d.LostAfter, min(blocks, len(d.LostAfter))) }

// count adds a package to a counter, and halves all counters at maxDelays.
func (d *Delays) count(counters []uint32, blocks int) {
	if blocks < 1 || blocks > len(counters) {
		return
	}
	counters[blocks-1]++
	if d.total() < maxDelays {
		return
	}
	for _, counters := range [][]uint32{d.ReportedIn, d.LostAfter} {
		for i := range counters {
			counters[i] /= 2
		}
	}
}

// total returns the present number of packages in the histogram.
func (d *Delays) total() int {
	n := 0
	for _, c := range d.ReportedIn {
		n += int(c)
	}
	for _, c := range d.LostAfter {
		n += int(c)
	}
	return n
}

// Validate returns an error if the histogram does not fit the chain or contains too
// many packages. It detects, for example, a histogram that was damaged on disk. The
// error wraps [ErrInvalidDelays].
func (d *Delays) Validate(spec *jamq.ChainSpec) error {
	if want := max(1, spec.RecentHistory-1); len(d.ReportedIn) != want || len(d.LostAfter) != want {
		return fmt.Errorf("%w: %d and %d counters, want %d each", ErrInvalidDelays, len(d.ReportedIn), len(d.LostAfter), want)
	}
	if n := d.total(); n >= maxDelays {
		return fmt.Errorf("%w: %d packages, want fewer than %d", ErrInvalidDelays, n, maxDelays)
	}
	return nil
}

// Estimate returns the distribution of delays that fits the histogram.
//
// A package that died after v blocks gives no information about later blocks.
// If it counted as "never reported", the estimate would favor the offset that
// is in use. So the probability of a report in a block is estimated from the
// packages that were still waiting at that block: it is the share of them that
// the block reported (the product-limit estimate of Kaplan and Meier). Second
// versions have long windows, so they give information about later blocks.
//
// The estimate is smoothed by 20 imagined packages: 8 reported in the first
// block, 8 in the second, and 4 never. Without observations, Best therefore
// chooses like the table of [Offset], and no probability is ever 0 or 1 in the
// first two blocks.
func (d *Delays) Estimate() Distribution {
	estimate := make(Distribution, len(d.ReportedIn))
	waiting := float64(d.total()) + priorLost
	for _, n := range prior {
		waiting += n
	}
	left := 1.0 // probability of no report so far
	for i := range estimate {
		reported := float64(d.ReportedIn[i])
		if i < len(prior) {
			reported += prior[i]
		}
		estimate[i] = left * reported / waiting
		left -= estimate[i]
		waiting -= reported
		if i < len(d.LostAfter) {
			waiting -= float64(d.LostAfter[i])
		}
	}
	return estimate
}
