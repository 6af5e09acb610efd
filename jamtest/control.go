package jamtest

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Faults are the faults that [Chain.SetFaults] can change while a chain runs. All
// fields but the last two are also fields of [Config].
type Faults struct {
	// LossProbability is the share of submissions that reach no guarantor, from 0 to 1.
	LossProbability float64
	// SkipProbability is the probability, in each slot, that a series of slots without
	// blocks begins, from 0 to less than 1.
	SkipProbability float64
	// ReportLatency is the minimum and maximum number of slots from a
	// submission to the first block that may report it, at least 1.
	ReportLatency [2]jamq.Slot
	// FinalityStopped, while true, prevents further blocks from becoming final.
	FinalityStopped bool
	// Congested simulates reports of other services that use up the gas of each block.
	// Reports in the ready queue are then not accumulated (Gray Paper 12.18), but reports
	// without prerequisites still are.
	Congested bool
}

// Faults returns the current faults.
func (c *Chain) Faults() Faults {
	return Faults{c.cfg.LossProbability, c.cfg.SkipProbability, c.cfg.ReportLatency, c.finalityStopped, c.congested}
}

// SetFaults changes the faults for later submissions, and for blocks from the next slot
// on. Like a submission, a change is an input of the simulation: the same configuration
// and the same calls between the same slots give the same chain. If the faults are
// invalid, SetFaults returns an error that wraps [ErrInvalidConfig] and changes
// nothing.
func (c *Chain) SetFaults(f Faults) error {
	cfg := c.cfg
	cfg.LossProbability, cfg.SkipProbability, cfg.ReportLatency = f.LossProbability, f.SkipProbability, f.ReportLatency
	if err := cfg.Validate(); err != nil {
		return err
	}
	c.cfg, c.finalityStopped, c.congested = cfg, f.FinalityStopped, f.Congested
	return nil
}

// Inject adds the faults of a script to those that are still to come. The slots in the
// script are counted from the current slot, so "at 1 fork 2" takes effect in the next
// slot. A fault at slot 0 also takes effect in the next slot.
func (c *Chain) Inject(s *Script) {
	todo := slices.Clone(c.script.todo)
	now := c.slot.Since(c.cfg.StartSlot)
	for _, a := range s.actions {
		a.at = now.Add(a.at)
		todo = append(todo, a)
	}
	sortActions(todo)
	c.script.todo = todo
}

// Kill makes sure that a package is never accumulated. All submissions of the package
// are lost, now and later. If the package is on a core, a verdict removes it in the
// next block of each branch.
//
// Kill changes nothing if the package was never submitted, or if it became available or
// was lost on the best chain. The error then wraps [ErrNotKillable].
func (c *Chain) Kill(pkg jamq.PackageHash) error {
	if c.packages[pkg] == nil {
		return fmt.Errorf("%w: %s was not submitted", ErrNotKillable, pkg)
	}
	status, err := c.Status(pkg, c.best.Hash)
	if err != nil {
		return err
	}
	if status.Stage != Unreported && status.Stage != OnCore {
		return fmt.Errorf("%w: %s is %s, want unreported or on a core", ErrNotKillable, pkg, status.Stage)
	}
	c.killed[pkg] = true
	c.offers = slices.DeleteFunc(c.offers, func(o offer) bool { return o.pkg.Hash == pkg })
	return nil
}
