package anchor

import (
	"fmt"

	"github.com/jamq/jamq"
)

// Delays is a histogram of what became of packages that were sent, from which [Delays.Estimate] derives the distribution
// that [Best] needs. Begin with [NewDelays]. The fields are exported to be stored and loaded; whoever loads them
// calls Validate.
//
// Memory is bounded: 2·(H-1) counters. When they hold 512 packages all are halved, so that old times fade and the
// estimate follows the network.
// A Delays is not safe for use by several goroutines at once.
type Delays struct {
	// ReportedIn counts, at i, the packages reported in block i+1 after they were sent.
	ReportedIn []uint32
	// LostAfter counts, at i, the packages given up unreported after i+1 blocks.
	LostAfter []uint32
}

// maxDelays is the number of packages at which the counters are halved: 25 times the weight of the prior, so that the
// prior hardly matters by then; at a package every slot of six seconds it is less than an hour.
const maxDelays = 512

// The prior is what is believed before anything is observed, as a number of imagined packages: of 20, 8 are reported in
// the first block, 8 in the second, and 4 never. It says just what the table of [Offset] assumes: two blocks are worth
// having, more are not. With 20, four packages in a row reported in the fourth block change the choice, one does not.
var prior = [...]float64{8, 8}

const priorLost = 4

// NewDelays returns an empty histogram for a chain.
func NewDelays(spec *jamq.ChainSpec) *Delays {
	n := max(1, spec.RecentHistory-1)
	return &Delays{ReportedIn: make([]uint32, n), LostAfter: make([]uint32, n)}
}

// Observe counts a package that was reported in the given block after it was sent: the height of the report less that of
// the newest block when it was first sent, and less the rounds that were ahead of it, but at least 1. Sending the same
// bytes again does not begin a new count.
// A number below 1 is ignored; one beyond the histogram says only that the package was not reported earlier.
func (d *Delays) Observe(blocks int) {
	if blocks > len(d.ReportedIn) {
		d.Lost(blocks)
		return
	}
	d.count(d.ReportedIn, blocks)
}

// Lost counts a package that died unreported the given number of blocks after it was sent, counted as for Observe: H less
// its offset if its anchor expired, fewer if it died of something else. It might have been reported later, had its
// anchor been fresher, and Estimate takes it so. A number below 1 is ignored.
func (d *Delays) Lost(blocks int) { d.count(d.LostAfter, min(blocks, len(d.LostAfter))) }

// count adds a package, and halves all counters when they are full.
func (d *Delays) count(counters []uint32, blocks int) {
	if blocks < 1 || blocks > len(counters) {
		return
	}
	counters[blocks-1]++
	if d.Total() < maxDelays {
		return
	}
	for _, counters := range [][]uint32{d.ReportedIn, d.LostAfter} {
		for i := range counters {
			counters[i] /= 2
		}
	}
}

// Total returns how many packages the histogram holds at present, fewer than 512.
func (d *Delays) Total() int {
	n := 0
	for _, c := range d.ReportedIn {
		n += int(c)
	}
	for _, c := range d.LostAfter {
		n += int(c)
	}
	return n
}

// Validate reports a histogram that does not fit the chain or holds more than it ever would.
// The error wraps [ErrInvalidDelays].
func (d *Delays) Validate(spec *jamq.ChainSpec) error {
	if want := max(1, spec.RecentHistory-1); len(d.ReportedIn) != want || len(d.LostAfter) != want {
		return fmt.Errorf("%w: %d and %d counters, want %d each", ErrInvalidDelays, len(d.ReportedIn), len(d.LostAfter), want)
	}
	if n := d.Total(); n >= maxDelays {
		return fmt.Errorf("%w: %d packages, want fewer than %d", ErrInvalidDelays, n, maxDelays)
	}
	return nil
}

// Estimate returns the distribution of delays that the histogram suggests.
//
// A package that died after v blocks says nothing on the blocks after them. Counted as "never reported", it would make the
// estimate believe in whatever offset is in use. So each block is judged by the packages that were still waiting when it
// came: the chance of a report in it is the share of these that it reported (the product-limit estimate of Kaplan and
// Meier). Second versions have long windows, which is where the later blocks are learned.
//
// The estimate is smoothed by 20 imagined packages: 8 reported in the first block, 8 in the second, 4 never. With
// nothing observed, Best therefore chooses as the table of [Offset] does; and nothing is ever certain.
func (d *Delays) Estimate() Distribution {
	estimate := make(Distribution, len(d.ReportedIn))
	waiting := float64(d.Total()) + priorLost
	for _, n := range prior {
		waiting += n
	}
	left := 1.0 // the probability to be unreported so far
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
