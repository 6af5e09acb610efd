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
	// Included means that the transaction left in a block.
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

// Event is a change in the pool. The first event about an admitted transaction has Admitted set.
// Exactly one event of the kind Replaced, Dropped or Included is its last one (invariant I11). If
// its block is reverted, the transaction is admitted again. If the pool holds it aside
// (StatusHeld), it is later admitted or dropped.
type Event struct {
	// Kind is the kind of change.
	Kind Kind
	// Admitted is true in the first event about a transaction.
	Admitted bool
	// Private is true if the transaction was added by AddPrivate. The host must not show it to
	// others.
	Private bool
	// Tx is the transaction, and Sender its sender.
	Tx     *types.Transaction
	Sender common.Address
	// Age is the time since the transaction was admitted.
	Age time.Duration
	// By is the hash of the replacing transaction, if Kind is Replaced.
	By common.Hash
	// Reason is why the transaction was dropped, if Kind is Dropped. It wraps an error of this
	// package, or is the host's error.
	Reason error
}

// emitEvent records an event about an entry, if there is an observer. If the transaction leaves the
// pool, it also records the departure.
func (c *core) emitEvent(event Event, e *entry) {
	if e != nil {
		event.Tx, event.Sender, event.Private, event.Age = e.tx, e.account.address, e.private, c.age(e)
	}
	if event.Kind == Dropped || event.Kind == Replaced {
		c.recordDeparture(event.departure(c.now))
	}
	if event.Kind == Dropped && c.displaced != nil {
		c.displaced = append(c.displaced, Displaced{Tx: event.Tx, Err: event.Reason})
	}
	if c.cfg.Observe != nil {
		c.events = append(c.events, event)
	}
}

// age returns the time since the admission of an entry.
func (c *core) age(e *entry) time.Duration { return time.Duration(max(c.now-e.at, 0)) }

// recordChange keeps a record of a change, until the host takes it with TakeChanges.
func (c *core) recordChange(record []byte) { c.changes = append(c.changes, record) }

// recordAdmission records that a transaction is in the pool from now on, or held aside.
func (c *core) recordAdmission(o *past) {
	if c.cfg.KeepChanges && !c.restoring {
		c.recordChange(o.addedRecord())
	}
}

// recordKept records whether the caps do not apply to an entry any more: see entry.keeps.
func (c *core) recordKept(e *entry) {
	if c.cfg.KeepChanges && !c.restoring {
		c.recordChange(encode(recordRoom, e.hash(), e.exempt, e.ran))
	}
}

// recordDeparture remembers why a transaction has left the pool, for Pool.Departure.
func (c *core) recordDeparture(d Departure) {
	c.departures.remember(d.Hash, d, d.At.UnixNano())
	if c.cfg.KeepChanges {
		c.recordChange(d.record())
	}
}

// emitMove records an event about an entry that has another status now.
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
