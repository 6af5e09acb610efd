package jamtest

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Faults are the faults that can be changed while a chain runs. Except for the
// last two, the fields are those of [Config].
type Faults struct {
	// LossProbability is the share of submissions that reach no guarantor, from 0 to 1.
	LossProbability float64
	// SkipProbability is the share of slots without a block, from 0 to less
	// than 1.
	SkipProbability float64
	// ReportLatency is the minimum and maximum number of slots from a
	// submission to the first block that may report it, at least 1.
	ReportLatency [2]jamq.Slot
	// FinalityStopped prevents that further blocks become final until it is
	// reset.
	FinalityStopped bool
	// Congested lets reports of other services use up the gas of each block, so
	// that no report is accumulated which waits in the ready queue (GP 12.18).
	Congested bool
}

// Faults returns the current faults.
func (c *Chain) Faults() Faults {
	return Faults{c.cfg.LossProbability, c.cfg.SkipProbability, c.cfg.ReportLatency, c.finalityStopped, c.congested}
}

// SetFaults changes the faults for later submissions and for blocks from the
// next slot on. A change is an input, like a submission: the same configuration
// and calls between the same slots give the same chain. If it returns an error,
// which wraps [ErrInvalidConfig], nothing changed.
func (c *Chain) SetFaults(f Faults) error {
	cfg := c.cfg
	cfg.LossProbability, cfg.SkipProbability, cfg.ReportLatency = f.LossProbability, f.SkipProbability, f.ReportLatency
	if err := cfg.Validate(); err != nil {
		return err
	}
	c.cfg, c.finalityStopped, c.congested = cfg, f.FinalityStopped, f.Congested
	return nil
}

// Inject adds the faults of a script. Its slots are counted from the current
// one: "at 1 fork 2" takes effect in the next slot. A fault for the current
// slot or an earlier one takes effect in the next slot.
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

// Kill prevents that a package is ever accumulated. Its submissions are lost,
// now and later. If it is on a core, a verdict removes it in the next block of
// each branch. The error wraps [ErrNotKillable], and nothing changes, if the
// package was never submitted, or if it became available or was lost on the
// best chain.
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
