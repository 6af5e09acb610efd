package chainview

import (
	"encoding/binary"
	"slices"

	"github.com/jamq/jamq"
)

// packageSet is the list of packages that one block has accumulated, in order, with a fast test
// whether a package is in it.
//
// Each block has its own set. A single index over all blocks would find a package at once, but on
// the full chain it would have 200,000 entries and cost two cache misses for each package of each
// block. The test is needed only for reports that name prerequisites, and these are mostly in the
// newest blocks. A block therefore sorts its packages only when the first test comes.
type packageSet struct {
	list   []jamq.PackageHash
	sorted []uint64 // first eight bytes of each; lazy
}

// fewPackages is the length up to which a list is searched without sorting.
const fewPackages = 16

func (s *packageSet) has(pkg jamq.PackageHash) bool {
	if len(s.list) > fewPackages {
		if s.sorted == nil {
			s.sorted = make([]uint64, len(s.list))
			for i := range s.list {
				s.sorted[i] = binary.BigEndian.Uint64(s.list[i][:])
			}
			slices.Sort(s.sorted)
		}
		if _, found := slices.BinarySearch(s.sorted, binary.BigEndian.Uint64(pkg[:])); !found {
			return false
		}
	}
	return slices.Contains(s.list, pkg)
}

// accumulatedBefore reports whether one of the E blocks before block n has accumulated a package,
// so that the package counts as accumulated for reports that need it.
func (v *View) accumulatedBefore(n *node, pkg jamq.PackageHash) bool {
	left := int(v.spec.EpochLength)
	p := n.parent
	for ; left > 0 && !v.onMain(p); left-- {
		if p.accumulated.has(pkg) {
			return true
		}
		p = p.parent
	}
	for i := int(p.Height - v.main[0].Height); left > 0 && i >= 0; left, i = left-1, i-1 {
		if v.main[i].accumulated.has(pkg) {
			return true
		}
	}
	return false
}
