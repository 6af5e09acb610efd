package anchor

import (
	"math"
	"time"

	"github.com/jamq/jamq"
)

// DefaultGuaranteeTimeout returns the time-out by which builders without blocks give a package up that was not guaranteed: the 2R-1
// slots of two rotations and two slots more; 54 s on the tiny spec.
//
// It is a custom, not evidence. Guarantors may stamp a report again, so rotations bound nothing; what ends a package's life is
// counted in blocks, and skipped slots make those rare. [ReportableChance] says how often it is wrong. It is slow as well: with
// an anchor six blocks old a package is dead after two.
// The same holds for every time-out of accumulation: a report may wait in the ready queue for E slots.
func DefaultGuaranteeTimeout(spec jamq.ChainSpec) time.Duration {
	return time.Duration(2*spec.RotationPeriod+1) * spec.SlotDuration
}

// ReportableChance returns the chance that a package which nobody has reported can still be reported after a time-out: that the slots of
// that time brought fewer than H-offset blocks. Each slot is skipped with the chance skip, from 0 to 1, independently; offset is the age
// of the anchor when the package was sent, in blocks.
// A new version that a builder sends by the clock then lives beside the old one.
func ReportableChance(spec *jamq.ChainSpec, offset int, skip float64, timeout time.Duration) float64 {
	slots := int(max(timeout, 0) / spec.SlotDuration)
	needed := spec.RecentHistory - offset
	skip = min(max(skip, 0), 1)
	chance := 0.0
	for blocks := 0; blocks < needed && blocks <= slots; blocks++ {
		chance += binomial(slots, blocks) * math.Pow(1-skip, float64(blocks)) * math.Pow(skip, float64(slots-blocks))
	}
	return min(chance, 1)
}

func binomial(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}
