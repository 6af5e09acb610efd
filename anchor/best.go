package anchor

import (
	"math"

	"github.com/jamq/jamq"
)

// Best returns the offset of the anchor that minimizes the expected number of
// blocks until a package is reported, for the distribution d of delays. It tries
// the offsets from 1 to the result of [Offset], which has the same parameters
// ahead and cores, and prefers the largest of several equally good ones. The time
// from report to accumulation does not depend on the offset, so the choice is
// also optimal for accumulation. If d is not valid, or no package is ever
// reported in time, Best returns the result of Offset.
//
// # Derivation
//
// All times are in blocks. p(k) is the probability that a package is reported
// in the k-th block after it was sent. F(v) is the sum of p(1) to p(v), and
// S(v) the sum of 1·p(1) to v·p(v). An anchor that is o blocks old leaves v =
// H-o blocks for the report (Gray Paper 11.33). If none of them reports the
// package, the last one proves the package dead (rule D2). A new version must
// be anchored at that block or later. A block can be an anchor only if it has
// a child, so the new version is sent one block after the proof. Let R be the
// expected time of the new version from then on. Then
//
//	T(v) = S(v) + (1-F(v))·(v+1+R)
//
// The anchor of the new version is the block of the proof, with offset 1. The
// new version could also be sent j blocks later, with an anchor that is up to
// 1+j blocks old, but this never helps. With the same anchor, the window ends at
// the same block, so a later send only shortens the window. With a newer anchor,
// the whole attempt is only delayed. So every later attempt has H-1 blocks, and
//
//	R = T(H-1) = (S(H-1) + (1-F(H-1))·H) / F(H-1)
//
// The difference between neighbors is T(v) − T(v−1) = (1−F(v)) − p(v)·R. One more
// block is useful exactly if p(v)·R, the chance of a report in it times the
// cost of a new version, exceeds 1-F(v), the chance that the package waits for
// the block in vain. If reports come quickly or never, old anchors are better.
// If reports come slowly, new anchors are better.
//
// If there are r = ⌊ahead/cores⌋ rounds ahead, the delay of the first attempt
// is r blocks longer. The rounds are over before a second attempt. T(v) becomes
// r + T(v-r): each round ahead requires an anchor that is one block newer, as
// in the table, down to offset 1.
func Best(spec *jamq.ChainSpec, d Distribution, ahead, cores int) int {
	best, least := Offset(spec, ahead, cores), math.Inf(1)
	if d.validate() != nil {
		return best
	}
	for offset := best; offset >= 1; offset-- {
		// Packages sent earlier on the same cores delay this one by a block for each round. The
		// delay takes one block from the report window of every offset, so a search for the
		// best offset only has to add the rounds to the offset.
		if t := expected(spec, d, offset+rounds(ahead, cores)); t < least {
			best, least = offset, t
		}
	}
	return best
}

// expected returns how many blocks pass on average from the first send of a package to a
// report, including the replacements that are sent when a package dies unreported. The
// formula is T(v), which the comment at [Best] derives.
func expected(spec *jamq.ChainSpec, d Distribution, offset int) float64 {
	if d.validate() != nil {
		return math.NaN()
	}
	h := max(1, spec.RecentHistory)
	reported, sum := d.within(h - 1)
	if reported == 0 {
		return math.Inf(1)
	}
	// If the first package dies unreported, it is replaced by a package that is anchored at
	// the block proving the death. The replacement can be reported in h-1 blocks.
	again := (sum + (1-reported)*float64(h)) / reported
	// The first package is anchored offset blocks behind the newest block. It can therefore be
	// reported in v blocks before its anchor expires.
	v := h - min(max(1, offset), h)
	reported, sum = d.within(v)
	return sum + (1-reported)*(float64(v)+1+again)
}
