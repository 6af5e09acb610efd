package live

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/jamq/jamq"
)

// block is a JAM block with its lane in the drawing.
type block struct {
	jamq.Block
	lane  int
	final bool
}

// chain holds the newest blocks of the JAM chain, including its branches.
type chain struct {
	blocks  map[jamq.HeaderHash]*block
	timeout jamq.Slot // U
	best    jamq.HeaderHash
	final   jamq.HeaderHash
	newest  jamq.Slot
	// finalSlot is the slot of final. If finality stands still, final may be
	// older than all blocks that are kept.
	finalSlot jamq.Slot
}

// add records a block and the new best block. It returns the number of blocks
// that the best chain lost.
func (c *chain) add(b jamq.Block, best jamq.HeaderHash) (replaced int) {
	c.blocks[b.Hash] = &block{Block: b}
	c.newest = max(c.newest, b.Slot)
	for hash, old := range c.blocks {
		if old.Slot.Add(shownSlots+1) < c.newest {
			delete(c.blocks, hash)
		}
	}
	if best == c.best || c.blocks[best] == nil {
		return 0
	}
	before := c.best
	c.best = best
	on := make(map[jamq.HeaderHash]bool)
	for _, b := range c.path(best) {
		on[b.Hash] = true
	}
	for _, b := range c.path(before) {
		if on[b.Hash] {
			return replaced
		}
		replaced++
	}
	return 0 // no common ancestor is kept
}

func (c *chain) finalize(hash jamq.HeaderHash) {
	c.final = hash
	if b := c.blocks[hash]; b != nil {
		c.finalSlot = b.Slot
	}
	for _, b := range c.path(hash) {
		b.final = true
	}
}

// path returns the recorded blocks from head to the oldest ancestor.
func (c *chain) path(head jamq.HeaderHash) (path []*block) {
	for b := c.blocks[head]; b != nil; b = c.blocks[b.Parent] {
		path = append(path, b)
	}
	return path
}

// state returns the part of the chain to show in a slot.
func (c *chain) state(slot jamq.Slot, named map[jamq.PackageHash]name) Chain {
	s := Chain{Blocks: []Block{}, Slot: slot, First: slot - min(slot, shownSlots-1)}
	best := c.path(c.best)
	c.place(best)
	for _, b := range c.blocks {
		if b.Slot < s.First {
			continue
		}
		s.Blocks = append(s.Blocks, Block{
			ID: b.Hash.Short(), Parent: b.Parent.Short(), Slot: b.Slot, Lane: b.lane, Final: b.final,
			Reports: len(b.Reported), Accumulated: len(b.Accumulated), Verdicts: len(b.Condemned),
		})
	}
	slices.SortFunc(s.Blocks, func(a, b Block) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Lane, b.Lane)) })
	if b := c.blocks[c.best]; b != nil {
		s.Best = b.Slot
	}
	s.Final = c.finalSlot
	slices.Reverse(best)
	s.Cores = c.cores(best, s.First, named)
	return s
}

// place assigns the lanes. The best chain has lane 0; a branch gets the lowest
// lane that is free in its slots.
func (c *chain) place(best []*block) {
	onBest := make(map[*block]bool, len(best))
	for _, b := range best {
		b.lane = 0
		onBest[b] = true
	}
	var beside []*block
	for _, b := range c.blocks {
		if !onBest[b] {
			beside = append(beside, b)
		}
	}
	slices.SortFunc(beside, func(a, b *block) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), bytes.Compare(a.Hash[:], b.Hash[:])) })
	last := make(map[int]*block) // the newest block of each lane
	for _, b := range beside {
		b.lane = 1
		if parent := c.blocks[b.Parent]; parent != nil && parent.lane > 0 && last[parent.lane] == parent {
			b.lane = parent.lane
		}
		for last[b.lane] != nil && last[b.lane].Slot >= b.Slot {
			b.lane++
		}
		last[b.lane] = b
	}
}

// cores returns the reports on the cores along the best chain, oldest block
// first.
func (c *chain) cores(best []*block, first jamq.Slot, named map[jamq.PackageHash]name) []Core {
	onCore := make(map[jamq.CoreIndex][]Report)
	hashes := make(map[jamq.CoreIndex]jamq.Report)
	leave := func(core jamq.CoreIndex, slot jamq.Slot, how string) {
		if reports := onCore[core]; len(reports) > 0 && reports[len(reports)-1].To == 0 {
			reports[len(reports)-1].To, reports[len(reports)-1].End = slot, how
		}
	}
	for _, b := range best {
		for core, r := range hashes {
			if slices.Contains(b.Condemned, r.Hash) {
				leave(core, b.Slot, "verdict")
			}
		}
		for _, core := range b.Available {
			leave(core, b.Slot, "available")
		}
		for core, reports := range onCore {
			if last := reports[len(reports)-1]; b.Slot >= last.From.Add(c.timeout) {
				leave(core, b.Slot, "timeout")
			}
		}
		for _, r := range b.Reported {
			// The new report proves that the core was free, even if the feed does
			// not contain availability.
			leave(r.Core, b.Slot, "available")
			hashes[r.Core] = r
			n := named[r.Package]
			onCore[r.Core] = append(onCore[r.Core], Report{From: b.Slot, Number: n.number, Version: n.version})
		}
	}
	cores := make([]Core, 0, len(onCore))
	for core, reports := range onCore {
		reports = slices.DeleteFunc(reports, func(r Report) bool { return r.To != 0 && r.To < first })
		if len(reports) > 0 {
			cores = append(cores, Core{core, reports})
		}
	}
	slices.SortFunc(cores, func(a, b Core) int { return cmp.Compare(a.Core, b.Core) })
	return cores[:min(len(cores), shownCores)]
}
