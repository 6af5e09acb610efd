package eoa

import "fmt"

// State is where a request stands.
type State uint8

const (
	// Pending: accepted by the store, no nonce yet.
	Pending State = iota
	// Prepared: signed with its nonce, the bytes in the store; not known to be out.
	Prepared
	// Broadcast: the bytes were given to a node.
	Broadcast
	// Mined: in a block that may still be reorganized away.
	Mined
	// Confirmed: as deep as the settings ask.
	Confirmed
	// Final: in a finalized block. No state follows.
	Final
	// Failed: given up before it was ever broadcast, or mined without success and final. No state follows.
	Failed
	// Superseded: another transaction provably took its nonce. No state follows.
	Superseded
	// Cancelled: withdrawn before it had a nonce, or its nonce filled by a transaction to itself. No state follows.
	Cancelled

	numStates
)

// String returns the name in lower case.
func (s State) String() string {
	names := [numStates]string{"pending", "prepared", "broadcast", "mined", "confirmed", "final", "failed", "superseded", "cancelled"}
	if s < numStates {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Terminal reports whether no state follows.
func (s State) Terminal() bool { return s >= Final }

// follows lists, for each state, those that may follow. A reorg takes Mined and Confirmed back to Broadcast.
var follows = [numStates][]State{
	Pending:   {Prepared, Failed, Cancelled},
	Prepared:  {Broadcast, Pending, Mined, Failed, Superseded},
	Broadcast: {Mined, Superseded},
	Mined:     {Confirmed, Broadcast, Failed, Cancelled, Final},
	Confirmed: {Final, Broadcast, Failed, Cancelled},
}

// CanBecome reports whether a request in state s may move to another one. Prepared may go back to Pending only where the bytes were provably
// never sent.
func (s State) CanBecome(next State) bool {
	if s >= numStates {
		return false
	}
	for _, f := range follows[s] {
		if f == next {
			return true
		}
	}
	return false
}

// SendResult is what a send came to.
type SendResult uint8

const (
	// Unknown: a time-out, an error of the connection or of the server, or a text nobody knows. The bytes may be out. It is the zero value
	// on purpose: what is not classified is unknown.
	Unknown SendResult = iota
	// Accepted: the node has it, also where it had it before.
	Accepted
	// Rejected: the node does not have it and says why; the bytes are not out through it.
	Rejected
)

// String returns the name in lower case.
func (r SendResult) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	}
	return "unknown"
}
