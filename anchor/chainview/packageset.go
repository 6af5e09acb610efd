package chainview

import (
	"encoding/binary"
	"slices"

	"github.com/jamq/jamq"
)

// packageSet is the packages that one block accumulated, in order, with a quick test for
// membership.
//
// One index over all blocks would find a package at once, but on the full chain it has 200,000
// entries and costs two misses of the cache for each package of each block. Nobody asks for most of
// them: the question arises only for reports that name prerequisites, and these are mostly found in
// the newest blocks. So each block sorts its own when it is asked first.
type packageSet struct {
	list   []jamq.PackageHash
	sorted []uint64 // the first eight bytes of each, once somebody has asked
}

// fewPackages is how many are searched one by one.
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

// accumulatedBefore reports whether a package was accumulated in one of the E blocks before n.
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
