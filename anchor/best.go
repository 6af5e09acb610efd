package anchor

import (
	"math"

	"github.com/jamq/jamq"
)

// Best returns the offset that minimizes the expected time until a package is reported, for the given distribution of
// delays, among those from 1 to [Offset]: it makes the anchor fresher than the table does where that pays. ahead and
// cores are those of Offset. The time from report to accumulation is the same for all offsets, so the choice is also the
// best for accumulation. Among equals it takes the oldest anchor. If nothing is ever reported in time, or d is not
// valid, it is Offset itself.
//
// # Derivation
//
// All times are in blocks. p(k) is the chance that a package is reported in the k-th block after it was sent, F(v) the
// sum of p(1) to p(v), S(v) that of 1·p(1) to v·p(v). An anchor o blocks old leaves v = H-o blocks to be reported in
// (GP 11.33); the v-th of them proves the package dead if it does not report it (D2). A new version must be anchored at
// that block or later, and the block needs a child first: it is sent one block after the proof. Let R be the expected
// time of a new version from there; then
//
//	T(v) = S(v) + (1-F(v))·(v+1+R)
//
// The new version's anchor is the block of proof, with offset 1. It could be sent j blocks later with an anchor up to
// 1+j blocks old. That never helps: the same anchor ends the same window, so waiting only takes blocks from it; and an
// anchor fresher than that only moves the whole attempt to later. So every later attempt has H-1 blocks, and
//
//	R = T(H-1) = (S(H-1) + (1-F(H-1))·H) / F(H-1)
//
// Subtracting neighbours, T(v) - T(v-1) = (1-F(v)) - p(v)·R: one more block is worth having exactly if the chance that
// the report comes in it, times the time that a new version would take, exceeds the chance that the block is one
// more to wait in vain. Reports that come quickly or never ask for old anchors, slow ones for fresh anchors.
//
// With r = ⌊ahead/cores⌋ rounds ahead each delay is r blocks longer, for the first attempt only: by the time of a second
// the rounds are over. T(v) becomes r + T(v-r): each round ahead asks for an anchor that is one block fresher, as in
// the table, down to offset 1.
func Best(spec *jamq.ChainSpec, d Distribution, ahead, cores int) int {
	best, least := Offset(spec, ahead, cores), math.Inf(1)
	if d.Validate() != nil {
		return best
	}
	for offset := best; offset >= 1; offset-- {
		// Rounds ahead take as many blocks from the window, and add the same to every expectation.
		if t := Expected(spec, d, offset+rounds(ahead, cores)); t < least {
			best, least = offset, t
		}
	}
	return best
}

// Expected returns the expected number of blocks from sending a package to a report of it or of one of the new versions
// that follow, if the first is anchored offset blocks behind the newest and each later one at the proof that the one
// before is dead: T(H-offset) of the derivation at [Best]. It is infinite if no anchor gives a chance, and NaN if d
// is not valid. An offset is brought into the range from 1 to H.
//
// On a chain that skips a share q of its slots, a block takes 1/(1-q) slots on average.
func Expected(spec *jamq.ChainSpec, d Distribution, offset int) float64 {
	if d.Validate() != nil {
		return math.NaN()
	}
	h := max(1, spec.RecentHistory)
	reported, sum := d.within(h - 1)
	if reported == 0 {
		return math.Inf(1)
	}
	again := (sum + (1-reported)*float64(h)) / reported
	v := h - min(max(1, offset), h)
	reported, sum = d.within(v)
	return sum + (1-reported)*(float64(v)+1+again)
}
