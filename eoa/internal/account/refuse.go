package account

import (
	"fmt"
	"time"
)

// postpone delays requests that cannot be estimated, paid for or signed now, so
// that others go first. The delay equals the time that the request has already
// waited, but is at least Config.Retry and at most one minute.
func (v *View) postpone(c *Rules, now time.Time, refused []Refusal) Batch {
	b := v.Batch()
	for _, f := range refused {
		r := f.Record.clone()
		r.Reason, r.NotBefore = f.Reason, now.Add(min(max(now.Sub(r.QueuedAt), c.Retry), MaxRetry))
		b.Records = append(b.Records, r)
	}
	return b
}

// refuse fails requests that would revert, according to the node; nothing was
// signed for them. If a transaction of the account was mined only a few blocks ago,
// the node may have tried the request on an older state. The request is then only
// delayed, and fails if it still reverts some blocks later.
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

// askedAgain is the Reason of a request whose revert is checked again some blocks
// later, because a transaction of the account was mined just before. The number is
// the height at which the request first reverted.
const askedAgain = "reverted at block %d, soon after a transaction of the account"

// revertMayBeStale reports whether a revert may come from a node that is some
// blocks behind, so that the gas must be estimated again. reason is the request's
// Reason until then. On a chain that makes no new blocks, a revert counts once
// Fees.StallTimeout has passed since the request was queued.
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
