package chainview_test

import (
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// gap grows a branch that the view does not see, and lets the view continue on
// the state after its last block. If a package is undecided there, the branch
// grows and the view tries again. In the end the missing blocks may be found.
func (p *play) gap() {
	for _, own := range p.ref.packages {
		if own.forgotten {
			return // see TestContinueForgotten
		}
	}
	p.compare() // so that the outcomes from before the gap are those of the best chain
	from := p.best
	if open := p.open(); p.chance(30) {
		from = open[p.r.IntN(len(open))]
	}
	seen := map[*refBlock]bool{}
	for _, b := range p.ref.blocks {
		seen[b] = true
	}
	var hidden []jamq.Block
	root := from
	for range 3 * p.spec.RecentHistory {
		b := p.makeBlock(root)
		hidden = append(hidden, b)
		root = p.ref.add(b)
		if p.chance(60) && p.continues(root, seen) {
			return
		}
	}
	for _, b := range hidden {
		require.NoError(p, p.view.ImportBest(&b, b.Hash))
		p.imported = append(p.imported, p.ref.blocks[b.Hash])
		p.setBest(p.ref.blocks[b.Hash])
	}
}

// continues lets the view continue on a root, and reports whether it does. seen
// are the blocks from before the gap.
func (p *play) continues(root *refBlock, seen map[*refBlock]bool) bool {
	state := p.ref.state(root, p.ref.first(), p.ref.first())
	var accumulated []jamq.PackageHash
	want := error(nil)
	for _, c := range p.packages {
		pkg := c.hash
		own := p.ref.packages[pkg] != nil
		if root.fates[pkg].accumulated != nil && (own || p.ref.foreign[pkg] != nil && p.chance(50)) {
			accumulated = append(accumulated, pkg)
		}
		if own && p.ref.undecided(root, p.finalized, pkg) {
			want = chainview.ErrUndecided
		}
	}
	if len(state.Recent) < p.spec.RecentHistory || len(state.Accumulated) < int(p.spec.EpochLength) {
		want = chainview.ErrConflict // the chain is too young for a whole state
	}
	snapshot := p.view.AppendSnapshot(nil)
	err := p.view.Continue(jamq.Block{Hash: root.Hash, Slot: root.Slot}, state, accumulated)
	if want != nil {
		require.ErrorIs(p, err, want)
		require.Equal(p, snapshot, p.view.AppendSnapshot(nil), "a refused root changes nothing")
		p.undecided++
		return false
	}
	require.NoError(p, err)
	p.gaps++
	p.settleAt(root, seen)
	return true
}

// settleAt brings the reference in line with a view that continued on root.
func (p *play) settleAt(root *refBlock, seen map[*refBlock]bool) {
	keeps := map[*refBlock]bool{}
	recent, highest := root.last(p.spec.RecentHistory), uint64(0)
	for _, b := range recent {
		keeps[b] = seen[b]
	}
	for b := range seen {
		keeps[b] = keeps[b] || p.finalized.descends(b)
		p.lost[b.Hash] = !keeps[b]
	}
	for _, b := range p.imported {
		if b.descends(p.finalized) {
			highest = max(highest, b.point.Height)
		}
	}
	dead := map[jamq.PackageHash]anchor.Reason{}
	for pkg := range p.ref.foreign {
		if reason, since := p.ref.death(p.best, pkg); reason != anchor.Alive && keeps[p.ref.blocks[since.Hash]] {
			dead[pkg] = reason
		}
	}
	p.renumber(root, highest, seen)
	kept := func(at anchor.Point) anchor.Point {
		b := p.ref.blocks[at.Hash]
		if !keeps[b] {
			return anchor.Point{}
		}
		return b.point
	}
	for pkg, told := range p.told {
		own := p.ref.packages[pkg]
		if own.settled == nil {
			p.settled++
			p.ref.settle(root, pkg, told, kept)
		} else {
			s := p.ref.status(root, pkg) // includes events after the old root
			s.Reported, s.Available = kept(s.Reported), kept(s.Available)
			own.settled, own.root = renumbered(s, kept), root
		}
		p.told[pkg] = *renumbered(told, kept)
	}
	p.best, p.finalized, p.judged = root, root, root
	p.oldestNamed, p.oldestDone = oldest(root, p.spec.RecentHistory), oldest(root, max(p.spec.RecentHistory, int(p.spec.EpochLength)))
	for _, b := range recent {
		if !seen[b] {
			p.imported = append(p.imported, b)
		}
	}
	p.followAgain(dead, keeps)
}

// renumbered returns a status with the heights that blocks have now.
func renumbered(s chainview.Status, kept func(anchor.Point) anchor.Point) *chainview.Status {
	for _, at := range []*anchor.Point{&s.Reported, &s.Available, &s.Accumulated, &s.DeadSince} {
		if now := kept(*at); !now.IsZero() {
			*at = now
		}
	}
	return &s
}

// oldest returns the oldest of the last n blocks.
func oldest(head *refBlock, n int) *refBlock {
	last := head.last(n)
	return last[len(last)-1]
}

// renumber gives the blocks of recent history at the new root the heights that
// the view gives them, beyond all that it held. The blocks of the gap that are
// older have no heights there.
func (p *play) renumber(root *refBlock, highest uint64, seen map[*refBlock]bool) {
	at := p.view.Best().Height
	require.Greater(p, at, highest+2*uint64(p.spec.RecentHistory)-1, "whatever was unreported has expired")
	recent := uint64(0)
	for b := root; b != nil; b = b.parent {
		switch {
		case recent < uint64(p.spec.RecentHistory):
			b.point.Height = at - recent
			recent++
		case !seen[b]:
			b.point.Height = highest + 1
		}
	}
	clear(p.ref.judged)
}

// followAgain lets the reference follow foreign packages from a new root on. dead
// are those whose death is known there.
func (p *play) followAgain(dead map[jamq.PackageHash]anchor.Reason, keeps map[*refBlock]bool) {
	for pkg, before := range p.ref.foreign {
		f := p.ref.follow(pkg, func(b *refBlock) knowledge {
			k := p.knows(b)
			old, past := before.past[b]
			if !past {
				old = knowledge{reports: true, accumulated: true}
			}
			k.reports = k.reports || keeps[b] && old.reports
			k.accumulated = k.accumulated || keeps[b] && old.accumulated
			return k
		})
		f.unjudged = f.unjudged || before.unjudged
		if f.dead = dead[pkg]; before.dead != anchor.Alive {
			f.dead = before.dead
		}
		p.ref.foreign[pkg] = f
	}
	clear(p.ref.judged)
}
