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
	// CauseRolledBack means that the store lost writes; see ErrStoreRolledBack.
	CauseRolledBack
	// CauseOtherChain means that the node is on another chain; see
	// ErrOtherChain.
	CauseOtherChain
)

// Stop is a halt of an account. It is stored, so that no worker goes on until
// an operator calls [Client.Resume].
type Stop struct {
	// Cause is why the account stopped; CauseNone if it is not stopped.
	Cause Cause `json:"cause,omitempty"`
	// At is when it stopped.
	At time.Time `json:"at,omitzero"`
	// Reason describes the evidence.
	Reason string `json:"reason,omitempty"`
}

// Err returns nil if the account is not stopped. Otherwise the error wraps
// ErrStopped, and ErrStoreRolledBack or ErrOtherChain.
func (s *Stop) Err() error {
	switch s.Cause {
	case CauseNone:
		return nil
	case CauseRolledBack:
		return fmt.Errorf("%w: %w: %s", ErrStopped, ErrStoreRolledBack, s.Reason)
	case CauseOtherChain:
		return fmt.Errorf("%w: %w: %s", ErrStopped, ErrOtherChain, s.Reason)
	}
	return fmt.Errorf("%w: cause %d: %s", ErrStopped, s.Cause, s.Reason)
}

// stop stops the account, with an event. The first cause stays.
func (b *Batch) stop(now time.Time, cause Cause, reason string) {
	if b.Head.Stop.Cause == CauseNone {
		b.Head.Stop = Stop{Cause: cause, At: now, Reason: reason}
		b.Events = append(b.Events, Event{Kind: EventStopped, At: now, Nonce: b.Head.Next, Reason: b.Head.Stop.Err().Error()})
	}
}

// rolledBack stops the account because the store lost writes.
func (v *View) rolledBack(now time.Time, evidence string) Batch {
	b := v.Batch()
	b.stop(now, CauseRolledBack, evidence)
	return b
}

// resume lets a stopped account go on. It begins as if it were new: the next
// nonce moves behind the transactions that the node knows. On another chain, the
// counts of the old one are forgotten. Before the first look at the chain,
// resume accepts the transactions that the account has sent without this store.
func (b *Batch) resume(now time.Time) {
	if b.Head.Stop.Cause == CauseNone && b.Head.Started {
		return
	}
	if b.Head.Stop.Cause == CauseOtherChain {
		b.Head.Floor, b.Head.Count = 0, 0
	}
	b.Head.Stop, b.Head.BelowSince, b.Head.Started = Stop{}, time.Time{}, false
	b.Head.Resumes++
	b.Head.Accepted = max(b.Head.Accepted, b.Head.Next)
	b.Events = append(b.Events, Event{Kind: EventResumed, At: now, Nonce: b.Head.Next})
}

// doubts returns why nothing may be decided on the transaction count of look; ""
// if something may. The batch remembers since when.
func (v *View) doubts(c *Rules, now time.Time, look *Look) (b Batch, why string) {
	b = v.Batch()
	switch {
	case v.belowFloor(&b, c, now, look):
		return b, "node has fewer transactions than a finalized block had"
	case v.ahead(&b, c, now, look):
		return b, "node has transactions that were not assigned"
	}
	return b, ""
}

// belowFloor reports whether the account has fewer transactions in look than a
// finalized block had. A node that is far behind shows that for a while. If it
// lasts for Fees.StallTimeout, the node is on another chain, and the account
// stops.
func (v *View) belowFloor(b *Batch, c *Rules, now time.Time, look *Look) bool {
	since := &b.Head.BelowSince
	switch {
	case look.Latest >= v.Head.Floor:
		*since = time.Time{}
		return false
	case since.IsZero() || since.After(now):
		*since = now
	case now.Sub(*since) >= c.Fees.StallTimeout:
		b.stop(now, CauseOtherChain, fmt.Sprintf("block %d has %d transactions of the account, want at least %d", look.Number, look.Latest, v.Head.Floor))
	}
	return true
}

// ahead reports whether the account has more transactions in look than nonces
// were ever assigned, and that is not believed yet. One wrong answer would open a
// gap that is paid for with noops, so another look must agree, at least
// Config.Retry later.
func (v *View) ahead(b *Batch, c *Rules, now time.Time, look *Look) bool {
	since := &b.Head.AheadSince
	switch {
	case !v.Head.Started || look.Latest <= v.Head.Next:
		*since = time.Time{}
		return false
	case since.IsZero() || since.After(now):
		*since = now
	}
	return now.Sub(*since) < c.Retry
}

// findUnknownUse stops an exclusive account that has used more nonces than the
// store knows. An account about which the store knows nothing is not new if it
// has used any: the store may have lost all of it. After a resume, the operator
// has accepted what the node shows first.
func (v *View) findUnknownUse(b *Batch, c *Rules, now time.Time, used uint64) {
	switch {
	case used <= max(b.Head.Next, b.Head.Accepted):
	case b.Head.Started:
		b.unknownUse(c, now, fmt.Sprintf("the node has %d transactions of the account, and the store has assigned %d nonces", used, b.Head.Next))
	case b.Head.Resumes == 0:
		b.unknownUse(c, now, fmt.Sprintf("the node has %d transactions of the account, and the store knows nothing of the account; if they were not sent with this store, resume the account", used))
	}
}

// unknownUse stops an exclusive account because of a transaction that the store
// does not know.
func (b *Batch) unknownUse(c *Rules, now time.Time, evidence string) {
	if c.Exclusive {
		b.stop(now, CauseRolledBack, evidence)
	}
}
