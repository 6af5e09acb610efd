package bundlequeue

import "fmt"

// State is the stage of a bundle on its way to finality. The queue computes it from the blocks of
// the JAM chain and from the requests that the host has not answered yet.
type State uint8

// The states of a bundle, in the order in which it usually passes them.
const (
	// Reserved means that the number is taken for a block that the host is still executing and has
	// not enqueued yet.
	Reserved State = iota
	// Queued means that the bundle waits: for a core, for the package of the previous bundle, or
	// for the death of the last package that was sent for the bundle itself.
	Queued
	// Building means that the queue has requested a package from the host.
	Building
	// Sending means that a package is built but no guarantor has accepted it yet.
	Sending
	// Submitted means that a guarantor has accepted the package, but the best chain has not
	// reported it yet.
	Submitted
	// Guaranteed means that the best chain has reported a package of the bundle.
	Guaranteed
	// Accumulated means that the best chain has accumulated a package of the bundle.
	Accumulated
	// Finalized means that the finalized chain has accumulated a package of the bundle. This state
	// never changes.
	Finalized
	// FailedState means that the bundle has failed and was given back to the host. This state never
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
