package bundlequeue

import "fmt"

// State is the stage of a bundle. The queue derives it from evidence and from what is under way.
type State uint8

// The states of a bundle, in the order of its life.
const (
	// Reserved: its number is taken, and the block is not enqueued yet.
	Reserved State = iota
	// Queued: it waits for a core, for its predecessor, or for an earlier version to be dead.
	Queued
	// Building: the host builds a package for it.
	Building
	// Sending: a package is built, and no send of it has succeeded yet.
	Sending
	// Submitted: at least one guarantor took the package, and the best chain has not reported it.
	Submitted
	// Guaranteed: the best chain has reported a version.
	Guaranteed
	// Accumulated: the best chain has accumulated a version.
	Accumulated
	// Finalized: the finalized chain has accumulated a version. Final.
	Finalized
	// FailedState: it was given up, and its contents handed back. Final.
	FailedState
)

// NumStates is the number of states, for arrays that are indexed by them.
const NumStates = int(FailedState) + 1

// String returns the name of the state in lower case.
func (s State) String() string {
	names := [NumStates]string{"reserved", "queued", "building", "sending", "submitted", "guaranteed", "accumulated", "finalized", "failed"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}
