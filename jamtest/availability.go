package jamtest

import (
	"slices"

	"github.com/jamq/jamq"
)

// dispute lets verdicts remove reports from cores that are still occupied after the
// parent block (Gray Paper 10.15). A verdict comes by chance, from the script, or
// because Kill was called for the package.
func (c *Chain) dispute(b *block) {
	for i, r := range b.cores {
		if r != nil && (c.chance(c.cfg.VerdictProbability) || c.condemned(jamq.CoreIndex(i)) || c.killed[r.pkg.Hash]) {
			b.Condemned = append(b.Condemned, r.hash)
			b.cleared = append(b.cleared, r.pkg.Hash)
			b.cores[i] = nil
		}
	}
}

// freeCores removes reports from the block's cores (Gray Paper 11.16, 11.17), and
// returns those that became available, in the order of cores. A report leaves its core
// because:
//
//   - it became available, which counts even in the block of its time-out;
//   - its time-out U has passed; or
//   - the number of validators changes, which clears all cores (Gray Paper 0.8.0,
//     11.18).
func (c *Chain) freeCores(b *block) (available []*report) {
	for i, r := range b.cores {
		switch {
		case r == nil:
		case b.Slot >= r.availableAt && r.availableAt != jamq.MaxSlot:
			b.Available = append(b.Available, jamq.CoreIndex(i))
			b.available = append(b.available, r.pkg.Hash)
			available = append(available, r)
			b.cores[i] = nil
		case b.CoresCleared, b.Slot >= r.reportedAt.Add(c.cfg.Spec.AvailabilityTimeout):
			b.timedOut = append(b.timedOut, r.pkg.Hash)
			b.cores[i] = nil
		}
	}
	return available
}

// childOf returns an empty block on top of a parent. The block has the parent's cores,
// and the number of active cores of the epoch to which its slot belongs.
func (c *Chain) childOf(parent *block, slot jamq.Slot) *block {
	b := &block{
		Block:  jamq.Block{Parent: parent.Hash, ParentStateRoot: parent.stateRoot, Slot: slot, AccumulatedKnown: true},
		height: parent.height + 1,
		parent: parent,
		cores:  slices.Clone(parent.cores),
		active: parent.active, epochs: parent.epochs,
	}
	if n := c.cfg.Spec.EpochLength; slot/n > parent.Slot/n {
		b.epochs++
		b.active = c.activeCores(b.epochs)
		b.CoresCleared = b.active != parent.active
	}
	return b
}

// activeCores returns the number of active cores in an epoch. It is below Spec.Cores
// only with Config.SetSizes. Only epochs with blocks count.
func (c *Chain) activeCores(epoch int) int {
	if len(c.cfg.SetSizes) == 0 {
		return c.cfg.Spec.Cores
	}
	const validators = 3 // for each core
	return min(c.cfg.SetSizes[epoch%len(c.cfg.SetSizes)]/validators, c.cfg.Spec.Cores)
}
