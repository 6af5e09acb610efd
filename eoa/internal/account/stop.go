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

// stop stops the account and adds an event about it.
func (b *Batch) stop(now time.Time, cause Cause, reason string) {
	// If the account is already stopped, the first cause stays.
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

// resume lets a stopped account go on as if it were new.
func (b *Batch) resume(now time.Time) {
	// An account that is not stopped cannot be resumed, with one exception: before the first
	// Look, an operator may confirm that the account's earlier transactions were sent without
	// this store.
	if b.Head.Stop.Cause == CauseNone && b.Head.Started {
		return
	}
	if b.Head.Stop.Cause == CauseOtherChain {
		// Forget the counts of the other chain.
		b.Head.Floor, b.Head.Count = 0, 0
	}
	// With Started false, the next Look sets the next nonce again, behind all transactions
	// that the node knows.
	b.Head.Stop, b.Head.BelowSince, b.Head.AheadSince, b.Head.Started = Stop{}, time.Time{}, time.Time{}, false
	b.Head.Resumes++
	b.Head.Accepted = max(b.Head.Accepted, b.Head.Next)
	b.Events = append(b.Events, Event{Kind: EventResumed, At: now, Nonce: b.Head.Next})
}

// findUnknownUse stops an exclusive account if the chain has transactions unknown
// to the store.
func (v *View) findUnknownUse(b *Batch, c *Rules, now time.Time, used uint64) {
	switch {
	case used <= max(b.Head.Next, b.Head.Accepted):
	// The store knew the account, but has lost writes.
	case b.Head.Started:
		b.unknownUse(c, now, fmt.Sprintf("the node has %d transactions of the account, and the store has assigned %d nonces", used, b.Head.Next))
	// The store does not know the account at all, although the chain has transactions of it.
	// The store may have lost everything, so an exclusive account stops until an operator
	// confirms that this is right.
	case b.Head.Resumes == 0:
		b.unknownUse(c, now, fmt.Sprintf("the node has %d transactions of the account, and the store knows nothing of the account; if they were not sent with this store, resume the account", used))
	}
}

// unknownUse stops an exclusive account that has a transaction unknown to the
// store.
func (b *Batch) unknownUse(c *Rules, now time.Time, evidence string) {
	// No other program signs for an exclusive account. An unknown transaction therefore proves
	// that the store has lost writes.
	if c.Exclusive {
		b.stop(now, CauseRolledBack, evidence)
	}
}
