package bundlequeue

import "fmt"

// State is where a bundle stands. It is derived from chain evidence and from what is under way, never set by hand.
type State uint8

// The states of a bundle, in the order of its life.
const (
	// Queued: waits for a core, for its predecessor, or for an earlier version to be dead.
	Queued State = iota
	// Building: the host is building a package for it.
	Building
	// Sending: a package is built, and no send of it has succeeded yet.
	Sending
	// Submitted: at least one guarantor took the package; it is not reported on the best chain.
	Submitted
	// Guaranteed: the best chain has reported a version.
	Guaranteed
	// Accumulated: the best chain has accumulated a version.
	Accumulated
	// Finalized: the finalized chain has accumulated a version. Final.
	Finalized
	// FailedState: given up, with its contents handed back. Final.
	FailedState
)

// String returns the name of the state in lower case.
func (s State) String() string {
	names := [...]string{"queued", "building", "sending", "submitted", "guaranteed", "accumulated", "finalized", "failed"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}
