package jamtest

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Stage is the progress of a package on one chain.
type Stage int

// The stages are in the order in which a package passes through them. A package can be
// lost instead: from OnCore it becomes Cleared or TimedOut, and from Ready it becomes
// Expired.
const (
	// Unreported means that no block of this chain reports the package.
	Unreported Stage = iota
	// OnCore means that a block reported the package, which is not available yet.
	OnCore
	// Cleared means that a verdict removed the package from its core.
	Cleared
	// TimedOut means that the package did not become available within U slots.
	TimedOut
	// Ready means that the package is available and waits for its prerequisites.
	Ready
	// Expired means that the package's prerequisites were missing for E slots.
	Expired
	// Accumulated means that the service has received the package.
	Accumulated
)

// String returns the name of the stage in lower case.
func (s Stage) String() string {
	names := [...]string{"unreported", "on core", "cleared", "timed out", "ready", "expired", "accumulated"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("stage %d", int(s))
	}
	return names[s]
}

// Status is the history of a package on one chain. A zero Point means that the event
// has not happened on that chain.
type Status struct {
	// Stage is the progress of the package.
	Stage Stage
	// Core is the core of the report. It has no meaning if the package is unreported.
	Core jamq.CoreIndex
	// Reported, Available and Accumulated are the blocks in which the package
	// reached these stages.
	Reported, Available, Accumulated Point
	// Lost is the block in which the package was cleared, timed out or expired.
	Lost Point
}

// String returns the status in one line, with the height and the slot of each block,
// for example "ready: reported 4/5, available 5/7".
func (s Status) String() string {
	out := s.Stage.String()
	separator := ": "
	for _, step := range []struct {
		name string
		at   Point
	}{{"reported", s.Reported}, {"available", s.Available}, {"accumulated", s.Accumulated}, {"lost", s.Lost}} {
		if !step.at.Hash.IsZero() {
			out += fmt.Sprintf("%s%s %d/%d", separator, step.name, step.at.Height, step.at.Slot)
			separator = ", "
		}
	}
	return out
}

// Status returns the history of a package on the chain that ends in head, as far as the
// chain still has the blocks. A package that was never submitted is Unreported. The
// error wraps [ErrUnknownBlock].
func (c *Chain) Status(pkg jamq.PackageHash, head jamq.HeaderHash) (Status, error) {
	b, ok := c.blocks[head]
	if !ok {
		return Status{}, fmt.Errorf("%w: %s", ErrUnknownBlock, head)
	}
	var s Status
	reported := b.newest(int(b.height)+1, c.reportedIn[pkg])
	if reported == nil {
		return s, nil
	}
	for _, b := range path(b, reported.height) {
		s.pass(b, pkg)
	}
	return s, nil
}

// pass updates the status with the effect of one block on the package.
func (s *Status) pass(b *block, pkg jamq.PackageHash) {
	for _, r := range b.Reported {
		if r.Package == pkg {
			s.Stage, s.Core, s.Reported = OnCore, r.Core, b.point()
		}
	}
	if slices.Contains(b.available, pkg) {
		s.Stage, s.Available = Ready, b.point()
	}
	for _, loss := range []struct {
		stage Stage
		of    []jamq.PackageHash
	}{{Cleared, b.cleared}, {TimedOut, b.timedOut}, {Expired, b.expired}} {
		if slices.Contains(loss.of, pkg) {
			s.Stage, s.Lost = loss.stage, b.point()
		}
	}
	if slices.Contains(b.Accumulated, pkg) {
		s.Stage, s.Accumulated = Accumulated, b.point()
	}
}
