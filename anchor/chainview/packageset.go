package chainview

import (
	"encoding/binary"
	"slices"

	"github.com/jamq/jamq"
)

// packageSet contains the packages that one block has accumulated, and answers whether
// a package is among them. Each block has its own set, because a single index would
// have 200,000 entries on the full chain, and each package would cost two cache misses.
// The question is rare: only reports with prerequisites need it. A block therefore
// sorts its packages when the question comes up for the first time.
type packageSet struct {
	list   []jamq.PackageHash
	sorted []uint64 // first 8 bytes of each package; nil until the first test
}

// fewPackages is the maximum length of a list that is searched without sorting it.
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

// accumulatedBefore reports whether one of the E blocks before n has accumulated a
// package. Reports in block n with this prerequisite then need not wait for it.
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
