package anchor

import "github.com/jamq/jamq"

// Offset returns how many blocks behind the newest one the anchor of the next package should be:
// H - 2 - ⌊ahead/cores⌋, at least 1.
//
// The two blocks of slack are one for the newest block, whose state root is not public before it has a child,
// and one for the block that carries the report. ahead is the number of bundles that will be sent before this
// one, cores the number of cores in use; a negative ahead counts as 0, fewer than one core as 1.
// Offset 0 is never valid.
func Offset(spec *jamq.ChainSpec, ahead, cores int) int {
	return max(1, spec.RecentHistory-2-max(0, ahead)/max(1, cores))
}

// Stale reports whether an anchor of the given age, in blocks behind the newest, is too old to build a new
// package on: more than H - 2. The age is that of the anchor itself, never of the lookup anchor.
func Stale(spec *jamq.ChainSpec, age int) bool { return age > spec.RecentHistory-2 }

// LastReportable returns the greatest height at which a package anchored at height anchor can be reported:
// anchor + H (GP 11.33).
func LastReportable(spec *jamq.ChainSpec, anchor uint64) uint64 {
	return anchor + uint64(spec.RecentHistory)
}

// RemainingBlocks returns in how many of the blocks after head a package anchored at height anchor can still be
// reported: from H, right after its anchor, down to 0.
func RemainingBlocks(spec *jamq.ChainSpec, anchor, head uint64) int {
	last := LastReportable(spec, anchor)
	if head >= last {
		return 0
	}
	return int(min(last-head, uint64(spec.RecentHistory)))
}
