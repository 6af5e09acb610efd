package jamtest

import "slices"

// parents returns the blocks that get a child in this slot: the best block or, while a
// fork is open, one or both heads. If both branches grow, the best head stays on its
// branch, and its child is imported first. A host that names the best block with each
// import therefore never names an unknown block.
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

// openFork begins a second branch at the given depth below the best block, but never
// below the finalized block.
func (c *Chain) openFork(depth int) {
	from := c.best
	for ; depth > 0 && from != c.finalized; depth-- {
		from = from.parent
	}
	if from != c.best {
		c.side, c.forkPoint = from, from
	}
}

// extend makes a new block the head of its parent's branch.
func (c *Chain) extend(b *block) {
	if b.parent == c.best {
		c.best = b
	} else {
		c.side = b
	}
}

// settleForks makes the longer branch the best one. It abandons a side branch that is
// more than FinalityLag blocks behind, or that the script gives up.
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

// finalize moves the finalized block along the best chain, and returns the
// accumulations that became final. It never passes the block at which an open fork
// begins.
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

// path returns the known blocks from the given height up to b, in ascending order.
func path(b *block, height uint64) []*block {
	var blocks []*block
	for ; b != nil && b.height >= height; b = b.parent {
		blocks = append(blocks, b)
	}
	slices.Reverse(blocks)
	return blocks
}
