package account

// State is the state of a request.
type State uint8

const (
	// Pending means that the store has accepted the request and it has no nonce
	// yet.
	Pending State = iota
	// Prepared means that a transaction is signed and stored, and not known to
	// be on any node.
	Prepared
	// Broadcast means that a node has accepted a transaction of the request.
	Broadcast
	// Mined means that a transaction is in a block that a reorg may still
	// remove.
	Mined
	// Confirmed means that the block is as deep as Config.Confirmations
	// requires.
	Confirmed
	// Final means that the transaction succeeded in a finalized block. It is a
	// terminal state.
	Final
	// Failed means that the request was given up before it had a nonce, that
	// its transaction reverted in a finalized block, or that nodes refused it
	// for good and a noop was finalized with its nonce. It is a terminal state.
	Failed
	// Superseded means that another transaction provably took the nonce, or
	// that a forced reset gave the request up. It is a terminal state.
	Superseded
	// Cancelled means that the request was withdrawn: before it had a nonce, by
	// a noop that was finalized with its nonce, or because its nonce was used
	// without a transaction. It is a terminal state.
	Cancelled

	numStates
)

var stateNames = [numStates]string{"pending", "prepared", "broadcast", "mined", "confirmed", "final", "failed", "superseded", "cancelled"}

// String returns the name in lower case.
func (s State) String() string { return nameOf("State", stateNames[:], uint8(s)) }

// Terminal reports whether s never changes again.
func (s State) Terminal() bool { return s >= Final }

// follows lists the possible next states of each state. A reorg returns Mined
// and Confirmed to Broadcast.
var follows = [numStates][]State{
	Pending:   {Prepared, Failed, Cancelled},
	Prepared:  {Broadcast, Pending, Mined, Superseded, Cancelled},
	Broadcast: {Mined, Pending, Superseded, Cancelled},
	Mined:     {Confirmed, Broadcast, Failed, Cancelled, Final},
	Confirmed: {Final, Broadcast, Failed, Cancelled},
}

// canBecome reports whether a request may move from s to next. Prepared and
// Broadcast return to Pending only if their nonce was provably used without a
// transaction.
func (s State) canBecome(next State) bool {
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

// SendResult is the outcome of giving signed bytes to a node.
type SendResult uint8

const (
	// Unknown means a time-out, a connection or server error, or an
	// unrecognized message. The node may have the bytes. It is the zero value,
	// so that an unclassified outcome is unknown.
	Unknown SendResult = iota
	// Accepted means that the node has the transaction, from this send or an
	// earlier one.
	Accepted
	// Rejected means that the node definitely does not have the transaction.
	Rejected
)

var resultNames = [...]string{"unknown", "accepted", "rejected"}

// String returns the name in lower case.
func (r SendResult) String() string { return nameOf("SendResult", resultNames[:], uint8(r)) }
