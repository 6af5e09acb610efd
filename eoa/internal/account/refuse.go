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
		// The longer a request has waited already, the longer it is delayed, so that it does
		// not keep others waiting. The delay is at least Config.Retry and at most one minute.
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
		// The node may not have known the newest block when it tried the request. In that case
		// the request is tried again later.
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

// askedAgain is the text in Record.Reason while a reverted request waits to be tried
// again. It is tried again if a transaction of the account was mined just before, because
// the node may not have known that block. The number in the text is the height of the
// first try.
const askedAgain = "reverted at block %d, soon after a transaction of the account"

// revertMayBeStale reports whether the node may have tried the request on an old
// state.
func (v *View) revertMayBeStale(c *Rules, now time.Time, r *Record) (again bool, reason string) {
	var first uint64
	_, err := fmt.Sscanf(r.Reason, askedAgain, &first)
	switch {
	// The last transaction of the account was mined some blocks ago. The executor assumes that
	// every node knows its effects by now, so the revert counts.
	case v.mined == 0 || v.LastLook.Number > v.mined+nodeLag:
		return false, ""
	// This is the first revert, and the request's Reason remembers its height.
	case err != nil:
		return true, fmt.Sprintf(askedAgain, v.LastLook.Number)
	}
	// The request is tried again until some blocks have passed. If it still reverts then, it
	// fails. On a chain without new blocks it fails after Fees.StallTimeout.
	return v.LastLook.Number <= first+nodeLag && now.Sub(r.QueuedAt) < c.Fees.StallTimeout, r.Reason
}
