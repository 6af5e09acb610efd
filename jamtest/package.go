package jamtest

import (
	"errors"
	"slices"

	"github.com/jamq/jamq"
)

var (
	// ErrRefused is wrapped when a guarantor would refuse a package at once: a core that does not exist, too many
	// prerequisites, or a bundle that is too large.
	ErrRefused = errors.New("jamtest: package refused")
)

// Package is a work package as the simulated chain needs it.
type Package struct {
	// Hash is the hash of its bytes.
	Hash jamq.PackageHash
	// Context is the refine context in them.
	Context jamq.RefineContext
	// Payload is what the rollup's service gets when the package is accumulated. The chain does not look at it.
	Payload []byte
}

// offer is a package in the hands of a guarantor.
type offer struct {
	pkg  *Package
	core jamq.CoreIndex
	from jamq.Slot // the first slot in which it may be reported
}

// report is a package on a core.
type report struct {
	pkg         *Package
	reportedAt  jamq.Slot
	availableAt jamq.Slot // jamq.MaxSlot: never
}

// waiting is an available report in the ready queue.
type waiting struct {
	pkg   *Package
	since jamq.Slot
}

// block is a block with the state after it. State is shared with the parent where it is equal, and never changed.
type block struct {
	jamq.Block
	height uint64
	parent *block
	cores  []*report
	ready  []waiting
}

// reports tells whether the block reports a package.
func (b *block) reports(h jamq.PackageHash) bool {
	return slices.ContainsFunc(b.Reported, func(r jamq.Report) bool { return r.Package == h })
}

// recent calls f for b and the n-1 blocks before it, newest first, until f returns false.
func (b *block) recent(n int, f func(*block) bool) {
	for ; b != nil && n > 0; b, n = b.parent, n-1 {
		if !f(b) {
			return
		}
	}
}

// find returns the newest of b and the n-1 blocks before it for which f holds, or nil.
func (b *block) find(n int, f func(*block) bool) (found *block) {
	b.recent(n, func(x *block) bool {
		if f(x) {
			found = x
		}
		return found == nil
	})
	return found
}
