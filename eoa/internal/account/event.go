package account

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// EventKind is the kind of an event. Its String and its JSON are the name in lower case, for
// example "mined".
type EventKind uint8

const (
	// EventSubmitted means that a node has a transaction of the request for the first time:
	// it accepted the transaction, or a block has it. A request has at most one such event
	// for each nonce, before its EventMined. EventBumped may come earlier, if the answers to
	// the first sends were lost.
	EventSubmitted EventKind = iota + 1
	// EventBumped means that the request was signed again with its nonce, at a higher price
	// or with another payload.
	EventBumped
	// EventCapped means that the request needs a higher price than its limits allow. It waits
	// until the price falls, or until the user replaces it.
	EventCapped
	// EventMined means that a block has a transaction of the request.
	EventMined
	// EventConfirmed means that the block is as deep as Config.Confirmations
	// requires.
	EventConfirmed
	// EventFinal means that the block is finalized and the transaction
	// succeeded.
	EventFinal
	// EventReorged means that the chain no longer has the block. The same transaction is sent
	// again.
	EventReorged
	// EventFailed means that the request is now Failed.
	EventFailed
	// EventCancelled means that the request is now Cancelled.
	EventCancelled
	// EventSuperseded means that the request is now Superseded.
	EventSuperseded
	// EventNoop means that a transaction which does nothing was signed for a nonce that no
	// known transaction has, so that those behind it can be mined.
	EventNoop
	// EventReset means that the next nonce was set as [Client.ResetNonce] ordered.
	EventReset
	// EventRequeued means that the nonce of the request was used without a transaction
	// (EIP-7702, or a contract that the account's code created). The request gets another
	// nonce, and EventSubmitted comes once more.
	EventRequeued
	// EventStopped means that the account is stopped until an operator calls [Client.Resume].
	// Reason is the evidence.
	EventStopped
	// EventResumed means that an operator has let the account go on.
	EventResumed
	// EventReverted means that the transaction in the block failed: it paid for its gas and
	// had no other effect. It comes directly after EventMined. When the block is final,
	// EventFailed follows.
	EventReverted

	numEvents
)

var eventNames = [numEvents]string{"", "submitted", "bumped", "capped", "mined", "confirmed", "final", "reorged", "failed", "cancelled", "superseded", "noop", "reset", "requeued", "stopped", "resumed", "reverted"}

// Event is a notice for the host that a request or its account has changed. It is stored in
// the same write as the change itself, so that no event is lost. Events are delivered in
// order for one account, and at least once: after a crash, one may come again.
type Event struct {
	// Account is the account of the event. Stores leave it zero, and [Deliver] sets it.
	Account Account `json:"account,omitzero"`
	// Seq is the number of the event among those of its account, without gaps. Account and
	// Seq identify an event that is delivered twice.
	Seq uint64 `json:"seq"`
	// Kind is the kind of the change.
	Kind EventKind `json:"kind"`
	// At is when the executor decided on the change, by its clock.
	At time.Time `json:"at"`
	// ID is the id of the record; 0 for events about the account itself (EventReset,
	// EventStopped, EventResumed).
	ID uint64 `json:"id,omitempty"`
	// Key is the key of the request; empty for events about the account itself.
	Key string `json:"key,omitempty"`
	// Nonce is the nonce of the request at that moment. For events about the account itself
	// it is the next nonce.
	Nonce uint64 `json:"nonce"`
	// Tx is the hash of the transaction in the block, or of the newest attempt while no block
	// has any.
	Tx common.Hash `json:"tx,omitzero"`
	// Height is the height of that block; 0 if there is none.
	Height uint64 `json:"height,omitempty"`
	// Success means that a block has the transaction and that it did not revert.
	Success bool `json:"success"`
	// Reason is the Reason of the record at that moment.
	Reason string `json:"reason,omitempty"`
}
