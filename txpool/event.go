package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Kind says what happened.
type Kind uint8

const (
	// Pending: a transaction was admitted and can run.
	Pending Kind = iota + 1
	// Queued: a transaction was admitted, or fell, behind a nonce gap.
	Queued
	// Parked: a transaction was admitted, or fell, under the floor or the base fee, or stands behind one that did.
	Parked
	// Promoted: a transaction that was queued or parked can run now.
	Promoted
	// Replaced: another one of the same sender and nonce took its place.
	Replaced
	// Dropped: it left for a reason.
	Dropped
	// Included: it left in a committed bundle, or in a block.
	Included
	// FloorChanged: the floor moved with a block.
	FloorChanged
	// Missed: the subscription was too slow; Event.Missed events are gone.
	Missed

	// What only the journal wants to know.
	leaseOpened
	leaseReturned
	leaseCommitted
	leaseReleased
	nonceFreed
	pricesMoved
	wasHeldAside // a transaction that came back and waits to be admitted
	heldIncluded // one that was held aside is in a block
	notBack      // a transaction that came back and is not taken
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"", "pending", "queued", "parked", "promoted", "replaced", "dropped", "included", "floor changed", "missed"}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Event tells what happened. A transaction that was admitted appears with
// Admitted set once, and leaves by exactly one event of kind Replaced, Dropped
// or Included (invariant I11). If its block is reverted it is admitted again.
// One that the pool holds aside (StatusHeld) is admitted, or ends with Dropped.
type Event struct {
	// Kind says what happened.
	Kind Kind
	// Admitted says that this is the first word about the transaction.
	Admitted bool
	// Private says that the transaction was added by AddPrivate: nobody outside should hear of it.
	Private bool
	// Tx is the transaction, Sender who sent it.
	Tx     *types.Transaction
	Sender common.Address
	// Age is how long a transaction that leaves was in the pool.
	Age time.Duration
	// By is the hash of the replacing transaction, for Replaced.
	By common.Hash
	// Reason is why it was dropped, for Dropped: one of the package's errors, or the host's.
	Reason error
	// Floor is the new floor in wei per gas, for FloorChanged.
	Floor uint64
	// Missed is how many events are gone, for Missed.
	Missed int

	lease  *Lease
	entry  *entry // of which only what never changes may be read
	nonce  uint64 // from which on a sender's are free again
	known  bool   // to the journal: it tells of what was restored from it
	fees   prices
	past   *past     // of wasHeldAside
	leftAt time.Time // of what leaves
}

// emit tells what happened to an entry.
func (c *core) emit(event Event, e *entry) {
	left := event.Kind == Dropped || event.Kind == Replaced || event.Kind == notBack // departures want these
	if !c.listening && !left {
		return
	}
	if e != nil {
		event.Tx, event.Sender, event.Private, event.entry = e.tx, e.account.address, e.private, e
	}
	if left && e != nil && c.admitting != nil {
		c.displacedBy[c.admitting] = append(c.displacedBy[c.admitting], candidate{tx: e.tx, entry: e, from: event.Sender, back: true})
	}
	event.known = c.restoring && !left
	if event.Kind == Dropped && c.collecting {
		c.displaced = append(c.displaced, Displaced{Tx: event.Tx, Err: event.Reason})
	}
	c.events = append(c.events, event)
}

// emitMove tells where an entry stands now.
func (c *core) emitMove(e *entry, admitted bool) {
	if !c.listening {
		return
	}
	kind := Queued
	switch e.status {
	case parked:
		kind = Parked
	case ready:
		if kind = Promoted; admitted {
			kind = Pending
		}
	}
	c.emit(Event{Kind: kind, Admitted: admitted}, e)
}
