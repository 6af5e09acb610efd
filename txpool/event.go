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
	// Parked means that a transaction was admitted as parked or became parked, because it, or one
	// before it in the sender's chain, does not pay the floor or the base fee.
	Parked
	// Promoted means that a queued or parked transaction can run now.
	Promoted
	// Replaced means that the transaction has left the pool, because a newer transaction of the
	// same sender and nonce took its place.
	Replaced
	// Dropped means that the transaction left the pool for Event.Reason.
	Dropped
	// Included means that the transaction left the pool in a block.
	Included
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"", "pending", "queued", "parked", "promoted", "replaced", "dropped", "included"}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Event is a change in the pool that concerns one transaction. The first event
// about an admitted transaction has Admitted set. The last one has kind Replaced,
// Dropped or Included, and there is exactly one such event (invariant I11).
//
// If the block of an included transaction is reverted, the transaction is admitted again, with a
// new first event. If the pool holds the transaction aside instead (StatusHeld), it is later
// admitted or dropped.
type Event struct {
	// Kind is the kind of change.
	Kind Kind
	// Admitted is true in the first event about a transaction.
	Admitted bool
	// Private is true if the transaction was added by AddPrivate. The host must then not show the
	// transaction to others.
	Private bool
	// Tx is the transaction, and Sender its sender.
	Tx     *types.Transaction
	Sender common.Address
	// Age is the time since the transaction was admitted.
	Age time.Duration
	// By is the hash of the replacing transaction, if Kind is Replaced.
	By common.Hash
	// Reason is why the transaction was dropped, if Kind is Dropped. It wraps an error of this
	// package, or it is the error of the host.
	Reason error
}

// emitEvent queues an event about a transaction for Config.Observe.
func (c *core) emitEvent(event Event, e *entry) {
	if e != nil {
		event.Tx, event.Sender, event.Private, event.Age = e.tx, e.account.address, e.private, c.age(e)
	}
	if event.Kind == Dropped || event.Kind == Replaced {
		// The reason is kept for Pool.Departure.
		c.recordDeparture(event.departure(c.now))
	}
	// A Reset is running, which returns the transactions that it dropped.
	if event.Kind == Dropped && c.displaced != nil {
		c.displaced = append(c.displaced, Displaced{Tx: event.Tx, Err: event.Reason})
	}
	if c.cfg.Observe != nil {
		c.events = append(c.events, event)
	}
}

// age returns the time since the admission of an entry.
func (c *core) age(e *entry) time.Duration { return time.Duration(max(c.now-e.at, 0)) }

// recordChange stores a record until the host takes it with TakeChanges.
func (c *core) recordChange(record []byte) { c.changes = append(c.changes, record) }

// recordAdmission records that a transaction is in the pool or held aside.
func (c *core) recordAdmission(o *past) {
	if c.cfg.KeepChanges && !c.restoring {
		// Without this record, a restart would lose the transaction.
		c.recordChange(o.addedRecord())
	}
}

// recordKept records whether a transaction is exempt from the caps, and could run
// before.
func (c *core) recordKept(e *entry) {
	if c.cfg.KeepChanges && !c.restoring {
		c.recordChange(encode(recordRoom, e.hash(), e.exempt, e.ran))
	}
}

// recordDeparture stores why a transaction left, also in a record for restarts.
func (c *core) recordDeparture(d Departure) {
	c.departures.remember(d.Hash, d, d.At.UnixNano())
	if c.cfg.KeepChanges {
		c.recordChange(d.record())
	}
}

// emitMove queues the event about a transaction whose status has changed.
func (c *core) emitMove(e *entry, admitted bool) {
	if c.cfg.Observe == nil {
		return
	}
	kind := [...]Kind{queued: Queued, parked: Parked, ready: Promoted}[e.status]
	if admitted && e.status == ready {
		kind = Pending
	}
	c.emitEvent(Event{Kind: kind, Admitted: admitted}, e)
}
