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
	// A node that is behind reports too few transactions for a while. If this lasts, the node
	// must be on another chain, and the account stops.
	if lasts(&h.BelowSince, &h.BelowAt, now, c.Fees.StallTimeout) {
		b.stop(now, CauseOtherChain, fmt.Sprintf("block %d has %d transactions of the account, want at least %d", look.Number, look.Latest, v.Head.Floor))
	}
	return true
}

// ahead reports whether look must wait until a later report confirms it.
func (v *View) ahead(b *Batch, c *Rules, now time.Time, look *Look) bool {
	since, used := &b.Head.AheadSince, look.Latest
	// For an exclusive account, and for a new one, the transactions in the node's pool count
	// as well: an exclusive account must have no unknown ones, and a new account takes its
	// first nonce from Pending.
	if (c.Exclusive || !v.Head.Started) && look.Pending > v.Head.Accepted {
		used = max(used, look.Pending)
	}
	switch {
	case used <= v.Head.Next:
		*since = time.Time{}
		return false
	// The node reports more transactions than this store has assigned nonces. One answer may
	// be wrong, and acting on it would leave a gap in the nonces, so a report at least
	// Config.Retry later must confirm it.
	case since.IsZero() || since.After(now):
		*since = now
	}
	// The first nonce of a new account comes from the next report. A report of an older block
	// could name a nonce that is already used, so it is not accepted.
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
	// Every report is older than one before it. If this has lasted for Fees.StallTimeout, no
	// node is merely behind: the chain itself has gone back.
	return !lasts(&v.laggingSince, &v.laggingAt, now, c.Fees.StallTimeout)
}

// pauses is over how many intervals between reports a contradiction must last.
const pauses = 4

// lasts reports whether reports have contradicted earlier knowledge for the time
// long.
func lasts(since, at *time.Time, now time.Time, long time.Duration) bool {
	// since is the time of the first report that contradicts earlier knowledge, and at is the
	// time of the last one.
	if since.IsZero() || at.IsZero() || since.After(now) {
		*since, *at = now, now
	}
	// If there was no report for a long time, nothing is known about the node in that time.
	// Most of the pause is therefore not counted.
	*since = since.Add(max(0, now.Sub(*at)-long/pauses))
	*at = now
	return now.Sub(*since) >= long
}
