package jamtest

import (
	"slices"

	"github.com/jamq/jamq"
)

// forget removes blocks and packages that no rule or inspection can need any more.
func (c *Chain) forget() {
	// A new branch begins at the finalized block or later, so its first block is higher.
	c.offers = slices.DeleteFunc(c.offers, func(o offer) bool { return o.last <= c.finalized.height })

	// The rules need lookup anchors from up to L slots ago, which are at most L blocks. A
	// package is reported up to H blocks after its anchor. It then stays on a core for
	// about U slots and in the ready queue for E, and its hash is remembered for another E.
	spec := &c.cfg.Spec
	life := spec.RecentHistory + int(spec.AvailabilityTimeout) + 2*int(spec.EpochLength)
	keep := uint64(max(c.cfg.Retention, life, int(spec.MaxLookupAnchorAge)))
	if c.finalized.height < c.oldest+2*keep {
		return // now and then is enough
	}
	c.oldest = c.finalized.height - keep
	dropped := func(b *block) bool { return b.height < c.oldest }
	for h, b := range c.blocks {
		if dropped(b) {
			delete(c.blocks, h)
		} else if b.height == c.oldest {
			b.parent = nil
		}
	}
	for _, index := range []map[jamq.PackageHash][]*block{c.reportedIn, c.accumulatedIn} {
		for h, blocks := range index {
			if blocks = slices.DeleteFunc(blocks, dropped); len(blocks) == 0 {
				delete(index, h)
			} else {
				index[h] = blocks
			}
		}
	}
	for h, p := range c.packages {
		if c.blocks[p.Context.Anchor] == nil && c.reportedIn[h] == nil && c.accumulatedIn[h] == nil {
			delete(c.packages, h)
			delete(c.killed, h)
		}
	}
	for d := range c.seen {
		if c.packages[d.pkg] == nil {
			delete(c.seen, d)
		}
	}
}
