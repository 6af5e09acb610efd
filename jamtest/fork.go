package jamtest

import "slices"

// parents returns the heads that get a block in this slot: the best one or,
// while a fork is open, one or both branches. The best one comes first. Both
// branches grow by one block, so the first imported block is the best, and a
// host that names the best head with each import never names an unknown one.
func (c *Chain) parents() []*block {
	if c.side == nil && c.chance(c.cfg.ForkProbability) {
		c.openFork(1 + c.random.IntN(c.cfg.MaxForkDepth))
	}
	if c.side == nil {
		return []*block{c.best}
	}
	if c.script.overtaking { // the side branch grows alone until it is the best
		return []*block{c.side}
	}
	switch c.random.IntN(3) {
	case 0:
		return []*block{c.side}
	case 1:
		return []*block{c.best, c.side}
	default:
		return []*block{c.best}
	}
}

// openFork begins a second branch depth blocks below the best one, but never
// below the finalized one.
func (c *Chain) openFork(depth int) {
	from := c.best
	for ; depth > 0 && from != c.finalized; depth-- {
		from = from.parent
	}
	if from != c.best {
		c.side, c.forkPoint = from, from
	}
}

// extend moves the head that is the new block's parent to the block.
func (c *Chain) extend(b *block) {
	if b.parent == c.best {
		c.best = b
	} else {
		c.side = b
	}
}

// settleForks makes the longer branch the best one, and abandons a branch that
// is too far behind.
func (c *Chain) settleForks() {
	if c.side == nil {
		return
	}
	if c.side.height > c.best.height {
		c.best, c.side = c.side, c.best
		c.script.overtaking = false
	}
	abandoned := c.script.abandoning && !c.script.overtaking
	if abandoned || c.side.height+uint64(c.cfg.FinalityLag) < c.best.height {
		c.side, c.forkPoint, c.script.abandoning = nil, nil, false
	}
}

// finalize moves finality along the best chain, but never past an open fork,
// and returns the accumulations that became final.
func (c *Chain) finalize() []Accumulation {
	if c.finalityStopped || c.slot < c.stallUntil {
		return nil
	}
	if c.chance(c.cfg.FinalityStallProbability) {
		c.stallUntil = c.slot.Add(c.cfg.FinalityStall)
		return nil
	}
	height := c.best.height - min(c.best.height, uint64(c.cfg.FinalityLag))
	if c.forkPoint != nil {
		height = min(height, c.forkPoint.height)
	}
	if height <= c.finalized.height {
		return nil
	}
	var final []Accumulation
	target := c.best.within(height)
	for _, b := range path(target, c.finalized.height+1) {
		final = c.appendAccumulated(final, b)
	}
	c.finalized = target
	c.forget()
	return final
}

// path returns the retained blocks from a height up to b, ascending.
func path(b *block, height uint64) []*block {
	var blocks []*block
	for ; b != nil && b.height >= height; b = b.parent {
		blocks = append(blocks, b)
	}
	slices.Reverse(blocks)
	return blocks
}
