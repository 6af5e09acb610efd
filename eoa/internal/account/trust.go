package account

import (
	"fmt"
	"time"
)

// Trust decides whether the executor may act on look, a node's report about the
// account. If the report contradicts an earlier one or the store, Trust returns an
// error and the report is not used. The batch records since when this has been so,
// and stops the account if it lasts.
func (v *View) Trust(c *Rules, now time.Time, look *Look) (b Batch, err error) {
	b = v.Batch()
	doubt := func(why string) error {
		return fmt.Errorf("%s: count %d, pending %d, want %d to %d", why, look.Latest, look.Pending, v.Head.Floor, v.Head.Next)
	}
	switch {
	case v.belowFloor(&b, c, now, look):
		err = doubt("node has fewer transactions than a finalized block had")
	case v.ahead(&b, c, now, look):
		err = doubt("node has transactions that were not assigned")
	case v.behind(c, now, look):
		err = fmt.Errorf("node is behind: head %d, finalized %d", look.Number, look.Finalized)
	}
	return b, err
}

// belowFloor reports whether look shows fewer transactions of the account than a
// finalized block had. A node that is far behind does that for a while. If all
// reports do so for Fees.StallTimeout, the node must be on another chain, and the
// account stops.
func (v *View) belowFloor(b *Batch, c *Rules, now time.Time, look *Look) bool {
	h := &b.Head
	if look.Latest >= v.Head.Floor {
		h.BelowSince, h.BelowAt = time.Time{}, time.Time{}
		return false
	}
	if lasts(&h.BelowSince, &h.BelowAt, now, c.Fees.StallTimeout) {
		b.stop(now, CauseOtherChain, fmt.Sprintf("block %d has %d transactions of the account, want at least %d", look.Number, look.Latest, v.Head.Floor))
	}
	return true
}

// ahead reports whether look must be confirmed first, because it shows more
// transactions of the account than nonces were assigned. It is confirmed if a
// report at least Config.Retry later shows the same. Otherwise a single wrong
// answer could leave a gap, which costs fees to fill, or stop an exclusive
// account. For an exclusive account, transactions in the node's pool count as
// well.
//
// The first report about an account that is new to the store is confirmed in the
// same way, because the first nonce is taken from it. If the node were a block
// behind, another transaction would have that nonce. The second report must not be
// of a lower height.
func (v *View) ahead(b *Batch, c *Rules, now time.Time, look *Look) bool {
	since, used := &b.Head.AheadSince, look.Latest
	if (c.Exclusive || !v.Head.Started) && look.Pending > v.Head.Accepted {
		used = max(used, look.Pending)
	}
	switch {
	case used <= v.Head.Next:
		*since = time.Time{}
		return false
	case since.IsZero() || since.After(now):
		*since = now
	}
	if !v.Head.Started {
		v.height = max(v.height, look.Number)
	}
	return now.Sub(*since) < c.Retry
}

// behind reports whether look is older than a report that this or an earlier
// worker has acted on, so that nothing may be decided on it. If all reports are
// too old for Fees.StallTimeout, the chain itself must have gone back, and behind
// returns false.
func (v *View) behind(c *Rules, now time.Time, look *Look) bool {
	if look.Number >= v.height && (v.LastLook == nil || look.Finalized >= v.LastLook.Finalized) {
		v.laggingSince, v.laggingAt = time.Time{}, time.Time{}
		return false
	}
	return !lasts(&v.laggingSince, &v.laggingAt, now, c.Fees.StallTimeout)
}

// pauses is over how many intervals between reports a contradiction must last.
const pauses = 4

// lasts is called for each report that contradicts earlier knowledge, and tells
// whether all reports have done so for the time long. since is when the
// contradiction began, and at is the time of the last such report; both are zero
// before the first one. A pause without any successful report counts only in part,
// by moving since forward, because nothing is known about the node in that time.
func lasts(since, at *time.Time, now time.Time, long time.Duration) bool {
	if since.IsZero() || at.IsZero() || since.After(now) {
		*since, *at = now, now
	}
	*since = since.Add(max(0, now.Sub(*at)-long/pauses))
	*at = now
	return now.Sub(*since) >= long
}
