package chainview

import (
	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/wire"
)

// This file finds blocks that contradict earlier blocks: a package was dead on the best chain, and
// yet a later block of the same chain has accumulated it. JAM cannot do this. One of the blocks
// that the host passed to the view must therefore lack something that the JAM block had, for
// example a report.

// grave is a package that was dead on the best chain when the host called Forget. The view
// remembers it only to notice if a later block accumulates the package nevertheless.
type grave struct {
	pkg   jamq.PackageHash
	since anchor.Point
}

// maxGraves is how many dead packages a view remembers after Forget; it drops the oldest ones
// first. A package can be accumulated at most an epoch after its report, and few packages die in an
// epoch.
const maxGraves = 256

// Contradictions returns the packages that were accumulated on a chain on which they were dead,
// since the last call. If there are any, the imported blocks lack something, and the caller must
// not trust the outcome of any package from then on.
func (v *View) Contradictions() []jamq.PackageHash {
	v.judge()
	found := v.contradictions
	v.contradictions = nil
	return found
}

// contradicts reports whether the new verdict on a package shows that the view took it for dead by
// mistake: the block at which the package died is still on the best chain, and a later block has
// accumulated the package.
func (v *View) contradicts(before, now verdict) bool {
	return before.dead != anchor.Alive && before.accumulated == nil && now.accumulated != nil &&
		v.onMain(before.deadSince) && now.accumulated.Height > before.deadSince.Height
}

// bury remembers a package that the host forgets, if the package is dead. See grave.
func (v *View) bury(t *Trace) {
	if t.verdict.dead == anchor.Alive {
		return
	}
	v.graves = append(v.graves, grave{t.pkg, t.verdict.deadSince.Point})
	v.graves = v.graves[max(0, len(v.graves)-maxGraves):]
}

// searchGraves checks whether a new block of the best chain has accumulated a package that was dead
// when the host forgot it.
func (v *View) searchGraves(n *node) {
	for _, g := range v.graves {
		if !n.accumulated.has(g.pkg) || n.Height <= g.since.Height {
			continue
		}
		if at, known := v.AtHeight(g.since.Height); !known || at.Hash == g.since.Hash {
			v.contradictions = append(v.contradictions, g.pkg)
		}
	}
}

func (v *View) appendGraves(b []byte) []byte {
	b = wire.AppendUint(b, uint64(len(v.graves)))
	for _, g := range v.graves {
		b = wire.AppendHash(b, g.pkg)
		b = wire.AppendHash(b, g.since.Hash)
		b = wire.AppendUint(b, uint64(g.since.Slot))
		b = wire.AppendUint(b, g.since.Height)
	}
	return b
}

func (v *View) readGraves(r *wire.Reader) {
	for range r.Count(64) {
		g := grave{pkg: wire.ReadHash[jamq.PackageHash](r)}
		g.since = anchor.Point{Hash: wire.ReadHash[jamq.HeaderHash](r), Slot: jamq.Slot(r.UintBelow(1<<32, "slot")), Height: r.Uint()}
		v.graves = append(v.graves, g)
	}
}
