package jip2

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// JIP-2 shows no blocks. What it shows is a function of a block and a package: the status, and the value that the package's service has stored.
// From block to block along one chain these tell what each block did with the package, which is all that a queue needs of blocks. This file is
// that derivation, for one package; it is pure. Where a node is silent or contradicts itself, it presumes what keeps the package alive longest:
// that can only delay a new version, never make one too early.

// stage is how far the blocks of one chain have brought a package, as the feed has shown them.
type stage uint8

const (
	unseen    stage = iota
	onCore          // a block was shown that reports it
	available       // and one that makes it available
	lost            // reported, and the node says that it cannot become available
	taken           // its service has it
)

// fate is what has been shown of a package on the chain that ends in one block.
type fate struct {
	stage  stage
	core   jamq.CoreIndex
	report common.Hash
	// since is the slot of the block that was shown to report it, or for available to make it available.
	since jamq.Slot
}

// answer is what a node says of a package after a block.
type answer struct {
	status WorkPackageStatus
	taken  bool // the service's value says so
	// takenLater says that the node could not tell, and that a descendant's answer says taken: see earlier.
	takenLater bool
}

// shown is what a block is shown to do with a package.
type shown struct{ reports, makesAvailable, condemns, accumulates bool }

// next returns what a block in the given slot does with a package, whose fate after the parent is f. expires says that no later block can report it.
//
// Of what was taken somewhere on the way between two blocks of which the node tells, the latest block is named that can have done it: a later one would leave the
// package dead in between, and an earlier one might have forks on which it was not taken.
func (f fate) next(spec *jamq.ChainSpec, slot jamq.Slot, expires bool, a *answer) (fate, shown) {
	var s shown
	nowTaken := a.taken || a.takenLater && (f.stage == unseen && expires && a.status.Failed != nil || f.stage == available && slot >= f.since.Add(spec.EpochLength))
	switch f.stage {
	case unseen:
		if r := a.status.report(); r != nil {
			f = fate{stage: onCore, core: r.Core, report: common.Hash(r.ReportHash), since: slot}
			s.reports = true
		}
	case onCore:
		switch overdue := slot >= f.since.Add(spec.AvailabilityTimeout); {
		case a.status.Failed != nil && !a.taken && !a.takenLater:
			f.stage = lost
			s.condemns = !overdue // before its time only a verdict clears a core; afterwards time alone does
		case a.status.Ready != nil, a.taken, overdue:
			// Overdue and not said to be lost: some nodes never go on from Reported. It may be available, so it waits for its service.
			f.stage, f.since = available, slot
			s.makesAvailable = true
		}
	}
	if nowTaken && f.stage != taken {
		f.stage = taken
		s.accumulates = true
	}
	return f, s
}

// report returns what a status says about the report, or nil.
func (s *WorkPackageStatus) report() *Reported {
	switch {
	case s.Reported != nil:
		return s.Reported
	case s.Ready != nil:
		return &s.Ready.Reported
	}
	return nil
}

// settled reports whether nothing that a descendant of the block can do changes the package's fate any more.
func (f fate) settled(spec *jamq.ChainSpec, slot jamq.Slot) bool {
	switch f.stage {
	case taken, lost:
		return true
	case available:
		return slot >= f.since.Add(spec.EpochLength)
	}
	return false
}

// earlier returns the answer that a node would have given for an ancestor, as far as its answer for a later block tells. position says
// where a block stands on the way between them, from the ancestor's on; a block that is not there is older.
func (a *answer) earlier(ancestor int, position func(jamq.HeaderHash) (int, bool)) answer {
	after := func(d BlockDescriptor) bool {
		at, there := position(jamq.HeaderHash(d.HeaderHash))
		return there && at > ancestor
	}
	out := answer{status: a.status, takenLater: a.taken || a.takenLater} // it was not reported by then, or it is lost anyway, or the node has forgotten it
	switch {
	case a.status.Ready != nil && !after(a.status.Ready.ReadyIn):
	case a.status.report() != nil && !after(a.status.report().ReportedIn):
		reported := *a.status.report()
		out.status = WorkPackageStatus{Reported: &reported}
	case a.status.report() != nil:
		out.status = WorkPackageStatus{Reportable: &Reportable{}}
	}
	return out
}
