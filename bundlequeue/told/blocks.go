package told

import (
	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// blocks implements bundlequeue.Blocks for a host that sees no blocks. It
// accepts every anchor.
type blocks struct{}

// Blocks implements bundlequeue.Evidence.
func (e *Evidence) Blocks() bundlequeue.Blocks { return blocks{} }

// Best implements bundlequeue.Blocks.
func (blocks) Best() anchor.Point { return anchor.Point{} }

// Finalized implements bundlequeue.Blocks.
func (blocks) Finalized() anchor.Point { return anchor.Point{} }

// Anchor implements bundlequeue.Blocks. It returns no block; the host finds it
// by its offset.
func (blocks) Anchor(_ anchor.Point, offset int) (anchor.Point, int, bool) {
	return anchor.Point{}, offset, true
}

// Locate implements bundlequeue.Blocks.
func (blocks) Locate(jamq.HeaderHash) (anchor.Point, bool) { return anchor.Point{}, true }

// Knows implements bundlequeue.Blocks.
func (blocks) Knows(jamq.HeaderHash) bool { return true }

// Follow implements bundlequeue.Blocks. A package names its predecessor until
// the predecessor is accumulated.
func (blocks) Follow(f bundlequeue.Fate, _ int) bundlequeue.Following {
	return bundlequeue.Following{Possible: true, Name: f.Status().Accumulated.IsZero()}
}

// CoreFree implements bundlequeue.Blocks.
func (blocks) CoreFree(jamq.CoreIndex) bool { return true }
