package anchor

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jamq/jamq"
)

// ErrInvalidClock is wrapped by every error of [WallClock.Validate].
var ErrInvalidClock = errors.New("anchor: invalid wall clock")

// WallClock is the policy for hosts that cannot show imported blocks: a package that was not reported for so long is
// taken for lost, and a new version is made.
//
// It is a guess where [Dead] is a proof. The life of an anchor counts blocks, and slots may be skipped: the time-out may
// pass while the first version can still be reported, and then both versions may accumulate. [ReportableChance]
// says how likely that is. A host with this policy needs a service that tolerates duplicates: one that applies a rollup
// block only if it continues the stored number and state root.
//
// It is slow, too: with the usual offset of 6 a package is dead two blocks after it was sent, and the clock waits for
// nine slots. And there is no time-out for accumulation at all, because no clock is evidence there either: a report may
// wait in the ready queue for an epoch, 72 s on the tiny chain and an hour on the full one, and its core holds it until
// the first block after the availability time-out, whenever that comes.
type WallClock struct {
	// GuaranteeTimeout is the time from sending a package last until it is taken for lost, at least 2R-1 slots: the greatest
	// age of a guarantee, see [MaxGuaranteeAge].
	GuaranteeTimeout time.Duration
}

// marginSlots is what the default adds to the greatest age of a guarantee: a slot for the package on its way to the
// guarantors, and a slot for the guarantee on its way to the author of a block.
const marginSlots = 2

// DefaultWallClock returns the policy with [DefaultGuaranteeTimeout].
func DefaultWallClock(spec *jamq.ChainSpec) WallClock {
	return WallClock{GuaranteeTimeout: DefaultGuaranteeTimeout(spec)}
}

// DefaultGuaranteeTimeout returns 2R-1 slots, in which a guarantee stays valid (GP 11.26), and two slots for the ways to
// the guarantors and to the author: 42 s + 12 s = 54 s on the tiny chain, 126 s on the full one.
func DefaultGuaranteeTimeout(spec *jamq.ChainSpec) time.Duration {
	return slots(spec, MaxGuaranteeAge(spec).Add(marginSlots))
}

// slots returns the duration of n slots, or the longest duration there is.
func slots(spec *jamq.ChainSpec, n jamq.Slot) time.Duration {
	if n > 0 && spec.SlotDuration > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return time.Duration(n) * spec.SlotDuration
}

// Validate reports a time-out below the greatest age of a guarantee: before that, even a guarantee that is signed already
// may enter a block. The error wraps [ErrInvalidClock].
func (w WallClock) Validate(spec *jamq.ChainSpec) error {
	if least := slots(spec, MaxGuaranteeAge(spec)); w.GuaranteeTimeout < least {
		return fmt.Errorf("%w: GuaranteeTimeout is %v, want at least %v", ErrInvalidClock, w.GuaranteeTimeout, least)
	}
	return nil
}

// Expired reports whether a package that was sent at the given time, for the last time, and is not known to be reported, is taken
// for lost at the time now. While the same bytes are sent again, each send is another chance: a time-out that counts from the first
// would give up what a guarantor has just taken.
func (w WallClock) Expired(sent, now time.Time) bool { return now.Sub(sent) >= w.GuaranteeTimeout }

// ReportableChance returns the probability that a package anchored offset blocks behind the newest when it was sent, and
// not reported since, can still be reported after the given time, if each slot is skipped with probability skipShare,
// independently of the others.
//
// A time of n slots contains the beginnings of n slots, so that n blocks appear in it if none is skipped (a fraction of a
// slot may contain one more; it is left out, for the greater chance). The window of H-offset blocks is over when as many
// have appeared. So the package lives exactly if the number of blocks, which is binomial with n trials, is below
// H-offset:
//
//	Σ C(n,i)·(1-q)^i·q^(n-i) for i = 0 to H-offset-1
//
// In percent, at the default of 54 s (n = 9, H = 8) on the tiny chain:
//
//	share skipped     1 %    5 %   10 %   20 %
//	offset 0         0.34    7.1     23     56
//	offset 1        0.008   0.84    5.3     26
//	offset 4            0  0.000  0.006   0.31
//
// That is the chance of "can still be reported" for a package that was not; whether guarantors do it is up to them.
// offset below 0 counts as 0, a share outside 0 to 1 as the nearer end, NaN as 1.
func ReportableChance(spec *jamq.ChainSpec, offset int, skipShare float64, timeout time.Duration) float64 {
	trials := float64(0)
	if spec.SlotDuration > 0 && timeout > 0 {
		trials = float64(timeout / spec.SlotDuration)
	}
	below := spec.RecentHistory - max(0, offset)
	switch {
	case below <= 0:
		return 0
	case float64(below) > trials || skipShare >= 1 || math.IsNaN(skipShare):
		return 1
	case skipShare <= 0:
		return 0
	}
	// Logarithms, because the factors of a term can be too great or too small for a float64 where the term is not.
	chance, ways := 0.0, 0.0
	for i := range below {
		k := float64(i)
		chance += math.Exp(ways + k*math.Log1p(-skipShare) + (trials-k)*math.Log(skipShare))
		ways += math.Log((trials - k) / (k + 1))
	}
	return min(chance, 1)
}
