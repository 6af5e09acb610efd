package live

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/jamq/jamq"
)

// block is a JAM block with its place.
type block struct {
	jamq.Block
	lane  int
	final bool
}

// chain is the end of the JAM chain, with its branches.
type chain struct {
	blocks  map[jamq.HeaderHash]*block
	timeout jamq.Slot // U
	best    jamq.HeaderHash
	final   jamq.HeaderHash
	newest  jamq.Slot
	// finalSlot is that of final, which finality that stands still may leave behind what is kept.
	finalSlot jamq.Slot
}

// add takes a block, and returns how many blocks of the best chain so far are not on the best chain any more.
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
	return 0 // they have nothing in common that is kept
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

// path returns the kept blocks from a head downwards.
func (c *chain) path(head jamq.HeaderHash) (path []*block) {
	for b := c.blocks[head]; b != nil; b = c.blocks[b.Parent] {
		path = append(path, b)
	}
	return path
}

// state returns what to show of the chain in a slot.
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

// place gives the blocks their lanes: the best chain lane 0, a branch the lowest that is free in its slots.
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

// cores returns what was on the cores along the best chain, oldest block first.
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
			leave(r.Core, b.Slot, "available") // a feed that does not show availability shows that the core is free again
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
