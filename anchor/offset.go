package anchor

import "github.com/jamq/jamq"

// Offset returns how many blocks behind the newest one the anchor of the next package should be:
// H - 2 - ⌊ahead/cores⌋, at least 1.
//
// The two blocks that remain to a package at the head of the queue are the one after its submission and one more, in
// case that it misses the first. ahead is the number of bundles that will be sent before this one, cores the number of
// cores in use; each full round of the cores takes a block, so it makes the anchor a block fresher. A negative ahead
// counts as 0, fewer than one core as 1. Offset 0 is never valid: the newest block's state root is not public.
//
// [Best] chooses by observed delays instead, and gives this very table for want of observations.
func Offset(spec *jamq.ChainSpec, ahead, cores int) int {
	return max(1, spec.RecentHistory-2-rounds(ahead, cores))
}

// rounds is how many blocks pass before the cores come to a bundle.
func rounds(ahead, cores int) int { return max(0, ahead) / max(1, cores) }

// Stale reports whether an anchor of the given age, in blocks behind the newest, is too old to build a new
// package on: more than H - 2. The age is that of the anchor itself, never of the lookup anchor.
func Stale(spec *jamq.ChainSpec, age int) bool { return age > spec.RecentHistory-2 }
