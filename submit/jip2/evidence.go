package jip2

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// stage is how far a package has come on one chain. JIP-2 serves no blocks, so this file
// derives the stages from the node's answers about the package at each block. If answers
// are missing, it assumes that the package stays alive as long as possible: replacing a
// package too late costs time, but replacing it too early can execute its transactions
// twice. An answer that changes the stage counts only if the node gives it twice: see
// Feed.confirm.
type stage uint8

const (
	unseen    stage = iota
	onCore          // reported, and its report is on a core
	available       // its report has become available
	lost            // reported, but it can no longer become available
	taken           // accumulated by its service
)

// String returns the stage in words, for errors.
func (s stage) String() string {
	return [...]string{"not reported", "reported", "available", "lost", "accumulated"}[s]
}

// fate is the state of a package on the chain that ends in a given block.
type fate struct {
	stage  stage
	core   jamq.CoreIndex
	report common.Hash
	// since is the slot in which the package reached its stage: when the package
	// was reported or, at stage available, when its report became available.
	since jamq.Slot
}

// answer is a node's answer about a package after a given block.
type answer struct {
	status WorkPackageStatus
	taken  bool // the service's value shows that it has accumulated the package
	// takenLater is true if the node could not answer for this block, but the service has
	// accumulated the package by a later block. It may have happened in this block or later.
	takenLater bool
	// confirmed is true if the node has given the answer twice: see Feed.confirm.
	confirmed bool
}

// shown contains what a block did to a package according to the node's answers.
type shown struct{ reports, makesAvailable, condemns, accumulates bool }

// next derives what a block did to a package, and the resulting fate.
func (f fate) next(spec *jamq.ChainSpec, slot jamq.Slot, expires bool, a *answer) (fate, shown) {
	var s shown
	// If only takenLater is known, one of several blocks has accumulated the package. Choose
	// the last possible one: an even later choice would make the package look dead for some
	// blocks, and an earlier choice could be wrong on a fork in between.
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
			// Some nodes report a package as Reported forever. After the availability time-out
			// the report has either failed or become available, and the node does not say that
			// it failed. The service's value then decides.
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

// report returns the report that a status contains, or nil.
func (s *WorkPackageStatus) report() *Reported {
	switch {
	case s.Reported != nil:
		return s.Reported
	case s.Ready != nil:
		return &s.Ready.Reported
	}
	return nil
}

// settled reports whether no later block can change the fate; slot is the block's.
func (f fate) settled(spec *jamq.ChainSpec, slot jamq.Slot) bool {
	switch f.stage {
	case taken, lost:
		return true
	case available:
		return slot >= f.since.Add(spec.EpochLength)
	}
	return false
}

// earlier estimates the node's answer after an older block, whose state is lost.
func (a *answer) earlier(ancestor int, position func(jamq.HeaderHash) (int, bool)) answer {
	// position returns the index of a block in the list of fetched blocks. A block that is not
	// in the list is older than all of them.
	after := func(d BlockDescriptor) bool {
		at, there := position(jamq.HeaderHash(d.HeaderHash))
		return there && at > ancestor
	}
	// The later answer also holds for the older block in these cases: the package was
	// available at the older block already, was not reported even at the later one, is lost,
	// or was forgotten by the node.
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
