package bundlequeue

import "fmt"

// State is the stage of a bundle. The queue derives it from the evidence and
// the open requests.
type State uint8

// The states of a bundle, in the order of its life.
const (
	// Reserved means that the number is taken and the block is not enqueued
	// yet.
	Reserved State = iota
	// Queued means that the bundle waits for a core, for its predecessor, or
	// for the death of an earlier version.
	Queued
	// Building means that the host builds a package.
	Building
	// Sending means that a package is built and no send of it has succeeded.
	Sending
	// Submitted means that a guarantor accepted the package and the best chain
	// has not reported it.
	Submitted
	// Guaranteed means that the best chain has reported a version.
	Guaranteed
	// Accumulated means that the best chain has accumulated a version.
	Accumulated
	// Finalized means that the finalized chain has accumulated a version. This
	// state is final.
	Finalized
	// FailedState means that the bundle failed and was handed back. This state
	// is final.
	FailedState
)

// NumStates is the number of states, for arrays that are indexed by State.
const NumStates = int(FailedState) + 1

// String returns the name of the state in lower case.
func (s State) String() string {
	names := [NumStates]string{"reserved", "queued", "building", "sending", "submitted", "guaranteed", "accumulated", "finalized", "failed"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}
