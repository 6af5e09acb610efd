package account

import (
	"fmt"
	"time"
)

// postpone delays requests that cannot be estimated, paid for or signed now, so
// that they do not hold up others. The delay equals the time since they were
// queued, but at least Config.Retry and at most one minute.
func (v *View) postpone(c *Rules, now time.Time, refused []Refusal) Batch {
	b := v.Batch()
	for _, f := range refused {
		r := f.Record.clone()
		r.Reason, r.NotBefore = f.Reason, now.Add(min(max(now.Sub(r.QueuedAt), c.Retry), MaxRetry))
		b.Records = append(b.Records, r)
	}
	return b
}

// refuse fails requests that the node reports to revert. They have no nonce and
// nothing was signed for them. If a transaction of the account was mined a
// moment ago, the node may have executed the call on a state before it. Such a
// request is postponed first, and fails if it still reverts some blocks later.
func (v *View) refuse(c *Rules, now time.Time, refused []Refusal) Batch {
	var early []Refusal
	b := v.Batch()
	for _, f := range refused {
		if again, reason := v.asksAgain(c, now, &f.Record); again {
			early = append(early, Refusal{f.Record, reason})
			continue
		}
		r := f.Record.clone()
		r.Reason = f.Reason
		b.move(now, &r, Failed, EventFailed)
		b.Records = append(b.Records, r)
	}
	b.Records = append(b.Records, v.postpone(c, now, early).Records...)
	return b
}

// askedAgain is the reason of a request that waits because it reverted at a
// block soon after one with a transaction of the account.
const askedAgain = "reverted at block %d, soon after a transaction of the account"

// asksAgain reports whether a revert may come from a node that is behind, and
// the reason of the request until it is estimated again. On a chain that makes
// no blocks, the revert counts Fees.StallTimeout after the request was queued.
func (v *View) asksAgain(c *Rules, now time.Time, r *Record) (again bool, reason string) {
	var first uint64
	_, err := fmt.Sscanf(r.Reason, askedAgain, &first)
	switch {
	case v.mined == 0 || v.seen.Number > v.mined+nodeLag:
		return false, ""
	case err != nil:
		return true, fmt.Sprintf(askedAgain, v.seen.Number)
	}
	return v.seen.Number <= first+nodeLag && now.Sub(r.QueuedAt) < c.Fees.StallTimeout, r.Reason
}
