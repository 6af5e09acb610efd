package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Kind is the kind of an [Event].
type Kind uint8

const (
	// Pending means that a transaction was admitted and can run.
	Pending Kind = iota + 1
	// Queued means that a transaction was admitted behind a nonce gap, or moved
	// there.
	Queued
	// Parked means that a transaction was admitted or became parked: it, or one
	// before it, does not pay the floor or the base fee.
	Parked
	// Promoted means that a queued or parked transaction can run now.
	Promoted
	// Replaced means that another transaction with the same sender and nonce
	// took its place.
	Replaced
	// Dropped means that the transaction left the pool for Event.Reason.
	Dropped
	// Included means that the transaction left in a committed bundle or a
	// block.
	Included
	// FloorChanged means that the floor changed with a block.
	FloorChanged
	// Missed means that the subscription was too slow and lost Event.Missed
	// events.
	Missed
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"", "pending", "queued", "parked", "promoted", "replaced", "dropped", "included", "floor changed", "missed"}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Event is a change in the pool. The first event of an admitted transaction has
// Admitted set, and exactly one event of kind Replaced, Dropped or Included is
// its last (invariant I11). If its block is reverted, it is admitted again. If
// the pool holds it aside (StatusHeld), it is later admitted or dropped.
type Event struct {
	// Kind is the kind of change.
	Kind Kind
	// Admitted is set in the first event of a transaction.
	Admitted bool
	// Private is set if the transaction was added by AddPrivate. It must not be
	// shown to outsiders.
	Private bool
	// Tx is the transaction, and Sender its sender.
	Tx     *types.Transaction
	Sender common.Address
	// Age is the time that a leaving transaction spent in the pool.
	Age time.Duration
	// By is the hash of the replacing transaction, if Kind is Replaced.
	By common.Hash
	// Reason is why the transaction was dropped, if Kind is Dropped. It wraps
	// an error of this package or is the host's.
	Reason error
	// Floor is the new floor in wei per gas, if Kind is FloorChanged.
	Floor uint64
	// Missed is the number of lost events, if Kind is Missed.
	Missed int
}

// change carries one change of the pool to those outside of the core: an event to
// the observers, a record to the journal, or both.
type change struct {
	event  Event  // of Kind 0 if observers get none
	record []byte // nil if the journal gets none
	// displaced is set if the transaction leaves because of a newcomer, whose event
	// follows.
	displaced bool
}

// emit records an event about an entry.
func (c *core) emit(event Event, e *entry) {
	if e != nil {
		event.Tx, event.Sender, event.Private = e.tx, e.account.address, e.private
	}
	var record []byte
	left := event.Kind == Dropped || event.Kind == Replaced
	switch {
	case left:
		if e != nil {
			event.Age = c.age(e)
		}
		record = c.depart(event.departure(c.now))
	case event.Kind == Included:
		event.Age = c.age(e)
		if c.journaling() && !c.recorded {
			record = encode(recordIncluded, e.inclusion())
		}
	case event.Admitted && c.journaling() && !c.restoring:
		record = e.past().addedRecord()
	}
	if left && c.entering && c.journaling() {
		c.makingWay = append(c.makingWay, e)
	}
	if event.Kind == Dropped && c.displaced != nil {
		c.displaced = append(c.displaced, Displaced{Tx: event.Tx, Err: event.Reason})
	}
	if c.listening {
		c.changes = append(c.changes, change{event, record, left && c.entering})
	}
}

// age returns the time since the admission of an entry.
func (c *core) age(e *entry) time.Duration { return time.Duration(max(c.now-e.at, 0)) }

// note hands over a record for the journal of a change that observers do not see.
func (c *core) note(record []byte) {
	if c.journaling() {
		c.changes = append(c.changes, change{record: record})
	}
}

func (c *core) journaling() bool { return c.cfg.Journal != nil }

// depart remembers a departure and returns its record for the journal, if there is
// one.
func (c *core) depart(d Departure) []byte {
	c.departures.put(d.Hash, d, d.At.UnixNano())
	if !c.journaling() {
		return nil
	}
	return d.record()
}

// emitMove records an event with the new status of an entry.
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
	c.entering = c.entering && !admitted
}
