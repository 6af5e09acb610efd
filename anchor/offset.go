package anchor

import "github.com/jamq/jamq"

// Offset returns the recommended age of the next package's anchor, as a number of
// blocks before the newest block: H − 2 − ⌊ahead/cores⌋, but at least 1. Offset 0
// is never valid, because the state root of the newest block is not public yet.
//
// ahead is the number of bundles that will be sent before this one, and cores is
// the number of cores in use. A package that is sent immediately has two blocks for
// its report: the one after the send, and a second if it misses the first. Each
// full round of bundles on the cores takes one block, so it requires an anchor that
// is one block newer. A negative ahead counts as 0, and fewer than one core as 1.
//
// [Best] chooses by observed delays. Without observations it returns the same
// offset.
func Offset(spec *jamq.ChainSpec, ahead, cores int) int {
	return max(1, spec.RecentHistory-2-rounds(ahead, cores))
}

// rounds returns how many blocks a bundle waits for a free core, if ahead other bundles
// must be reported first and the cores take one bundle each in every block.
func rounds(ahead, cores int) int { return max(0, ahead) / max(1, cores) }
