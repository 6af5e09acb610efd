package account

// State is how far a request has come. Most requests go through the first six
// states in order. A reorg moves a request from Mined or Confirmed back to
// Broadcast.
type State uint8

const (
	// Pending means that the store has accepted the request and that it has no
	// nonce yet.
	Pending State = iota
	// Prepared means that the request has a nonce and its signed transaction is in the store.
	// It is not known yet whether any node has the transaction.
	Prepared
	// Broadcast means that a node has accepted a transaction of the request.
	Broadcast
	// Mined means that a block contains a transaction of the request. A reorg may
	// still remove the block.
	Mined
	// Confirmed means that the block is as deep in the chain as Config.Confirmations
	// requires.
	Confirmed
	// Final means that the block is finalized and the transaction in it succeeded.
	// The record never changes again.
	Final
	// Failed means that the request failed in one of these ways:
	//
	//   - It ended before it had a nonce, for example at its deadline.
	//   - Its transaction reverted in a finalized block.
	//   - Nodes refused it for good, and a no-op transaction has used its nonce.
	//
	// The record never changes again.
	Failed
	// Superseded means that something else has used the nonce: a finalized
	// transaction of another program or, for a member of a group, no transaction at
	// all. A request that a forced reset gave up is superseded as well. The record
	// never changes again.
	Superseded
	// Cancelled means that the request was withdrawn: it had no nonce yet, a no-op
	// transaction has used its nonce, or nothing can use the nonce any more. The
	// record never changes again.
	Cancelled

	numStates
)

var stateNames = [numStates]string{"pending", "prepared", "broadcast", "mined", "confirmed", "final", "failed", "superseded", "cancelled"}

// Terminal reports whether a record in this state never changes again.
func (s State) Terminal() bool { return s >= Final }

// nextStates lists the states that may follow each state. A reorg that removes the
// block takes a request from Mined or Confirmed back to Broadcast. A request goes
// back to Pending only if its nonce was used without a transaction.
var nextStates = [numStates][]State{
	Pending:   {Prepared, Failed, Cancelled},
	Prepared:  {Broadcast, Pending, Mined, Superseded, Cancelled},
	Broadcast: {Mined, Pending, Superseded, Cancelled},
	Mined:     {Confirmed, Broadcast, Failed, Cancelled, Final},
	Confirmed: {Final, Broadcast, Failed, Cancelled},
}

// canBecome reports whether a request may go from state s to next.
func (s State) canBecome(next State) bool {
	if s >= numStates {
		return false
	}
	for _, f := range nextStates[s] {
		if f == next {
			return true
		}
	}
	return false
}

// SendResult tells whether a node has the transaction that was sent to it.
type SendResult uint8

const (
	// Unknown means that the node may or may not have the transaction: the call
	// timed out, the connection or the server failed, or the message is not
	// recognized. Unknown is the zero value, so that it also applies to a result
	// that a Chain leaves out.
	Unknown SendResult = iota
	// Accepted means that the node has the transaction, from this send or from an earlier
	// one.
	Accepted
	// Rejected means that the node that answered does not have the transaction.
	// Another node behind the same gateway may have it.
	Rejected
)

var resultNames = [...]string{"unknown", "accepted", "rejected"}
