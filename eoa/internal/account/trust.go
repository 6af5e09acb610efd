package account

import (
	"fmt"
	"time"
)

// Trust decides whether the executor may act on a Look. If the Look contradicts an
// earlier one or the store, Trust returns an error and the Look is not used. The
// batch records since when this has been so, and stops the account if it lasts.
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

// belowFloor reports whether the Look shows fewer transactions of the account than
// a finalized block had. A node that is far behind does that for a while. If all
// Looks do so for Fees.StallTimeout, the node must be on another chain, and the
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

// ahead reports whether the Look shows more transactions of the account than nonces
// were ever assigned, and is not confirmed yet. A second Look must agree, at least
// Config.Retry later, because a single wrong answer would make a gap, and filling a
// gap costs fees. An exclusive account would stop, also because of a transaction in
// a pool.
//
// This includes an account with transactions that is new to the store: its first
// nonce comes from the Look, and if the node is a block behind, another transaction
// has that nonce. The second Look must then be of the same height or higher.
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

// behind reports whether the Look is older than one that this or an earlier worker
// has acted on, so that nothing may be decided on it. If the node stays behind for
// Fees.StallTimeout at all Looks, the chain itself must have gone back, and behind
// returns false.
func (v *View) behind(c *Rules, now time.Time, look *Look) bool {
	if look.Number >= v.height && (v.LastLook == nil || look.Finalized >= v.LastLook.Finalized) {
		v.laggingSince, v.laggingAt = time.Time{}, time.Time{}
		return false
	}
	return !lasts(&v.laggingSince, &v.laggingAt, now, c.Fees.StallTimeout)
}

// pauses is the number of pauses between Looks that a doubt must outlast at least.
const pauses = 4

// lasts notes a Look that raises a doubt, and reports whether all Looks have raised
// it for the given time. since is when that began, and at is the last such Look;
// both are zero if there was none. A pause in which no Look succeeded counts only in
// part, by a later since, because nothing is known about the node in it.
func lasts(since, at *time.Time, now time.Time, long time.Duration) bool {
	if since.IsZero() || at.IsZero() || since.After(now) {
		*since, *at = now, now
	}
	*since = since.Add(max(0, now.Sub(*at)-long/pauses))
	*at = now
	return now.Sub(*since) >= long
}
