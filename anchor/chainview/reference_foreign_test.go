package chainview_test

import (
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// refForeign is a package that the host does not own. The view follows it
// because a watched package names it as prerequisite. The view sees all its
// events in later blocks. Of earlier blocks, it sees only those that it
// remembers. If these had reported the package, the outcome
// of the report may be hidden from the view, so the package is then never
// judged.
type refForeign struct {
	past map[*refBlock]knowledge // of all blocks from before
	// unjudged is true if one of these blocks had reported or accumulated it.
	unjudged bool
}

// knowledge is the part of a block that a view remembers.
type knowledge struct {
	reports     bool // the packages that it reports
	accumulated bool // the packages that it accumulates
}

// follow begins to follow a foreign package.
func (r *reference) follow(pkg jamq.PackageHash, knows func(*refBlock) knowledge) *refForeign {
	f := &refForeign{past: map[*refBlock]knowledge{}}
	for _, b := range r.blocks {
		k := knows(b)
		f.past[b] = k
		reports := slices.ContainsFunc(b.Reported, func(x jamq.Report) bool { return x.Package == pkg })
		if k.reports && reports || k.accumulated && slices.Contains(b.done, pkg) {
			f.unjudged = true
		}
	}
	return f
}

// reportOf returns the block of the chain of b that reported a package, as far
// as the view knows it.
func (r *reference) reportOf(b *refBlock, pkg jamq.PackageHash) *refBlock {
	at := b.fates[pkg].reported
	if f := r.foreign[pkg]; f != nil && at != nil {
		if k, past := f.past[at]; past && !k.reports {
			return nil
		}
	}
	if p := r.packages[pkg]; p != nil && p.settled != nil && !at.after(p.root) {
		at = r.blocks[p.settled.Reported.Hash]
		if at != nil && !b.descends(at) {
			return nil
		}
	}
	return at
}

// judgeForeign applies D5 and D6. The other rules need the context of the
// package, and its own prerequisites, which are not known.
func (r *reference) judgeForeign(b *refBlock, pkg jamq.PackageHash, f *refForeign) anchor.Reason {
	fate := b.fates[pkg]
	switch {
	case f.unjudged || fate.accumulated != nil || r.reportOf(b, pkg) == nil:
		return anchor.Alive
	case fate.available == nil && !b.onCore(pkg):
		return anchor.Unavailable
	case fate.available != nil && !b.inQueue(pkg):
		return anchor.NeverReady
	}
	return anchor.Alive
}
