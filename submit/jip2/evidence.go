package jip2

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// stage is how far a package has come on one chain.
//
// JIP-2 does not serve blocks. It returns the status of a package after a
// block, and the value that the package's service has stored. The difference
// between consecutive blocks shows the effect of each block on the package.
// This file derives it for one package. If the answers are missing or
// contradictory, the derivation chooses the interpretation that keeps the
// package alive longest. That can delay a new version, but never allows one too
// early.
type stage uint8

const (
	unseen    stage = iota
	onCore          // reported
	available       // report made available
	lost            // reported, but failed
	taken           // accumulated by its service
)

// fate is the state of a package on the chain that ends in one block.
type fate struct {
	stage  stage
	core   jamq.CoreIndex
	report common.Hash
	// since is the slot of the block that reported the package or, at stage
	// available, of the block that made it available.
	since jamq.Slot
}

// answer is the node's information about a package after a block.
type answer struct {
	status WorkPackageStatus
	taken  bool // by the service's value
	// takenLater is set if the node has no answer for this block, but its
	// answer for a descendant shows that the service has taken the package: see
	// earlier.
	takenLater bool
}

// shown is the effect of a block on a package.
type shown struct{ reports, makesAvailable, condemns, accumulates bool }

// next returns the effect of a block in the given slot on a package whose fate
// after the parent is f, and the fate after the block. expires means that no
// later block can report the package.
//
// If takenLater is set, the block that accumulated the package is unknown. next
// chooses the latest possible one. A later one would leave the package dead in
// between. An earlier one may have forks on which the package was not
// accumulated.
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
			s.condemns = !overdue // by a verdict, or because the number of validators changed
		case a.status.Ready != nil, a.taken, overdue:
			// Some nodes never advance a status from Reported. An overdue
			// report that is not marked as failed may be available, so the
			// service's value decides.
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

// report returns the report in a status, or nil if there is none.
func (s *WorkPackageStatus) report() *Reported {
	switch {
	case s.Reported != nil:
		return s.Reported
	case s.Ready != nil:
		return &s.Ready.Reported
	}
	return nil
}

// settled reports whether no descendant of the block can change the package's
// fate.
func (f fate) settled(spec *jamq.ChainSpec, slot jamq.Slot) bool {
	switch f.stage {
	case taken, lost:
		return true
	case available:
		return slot >= f.since.Add(spec.EpochLength)
	}
	return false
}

// earlier derives the answer for an ancestor from the answer for a later block.
// position returns the index of a block on the way from the ancestor to that
// block, and false for an older block.
func (a *answer) earlier(ancestor int, position func(jamq.HeaderHash) (int, bool)) answer {
	after := func(d BlockDescriptor) bool {
		at, there := position(jamq.HeaderHash(d.HeaderHash))
		return there && at > ancestor
	}
	// The status is kept if the package was not reported by then, is lost anyway, or was forgotten
	// by the node.
	out := answer{status: a.status, takenLater: a.taken || a.takenLater}
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
