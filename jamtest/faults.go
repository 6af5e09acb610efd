package jamtest

import (
	"encoding/binary"
	"math"

	"github.com/jamq/jamq"
)

// ForeignService is the service of all packages of other rollups, which
// Config.ForeignLoad simulates.
const ForeignService jamq.ServiceID = math.MaxUint32

// foreign remembers the newest package of other rollups, so that the next such package
// can have it as a prerequisite.
type foreign struct {
	count uint64
	last  *Package // the newest
	in    *block   // the block that reported it
}

// skips decides whether the current slot has no block.
func (c *Chain) skips() bool {
	if c.skipLeft == 0 && c.chance(c.cfg.SkipProbability) {
		c.skipLeft = c.cfg.SkipBurst[0] + c.random.IntN(c.cfg.SkipBurst[1]-c.cfg.SkipBurst[0]+1)
	}
	if c.skipLeft > 0 {
		c.skipLeft--
		return true
	}
	return false
}

// fillCores puts packages of other rollups on free cores. These packages are always
// valid: their anchor is the parent, and the prerequisite, if any, was reported
// recently on this chain.
func (c *Chain) fillCores(b *block) {
	const needing = 0.3 // share of the packages with a prerequisite
	for core := range b.active {
		if b.cores[core] != nil || !(c.chance(c.cfg.ForeignLoad) || c.slot < c.script.fillUntil) {
			continue
		}
		c.foreign.count++
		p := &Package{
			Hash:    digest("foreign", binary.LittleEndian.AppendUint64(nil, c.foreign.count)),
			Service: ForeignService,
			Gas:     c.random.Uint64N(c.cfg.Spec.MaxAccumulateGas + 1),
		}
		p.Context.Anchor, p.Context.LookupAnchor, p.Context.LookupAnchorSlot = b.parent.Hash, c.finalized.Hash, c.finalized.Slot
		if c.foreign.last != nil && b.parent.has(c.foreign.in, c.cfg.Spec.RecentHistory) && c.chance(needing) {
			p.Context.Prerequisites = []jamq.PackageHash{c.foreign.last.Hash}
		}
		c.packages[p.Hash] = p
		c.putOnCore(b, p, jamq.CoreIndex(core))
		c.foreign.last, c.foreign.in = p, b
	}
}
