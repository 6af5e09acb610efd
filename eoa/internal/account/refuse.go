package account

import (
	"fmt"
	"time"
)

// postpone delays requests that cannot be estimated, paid for or signed now, so that others
// go first. The wait is as long as the request has been waiting already, at least
// Config.Retry and at most one minute.
func (v *View) postpone(c *Rules, now time.Time, refused []Refusal) Batch {
	b := v.Batch()
	for _, f := range refused {
		r := f.Record.clone()
		r.Reason, r.NotBefore = f.Reason, now.Add(min(max(now.Sub(r.QueuedAt), c.Retry), MaxRetry))
		b.Records = append(b.Records, r)
	}
	return b
}

// refuse fails requests that would revert according to the node. Nothing was signed for them.
// If a transaction of the account was mined a moment ago, the node may have tried the request
// on a state before it. Such a request is only delayed, and fails if it still reverts some
// blocks later.
func (v *View) refuse(c *Rules, now time.Time, refused []Refusal) Batch {
	var early []Refusal
	b := v.Batch()
	for _, f := range refused {
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

// askedAgain is the reason of a request that reverted so soon after a transaction of the
// account that it is estimated again. It has the height of that revert.
const askedAgain = "reverted at block %d, soon after a transaction of the account"

// revertMayBeStale reports whether a revert may come from a node that is some blocks behind.
// reason is then the reason of the request until it is estimated again. On a chain that makes
// no blocks, a revert is believed Fees.StallTimeout after the request was queued.
func (v *View) revertMayBeStale(c *Rules, now time.Time, r *Record) (again bool, reason string) {
	var first uint64
	_, err := fmt.Sscanf(r.Reason, askedAgain, &first)
	switch {
	case v.mined == 0 || v.LastLook.Number > v.mined+nodeLag:
		return false, ""
	case err != nil:
		return true, fmt.Sprintf(askedAgain, v.LastLook.Number)
	}
	return v.LastLook.Number <= first+nodeLag && now.Sub(r.QueuedAt) < c.Fees.StallTimeout, r.Reason
}
