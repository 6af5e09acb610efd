package eoa

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// EventKind says what happened.
type EventKind uint8

const (
	// EventSubmitted: a node has the transaction for the first time.
	EventSubmitted EventKind = iota + 1
	// EventBumped: a transaction with the same nonce and a higher price was signed.
	EventBumped
	// EventCapped: a bump is due, and its price would pass the limit.
	EventCapped
	// EventMined, EventConfirmed and EventFinal: in a block, as deep as asked for, in a finalized block.
	EventMined
	EventConfirmed
	EventFinal
	// EventReorged: the block is no longer part of the chain.
	EventReorged
	// EventFailed, EventCancelled and EventSuperseded: the states of these names.
	EventFailed
	EventCancelled
	EventSuperseded
	// EventNoop: a transaction that does nothing fills a nonce.
	EventNoop
	// EventReset: a person set the next nonce.
	EventReset

	numEvents
)

// String returns the name in lower case.
func (k EventKind) String() string {
	names := [numEvents]string{"", "submitted", "bumped", "capped", "mined", "confirmed", "final", "reorged", "failed", "cancelled", "superseded", "noop", "reset"}
	if k > 0 && k < numEvents {
		return names[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is told through the outbox: at least once, and in order for one account.
type Event struct {
	// Account is whose event it is, and Seq the store's number, ascending by 1 per account: together they name an event. [Deliver] fills in the account.
	Account Account `json:"account,omitzero"`
	Seq     uint64  `json:"seq"`
	// Kind is what happened, At when it was decided.
	Kind EventKind `json:"kind"`
	At   time.Time `json:"at"`
	// ID and Key are the record's; 0 and empty for EventReset.
	ID  uint64 `json:"id,omitempty"`
	Key string `json:"key,omitempty"`
	// Nonce, Tx, Height and Reason are the record's at that moment.
	Nonce  uint64      `json:"nonce"`
	Tx     common.Hash `json:"tx,omitzero"`
	Height uint64      `json:"height,omitempty"`
	Reason string      `json:"reason,omitempty"`
}
