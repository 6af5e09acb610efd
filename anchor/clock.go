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

// WallClock is the policy for hosts that see no imported blocks. If a package
// is not reported within a time-out, the host treats it as lost and builds a
// new version.
//
// This is a guess, whereas [Dead] is a proof. The life of an anchor is measured
// in blocks, and slots may be skipped. The time-out may pass while the first
// version can still be reported, and then both versions may accumulate.
// [ReportableChance] returns the probability of this. A host with this policy
// needs a service that tolerates duplicates: one that applies a rollup block
// only if it continues the stored number and state root.
//
// The policy is also slow. With the usual offset of 6, a package is dead two
// blocks after it was sent, but the clock waits for nine slots. And it has no
// time-out for accumulation, because no clock is evidence for that either: a
// report may wait in the ready queue for an epoch, which is 72 s on the tiny
// chain and one hour on the full one. A report that is not available stays on
// its core until the first block after the availability time-out.
type WallClock struct {
	// GuaranteeTimeout is the time from the last send of a package until it is
	// treated as lost. It is at least 2R-1 slots, the greatest age of a
	// guarantee: see [MaxGuaranteeAge].
	GuaranteeTimeout time.Duration
}

// marginSlots is the default's margin over the greatest age of a guarantee: one
// slot for the way of the package to the guarantors, and one for the way of the
// guarantee to the author of a block.
const marginSlots = 2

// DefaultWallClock returns the policy with [DefaultGuaranteeTimeout].
func DefaultWallClock(spec *jamq.ChainSpec) WallClock {
	return WallClock{GuaranteeTimeout: DefaultGuaranteeTimeout(spec)}
}

// DefaultGuaranteeTimeout returns 2R-1 slots, in which a guarantee stays valid
// (Gray Paper 11.26), plus two slots for the ways to the guarantors and to the
// author. This is 42 s + 12 s = 54 s on the tiny chain and 126 s on the full
// one.
func DefaultGuaranteeTimeout(spec *jamq.ChainSpec) time.Duration {
	return slots(spec, MaxGuaranteeAge(spec).Add(marginSlots))
}

// slots returns the duration of n slots, or the maximum duration if that
// overflows.
func slots(spec *jamq.ChainSpec, n jamq.Slot) time.Duration {
	if n > 0 && spec.SlotDuration > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return time.Duration(n) * spec.SlotDuration
}

// Validate returns an error if the time-out is shorter than the greatest age of
// a guarantee. Within that age even a guarantee that is signed already may
// enter a block. The error wraps [ErrInvalidClock].
func (w WallClock) Validate(spec *jamq.ChainSpec) error {
	if least := slots(spec, MaxGuaranteeAge(spec)); w.GuaranteeTimeout < least {
		return fmt.Errorf("%w: GuaranteeTimeout is %v, want at least %v", ErrInvalidClock, w.GuaranteeTimeout, least)
	}
	return nil
}

// Expired reports whether a package is treated as lost at the time now. sent is
// the time of its last send, and the package must not be known to be reported.
// The time-out begins with the last send, because each send is another chance:
// a guarantor may just have accepted the package.
func (w WallClock) Expired(sent, now time.Time) bool { return now.Sub(sent) >= w.GuaranteeTimeout }

// ReportableChance returns the probability that a package can still be reported
// after a time-out. The package was anchored offset blocks behind the newest
// block when it was sent, and was not reported since. Each slot is skipped with
// probability skipShare, independently of the others.
//
// A time of n slots contains the beginnings of n slots, so n blocks appear in
// it if none is skipped. A fraction of a slot may contain one more, which is
// ignored; this makes the result larger. The window of H-offset blocks ends
// when this many blocks have appeared. So the package is alive exactly if the
// number of blocks, which is binomial with n trials, is below H-offset:
//
//	Σ C(n,i)·(1-q)^i·q^(n-i) for i = 0 to H-offset-1
//
// In percent, for the default of 54 s (n = 9, H = 8) on the tiny chain:
//
//	share skipped     1 %    5 %   10 %   20 %
//	offset 0         0.34    7.1     23     56
//	offset 1        0.008   0.84    5.3     26
//	offset 4            0  0.000  0.006   0.31
//
// Whether a package that can still be reported is reported depends on the
// guarantors.
//
// An offset below 0 counts as 0. A skipShare outside 0 to 1 counts as the
// nearer limit, and NaN as 1.
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
	// The sum uses logarithms, because the factors of a term can overflow or
	// underflow a float64 even if the term does not.
	chance, ways := 0.0, 0.0
	for i := range below {
		k := float64(i)
		chance += math.Exp(ways + k*math.Log1p(-skipShare) + (trials-k)*math.Log(skipShare))
		ways += math.Log((trials - k) / (k + 1))
	}
	return min(chance, 1)
}
