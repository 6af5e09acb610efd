package bundlequeue

import "fmt"

// State is the stage of a bundle on its way to finality. The queue derives it from the blocks of
// the JAM chain and from the requests that the host has not answered yet.
type State uint8

// The states of a bundle, in the order in which it usually passes them.
const (
	// Reserved means that the number is taken, but the host is still executing the block and has
	// not enqueued it.
	Reserved State = iota
	// Queued means that the bundle waits: for a core, for the package of the bundle before it, or
	// until its last package is dead.
	Queued
	// Building means that the host was asked to build a package.
	Building
	// Sending means that a package is built, and that no guarantor has accepted it yet.
	Sending
	// Submitted means that a guarantor has accepted the package, and that the best chain has not
	// reported it yet.
	Submitted
	// Guaranteed means that the best chain has reported a package of the bundle.
	Guaranteed
	// Accumulated means that the best chain has accumulated a package of the bundle.
	Accumulated
	// Finalized means that the finalized chain has accumulated a package of the bundle. This state
	// never changes.
	Finalized
	// FailedState means that the bundle has failed and the host has it back. This state never
	// changes.
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
