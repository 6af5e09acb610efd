package account

import (
	"fmt"
	"time"
)

// postpone delays requests that cannot be estimated, paid for or signed now.
func (v *View) postpone(c *Rules, now time.Time, refused []Refusal) Batch {
	b := v.Batch()
	for _, f := range refused {
		r := f.Record.clone()
		// The delay equals the time that the request has waited so far, within
		// Config.Retry and one minute, so that other requests go first.
		r.Reason, r.NotBefore = f.Reason, now.Add(min(max(now.Sub(r.QueuedAt), c.Retry), MaxRetry))
		b.Records = append(b.Records, r)
	}
	return b
}

// refuse fails requests that would revert, according to the node.
func (v *View) refuse(c *Rules, now time.Time, refused []Refusal) Batch {
	var early []Refusal
	b := v.Batch()
	for _, f := range refused {
		// The node may have tried the request on an older state. Then the request
		// is only delayed.
		if again, reason := v.revertMayBeStale(c, now, &f.Record); again {
			early = append(early, Refusal{f.Record, reason})
			continue
		}
		r := f.Record.clone()
		r.Reason = f.Reason
		b.changeState(now, &r, Failed, EventFailed)
		b.Records = append(b.Records, r)
	}
	b.Records = append(b.Records, v.postpone(c, now, early).Records...)
	return b
}

// askedAgain is the Reason of a request whose revert is checked again some blocks
// later, because a transaction of the account was mined just before. The number is
// the height at which the request first reverted.
const askedAgain = "reverted at block %d, soon after a transaction of the account"

// revertMayBeStale reports whether the node may have tried the request on an old
// state.
func (v *View) revertMayBeStale(c *Rules, now time.Time, r *Record) (again bool, reason string) {
	var first uint64
	_, err := fmt.Sscanf(r.Reason, askedAgain, &first)
	switch {
	// No transaction of the account was mined in the last few blocks, so the node's
	// state is new enough.
	case v.mined == 0 || v.LastLook.Number > v.mined+nodeLag:
		return false, ""
	// This is the first revert, and the request's Reason remembers its height.
	case err != nil:
		return true, fmt.Sprintf(askedAgain, v.LastLook.Number)
	}
	// The request fails if it still reverts some blocks later. On a chain that
	// makes no new blocks, it fails after Fees.StallTimeout.
	return v.LastLook.Number <= first+nodeLag && now.Sub(r.QueuedAt) < c.Fees.StallTimeout, r.Reason
}
