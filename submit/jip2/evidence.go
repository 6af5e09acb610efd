package jip2

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// stage is how far a package has come on one chain: not reported, on a core, available, lost or
// accumulated.
//
// JIP-2 does not serve blocks. It returns the status of a package after a block, and the value that
// the package's service has stored. This file compares the answers for consecutive blocks to derive
// what each block did to one package. If answers are missing or contradict each other, it chooses
// the interpretation that keeps the package alive longest. This can delay a new version of the
// package, but it never allows one too early.
type stage uint8

const (
	unseen    stage = iota
	onCore          // reported
	available       // report made available
	lost            // reported, but failed
	taken           // accumulated by its service
)

// fate is the state of one package on the chain that ends in a given block.
type fate struct {
	stage  stage
	core   jamq.CoreIndex
	report common.Hash
	// since is the slot of the block that brought the package to its stage: the block that reported
	// the package or, at stage available, the block that made its report available.
	since jamq.Slot
}

// answer is the node's knowledge of a package after a given block.
type answer struct {
	status WorkPackageStatus
	taken  bool // by the service's value
	// takenLater is true if the node could not answer for this block, but its answer for a later
	// block shows that the service has accumulated the package by then. The answer for this block
	// was derived by the method earlier.
	takenLater bool
}

// shown is the effect of a block on a package.
type shown struct{ reports, makesAvailable, condemns, accumulates bool }

// next derives what a block did to a package. f is the fate of the package after the block's
// parent, and slot is the slot of the block. expires means that no later block can report the
// package. next returns the fate after the block, and the effect of the block on the package.
//
// If takenLater is set, it is unknown which of several blocks accumulated the package, and next
// chooses the latest possible one. With a still later choice the package would look dead for some
// blocks. With an earlier choice, a fork could branch off after that block although its chain has
// not accumulated the package.
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

// settled reports whether the package's fate can no longer change on any chain that continues from
// the block with this fate. slot is the slot of that block.
func (f fate) settled(spec *jamq.ChainSpec, slot jamq.Slot) bool {
	switch f.stage {
	case taken, lost:
		return true
	case available:
		return slot >= f.since.Add(spec.EpochLength)
	}
	return false
}

// earlier derives the answer for an older block, the ancestor, from the answer for a later block.
// ancestor is the index of the older block in the list of fetched blocks. position returns the
// index of a block in that list, or false if the block is older than the list.
func (a *answer) earlier(ancestor int, position func(jamq.HeaderHash) (int, bool)) answer {
	after := func(d BlockDescriptor) bool {
		at, there := position(jamq.HeaderHash(d.HeaderHash))
		return there && at > ancestor
	}
	// The status stays as it is if the package was available by then, was not even reported at the
	// later block, is lost anyway, or was forgotten by the node.
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
