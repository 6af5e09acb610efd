package account

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// EventKind is the kind of an event. Its String and its JSON form are the name in
// lower case, for example "mined".
type EventKind uint8

const (
	// EventSubmitted means that a node has a transaction of the request for the
	// first time, because it accepted the transaction or a block contains it. There
	// is at most one EventSubmitted for each nonce of a request, and it comes
	// before EventMined. EventBumped may come even earlier, if the answers to the
	// first sends were lost.
	EventSubmitted EventKind = iota + 1
	// EventBumped means that the request was signed again with the same nonce, at a
	// higher price or with another payload.
	EventBumped
	// EventCapped means that the request needs a higher price than its limits allow. It waits
	// until the price falls, or until the user replaces it.
	EventCapped
	// EventMined means that a block contains a transaction of the request.
	EventMined
	// EventConfirmed means that the block with the request's transaction is as
	// deep in the chain as Config.Confirmations requires.
	EventConfirmed
	// EventFinal means that the block with the request's transaction is finalized,
	// and that the transaction succeeded.
	EventFinal
	// EventReorged means that a reorg has removed the block with the request's
	// transaction. The same transaction is sent again.
	EventReorged
	// EventFailed means that the request is now Failed.
	EventFailed
	// EventCancelled means that the request is now Cancelled.
	EventCancelled
	// EventSuperseded means that the request is now Superseded.
	EventSuperseded
	// EventNoop means that a no-op transaction was signed to fill a gap: a nonce that
	// no known transaction has. Without it, the transactions behind the gap could not
	// be mined.
	EventNoop
	// EventReset means that the next nonce was set as [Client.ResetNonce] ordered.
	EventReset
	// EventRequeued means that the nonce of the request was used without a
	// transaction, by an authorization (EIP-7702) or by a contract that the
	// account's code created. The request gets another nonce, and EventSubmitted
	// comes once more.
	EventRequeued
	// EventStopped means that the account is stopped until an operator calls
	// [Client.Resume]. Event.Reason contains the evidence.
	EventStopped
	// EventResumed means that an operator has resumed the stopped account.
	EventResumed
	// EventReverted means that the request's transaction is in a block but failed:
	// it paid for its gas and had no other effect. This event comes directly after
	// EventMined. EventFailed follows when the block is final.
	EventReverted

	numEvents
)

var eventNames = [numEvents]string{"", "submitted", "bumped", "capped", "mined", "confirmed", "final", "reorged", "failed", "cancelled", "superseded", "noop", "reset", "requeued", "stopped", "resumed", "reverted"}

// Event tells the host that a request or its account has changed. The store writes
// it together with the change, so that no event is lost. The events of one account
// are delivered in order and at least once: after a crash, an event may be
// delivered again.
type Event struct {
	// Account is the account that the event belongs to. Stores leave it zero, and
	// [Deliver] sets it.
	Account Account `json:"account,omitzero"`
	// Seq numbers the events of one account without gaps. A receiver can detect
	// repeated deliveries by Account and Seq.
	Seq uint64 `json:"seq"`
	// Kind is the kind of the change.
	Kind EventKind `json:"kind"`
	// At is the time of the decision, by the executor's clock.
	At time.Time `json:"at"`
	// ID is the id of the record; 0 for events about the account itself (EventReset,
	// EventStopped, EventResumed).
	ID uint64 `json:"id,omitempty"`
	// Key is the key of the request; empty for events about the account itself.
	Key string `json:"key,omitempty"`
	// Nonce is the nonce of the request at that moment. For events about the account itself
	// it is the next nonce.
	Nonce uint64 `json:"nonce"`
	// Tx is the hash of the request's transaction in the block. If no block
	// contains one, it is the hash of the newest transaction signed for the
	// request.
	Tx common.Hash `json:"tx,omitzero"`
	// Height is the height of the block with the transaction; 0 if there is none.
	Height uint64 `json:"height,omitempty"`
	// Success means that a block contains the transaction and that it did not
	// revert.
	Success bool `json:"success"`
	// Reason is the value of Record.Reason at that moment.
	Reason string `json:"reason,omitempty"`
}
