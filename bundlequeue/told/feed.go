package told

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// Feed makes artificial JAM blocks for a queue whose host sees no blocks. It
// makes a block in each [Config.BlockTime], which contains the events that the
// host has reported since the block before. A Feed is deterministic, because
// the caller passes the time. It is not safe for concurrent use. Create it with
// [NewFeed].
type Feed struct {
	spec jamq.ChainSpec
	cfg  Config
	state
}

// state is the part of a feed that snapshots contain.
type state struct {
	Next     time.Time    // when the next block is due; zero before the first one
	Final    jamq.Block   // the newest final block, without its reports
	Blocks   []jamq.Block // the blocks after Final, oldest first
	Packages []told       // the packages that were sent, in the order of their first sends
}

// told is a package that the host has sent, together with everything that the host has
// since reported about it. The feed has no real JAM blocks to learn this from.
type told struct {
	Report                jamq.Report       // for the block in which the package is guaranteed
	State                 bundlequeue.State // the newest state that the host has reported, or zero
	Lost                  bool              // the host has given it up
	Reported, Accumulated jamq.Slot         // slots of the blocks with these events, or zero
}

// NewFeed returns the feed of a new queue. The error wraps [ErrInvalidConfig].
func NewFeed(spec jamq.ChainSpec, cfg Config) (*Feed, error) {
	if err := cfg.Validate(&spec); err != nil {
		return nil, err
	}
	return &Feed{spec: spec, cfg: cfg, state: state{Final: jamq.Block{Hash: hashOf(1), Slot: 1}}}, nil
}

// hashOf returns the hash of the feed's block in a slot, which slotOf can read.
func hashOf(slot jamq.Slot) (h jamq.HeaderHash) {
	copy(h[:], "told")
	binary.BigEndian.PutUint32(h[4:], uint32(slot))
	return h
}

// Root returns the block with which a queue begins: see bundlequeue.New.
func (f *Feed) Root() jamq.Block { return f.Final }

// Sent makes the feed follow a package. It must be called when the package is
// sent, because the feed ignores events about packages that it does not follow.
// report is the report that the feed puts into a block when the package is
// guaranteed.
func (f *Feed) Sent(report jamq.Report) {
	if f.find(report.Package) == nil {
		f.Packages = append(f.Packages, told{Report: report})
	}
}

// find returns the package with this hash, or nil.
func (f *Feed) find(pkg jamq.PackageHash) *told {
	i := slices.IndexFunc(f.Packages, func(p told) bool { return p.Report.Package == pkg })
	if i < 0 {
		return nil
	}
	return &f.Packages[i]
}

// Tell records that the host has seen a package guaranteed, accumulated or
// finalized, so that the next blocks of the feed contain this event. Tell
// ignores unknown packages. It also ignores an event if a later stage is
// already recorded, for example a guarantee after the accumulation.
func (f *Feed) Tell(pkg jamq.PackageHash, state bundlequeue.State) {
	if p := f.find(pkg); p != nil {
		p.State = max(p.State, state)
	}
}

// GiveUp records that the host considers a package lost. If the newest block
// contains the report of the package, the next block removes the package from its
// core. Otherwise GiveUp changes nothing.
func (f *Feed) GiveUp(pkg jamq.PackageHash) {
	if p := f.find(pkg); p != nil {
		p.Lost = true
	}
}

// Advance makes the blocks that are due and returns them as events for the
// queue. If very many blocks are due, for example after a night, Advance skips
// the blocks that are older than the longest life of a package plus
// Config.Finality.
func (f *Feed) Advance(now time.Time) (events []bundlequeue.Event) {
	most := f.cfg.Finality + f.spec.RecentHistory + int(f.spec.EpochLength+f.spec.AvailabilityTimeout)
	if first, back := f.Next.IsZero(), f.Next.Sub(now) > f.cfg.BlockTime; first || back {
		f.Next = now
	}
	if oldest := now.Add(-time.Duration(most) * f.cfg.BlockTime); f.Next.Before(oldest) {
		f.Next = oldest
	}
	for ; !f.Next.After(now); f.Next = f.Next.Add(f.cfg.BlockTime) {
		block := f.extend()
		events = append(events, bundlequeue.Imported{Block: block, Best: block.Hash})
		if final, some := f.finalize(); some {
			events = append(events, bundlequeue.FinalizedBlock{Hash: final.Hash})
		}
	}
	return events
}

// extend makes the next block.
func (f *Feed) extend() jamq.Block {
	parent := f.Final
	if n := len(f.Blocks); n > 0 {
		parent = f.Blocks[n-1]
	}
	b := jamq.Block{Hash: hashOf(parent.Slot + 1), Parent: parent.Hash, Slot: parent.Slot + 1, AccumulatedKnown: true}
	used := make(map[jamq.CoreIndex]bool)
	for i := range f.Packages {
		p := &f.Packages[i]
		switch {
		case p.Reported == parent.Slot && p.Lost && p.State < bundlequeue.Accumulated:
			b.Condemned = append(b.Condemned, p.Report.Hash)
		case p.Reported == parent.Slot: // it is available in the block after its report
			b.Available = append(b.Available, p.Report.Core)
		}
		switch {
		case p.State >= bundlequeue.Guaranteed && p.Reported == 0 && !used[p.Report.Core]:
			used[p.Report.Core] = true
			p.Reported = b.Slot
			b.Reported = append(b.Reported, p.Report)
		case p.State >= bundlequeue.Accumulated && p.Reported != 0 && p.Accumulated == 0:
			p.Accumulated = b.Slot
			b.Accumulated = append(b.Accumulated, p.Report.Package)
		}
	}
	slices.Sort(b.Available)
	f.Blocks = append(f.Blocks, b)
	return b
}

// finalize makes a newer block final and returns it, or returns false.
func (f *Feed) finalize() (final jamq.Block, moved bool) {
	count := max(0, len(f.Blocks)-f.cfg.Finality)
	for _, p := range f.Packages {
		// Usually a block of the feed becomes final after Config.Finality blocks. It becomes
		// final earlier if it has accumulated a package that the host has reported as final.
		if p.State == bundlequeue.Finalized && p.Accumulated != 0 {
			count = max(count, int(p.Accumulated)-int(f.Final.Slot))
		}
	}
	if count == 0 {
		return final, false
	}
	f.Final = jamq.Block{Hash: f.Blocks[count-1].Hash, Slot: f.Blocks[count-1].Slot}
	f.Blocks = slices.Clone(f.Blocks[count:])
	f.forget()
	return f.Final, true
}

// forget removes the packages that no event can change any more.
func (f *Feed) forget() {
	f.Packages = slices.DeleteFunc(f.Packages, func(p told) bool {
		if p.Accumulated != 0 {
			return p.Accumulated <= f.Final.Slot
		}
		// A package that is not accumulated is kept until Config.Remember blocks after its last
		// chance, so that the queue notices if the host reports later that JAM has accumulated
		// it.
		return p.dies(&f.spec)+jamq.Slot(f.cfg.Remember) <= f.Final.Slot
	})
}

// dies returns the last slot in which a package can make progress.
func (p *told) dies(spec *jamq.ChainSpec) jamq.Slot {
	if p.Reported != 0 {
		return p.Reported + spec.AvailabilityTimeout + spec.EpochLength
	}
	// A guarantor may report the package while its anchor is in recent history.
	return slotOf(p.Report.Anchor) + jamq.Slot(spec.RecentHistory)
}

// slotOf is the inverse of hashOf.
func slotOf(h jamq.HeaderHash) jamq.Slot { return jamq.Slot(binary.BigEndian.Uint32(h[4:])) }
