package chainview

import (
	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/wire"
)

// This file detects contradictions between imported blocks: a package was dead on the
// best chain, and yet a later block of the same chain accumulates it. The rules of JAM
// exclude this. An imported block must therefore be incomplete, for example because the
// host left out a report.

// grave is a package that was dead on the best chain when the host called Forget. The
// view remembers it only to detect that a later block of the same chain accumulates it,
// which is a contradiction.
type grave struct {
	pkg   jamq.PackageHash
	since anchor.Point
}

// maxGraves is how many dead packages that the host has forgotten a view remembers, so
// that it can report if the chain accumulates one of them. The oldest ones are dropped
// first, because a package cannot be accumulated later than an epoch after its report.
const maxGraves = 256

// Contradictions returns the packages that a chain has accumulated although they
// were dead on it. The list contains only the contradictions that the view has
// found since the last call. If the list is not empty, the imported blocks are
// incomplete, and the caller must not trust the outcome of any package from then
// on.
func (v *View) Contradictions() []jamq.PackageHash {
	v.judge()
	found := v.contradictions
	v.contradictions = nil
	return found
}

// contradicts reports whether a new verdict disproves an earlier one of "dead".
func (v *View) contradicts(before, now verdict) bool {
	// A block of the best chain made the package dead, that block is still on the chain, and a
	// later block has accumulated the package.
	return before.dead != anchor.Alive && before.accumulated == nil && now.accumulated != nil &&
		v.onMain(before.deadSince) && now.accumulated.Height > before.deadSince.Height
}

// bury remembers a dead package when the host forgets it.
func (v *View) bury(t *Trace) {
	if t.verdict.dead == anchor.Alive {
		return
	}
	// From now on, searchGraves compares each new block with this list. If a block accumulates
	// the package, the death was a mistake and becomes a contradiction.
	v.graves = append(v.graves, grave{t.pkg, t.verdict.deadSince.Point})
	v.graves = v.graves[max(0, len(v.graves)-maxGraves):]
}

// searchGraves adds a contradiction for each forgotten dead package that n accumulates.
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
