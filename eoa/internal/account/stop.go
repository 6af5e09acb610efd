package account

import (
	"fmt"
	"time"
)

// Cause is why an account is stopped.
type Cause uint8

const (
	// CauseNone means that the account is not stopped.
	CauseNone Cause = iota
	// CauseRolledBack means that the store has lost writes; see ErrStoreRolledBack.
	CauseRolledBack
	// CauseOtherChain means that the node is on another chain; see
	// ErrOtherChain.
	CauseOtherChain
)

// Stop records why an account is stopped. It is stored, so that no worker goes on
// before an operator calls [Client.Resume].
type Stop struct {
	// Cause is why the account stopped; CauseNone if it is not stopped.
	Cause Cause `json:"cause,omitempty"`
	// At is when the account stopped.
	At time.Time `json:"at,omitzero"`
	// Reason describes the evidence for the cause.
	Reason string `json:"reason,omitempty"`
}

// Err returns nil if the account is not stopped. Otherwise the error wraps
// ErrStopped and also ErrStoreRolledBack or ErrOtherChain.
func (s *Stop) Err() error {
	switch s.Cause {
	case CauseNone:
		return nil
	case CauseRolledBack:
		return fmt.Errorf("%w: %w: %s", ErrStopped, ErrStoreRolledBack, s.Reason)
	}
	return fmt.Errorf("%w: %w: %s", ErrStopped, ErrOtherChain, s.Reason)
}

// stop stops the account and adds an event about it. If the account is already
// stopped, the first cause stays.
func (b *Batch) stop(now time.Time, cause Cause, reason string) {
	if b.Head.Stop.Cause == CauseNone {
		b.Head.Stop = Stop{Cause: cause, At: now, Reason: reason}
		b.Events = append(b.Events, Event{Kind: EventStopped, At: now, Nonce: b.Head.Next, Reason: b.Head.Stop.Err().Error()})
	}
}

// StopRolledBack stops the account because the store lost writes.
func (v *View) StopRolledBack(now time.Time, evidence string) Batch {
	b := v.Batch()
	b.stop(now, CauseRolledBack, evidence)
	return b
}

// resume lets a stopped account go on as if it were new: the next Look sets the
// next nonce behind all transactions that the node knows. If the node was on
// another chain, the counts of that chain are forgotten. An operator may also
// resume an account before its first Look, to confirm that its earlier transactions
// were sent without this store.
func (b *Batch) resume(now time.Time) {
	if b.Head.Stop.Cause == CauseNone && b.Head.Started {
		return
	}
	if b.Head.Stop.Cause == CauseOtherChain {
		b.Head.Floor, b.Head.Count = 0, 0
	}
	b.Head.Stop, b.Head.BelowSince, b.Head.AheadSince, b.Head.Started = Stop{}, time.Time{}, time.Time{}, false
	b.Head.Resumes++
	b.Head.Accepted = max(b.Head.Accepted, b.Head.Next)
	b.Events = append(b.Events, Event{Kind: EventResumed, At: now, Nonce: b.Head.Next})
}

// findUnknownUse stops an exclusive account if the chain shows more used nonces
// than the store knows, because the store must then have lost writes. This includes
// a store that knows nothing of the account, because it may have lost everything.
// After a resume, the first trusted Look is accepted.
func (v *View) findUnknownUse(b *Batch, c *Rules, now time.Time, used uint64) {
	switch {
	case used <= max(b.Head.Next, b.Head.Accepted):
	case b.Head.Started:
		b.unknownUse(c, now, fmt.Sprintf("the node has %d transactions of the account, and the store has assigned %d nonces", used, b.Head.Next))
	case b.Head.Resumes == 0:
		b.unknownUse(c, now, fmt.Sprintf("the node has %d transactions of the account, and the store knows nothing of the account; if they were not sent with this store, resume the account", used))
	}
}

// unknownUse stops the account if only this store's executors may sign for it. The
// chain has a transaction of the account that the store does not know, so the store
// must have lost writes. evidence describes that transaction for the operator.
func (b *Batch) unknownUse(c *Rules, now time.Time, evidence string) {
	if c.Exclusive {
		b.stop(now, CauseRolledBack, evidence)
	}
}
