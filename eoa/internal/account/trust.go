package account

import (
	"fmt"
	"time"
)

// Trust decides whether the executor may act on look, a node's report about the
// account. If the report contradicts an earlier report or the store, Trust returns
// an error and the report is not used. The batch records when the contradiction
// began, and stops the account if the contradiction lasts.
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

// belowFloor reports whether look shows fewer transactions than a finalized block
// had.
func (v *View) belowFloor(b *Batch, c *Rules, now time.Time, look *Look) bool {
	h := &b.Head
	if look.Latest >= v.Head.Floor {
		h.BelowSince, h.BelowAt = time.Time{}, time.Time{}
		return false
	}
	// A node that is far behind does this for a while. If it lasts, the node must
	// be on another chain.
	if lasts(&h.BelowSince, &h.BelowAt, now, c.Fees.StallTimeout) {
		b.stop(now, CauseOtherChain, fmt.Sprintf("block %d has %d transactions of the account, want at least %d", look.Number, look.Latest, v.Head.Floor))
	}
	return true
}

// ahead reports whether look must wait until a later report confirms it.
func (v *View) ahead(b *Batch, c *Rules, now time.Time, look *Look) bool {
	since, used := &b.Head.AheadSince, look.Latest
	// Transactions in the node's pool count as well for an exclusive account, and
	// for a new account, whose first nonce is taken from Pending.
	if (c.Exclusive || !v.Head.Started) && look.Pending > v.Head.Accepted {
		used = max(used, look.Pending)
	}
	switch {
	case used <= v.Head.Next:
		*since = time.Time{}
		return false
	// The chain shows more transactions than nonces were assigned. A single wrong
	// answer must not leave a gap or stop the account, so wait until a report at
	// least Config.Retry later shows the same.
	case since.IsZero() || since.After(now):
		*since = now
	}
	// If the node were a block behind, another transaction would have the first
	// nonce. The next report must therefore not be of a lower height.
	if !v.Head.Started {
		v.height = max(v.height, look.Number)
	}
	return now.Sub(*since) < c.Retry
}

// behind reports whether look is older than a report that was already acted on.
func (v *View) behind(c *Rules, now time.Time, look *Look) bool {
	if look.Number >= v.height && (v.LastLook == nil || look.Finalized >= v.LastLook.Finalized) {
		v.laggingSince, v.laggingAt = time.Time{}, time.Time{}
		return false
	}
	// If all reports are too old for Fees.StallTimeout, the chain itself must have
	// gone back.
	return !lasts(&v.laggingSince, &v.laggingAt, now, c.Fees.StallTimeout)
}

// pauses is over how many intervals between reports a contradiction must last.
const pauses = 4

// lasts reports whether reports have contradicted earlier knowledge for the time
// long.
func lasts(since, at *time.Time, now time.Time, long time.Duration) bool {
	// since is when the contradiction began, and at is the time of the last such
	// report.
	if since.IsZero() || at.IsZero() || since.After(now) {
		*since, *at = now, now
	}
	// A pause without any report counts only in part, because nothing is known
	// about the node in that time.
	*since = since.Add(max(0, now.Sub(*at)-long/pauses))
	*at = now
	return now.Sub(*since) >= long
}
