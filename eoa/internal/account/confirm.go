package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// questions returns the queries that confirm needs answered: the attempts whose
// nonces are used or promised to be, the blocks that records are in, and the
// nonces that something else than the attempts has used.
func (v *View) questions(look *Look) Questions {
	q := Questions{Account: v.Account.Address}
	for i := range v.Open {
		r := &v.Open[i]
		switch {
		case !r.inFlight():
			q.Heights = append(q.Heights, r.Height)
		case r.Nonce < max(look.Latest, look.Preconfirmed):
			if r.GoneAt > 0 && r.Nonce < look.Final && look.Finalized >= r.GoneAt {
				q.Nonces = append(q.Nonces, UsedNonce{Nonce: r.Nonce, After: r.Unused, UpTo: r.Used})
			}
			for k := range r.Attempts {
				if !r.Attempts[k].Void {
					q.Txs = append(q.Txs, r.Attempts[k].Hash)
				}
			}
		}
	}
	slices.Sort(q.Heights)
	q.Heights = slices.Compact(q.Heights)
	return q
}

// behind reports whether look is older than one that was acted upon, also by an
// earlier worker, so that nothing may be decided on it. If the head stays
// behind for Fees.StallTimeout, the chain itself went back, and behind returns
// false.
func (v *View) behind(c *Rules, now time.Time, look *Look) bool {
	if look.Number >= v.height && (v.seen == nil || look.Finalized >= v.seen.Finalized) {
		v.laggingSince = time.Time{}
		return false
	}
	if v.laggingSince.IsZero() {
		v.laggingSince = now
	}
	return now.Sub(v.laggingSince) < c.Fees.StallTimeout
}

// confirm decides what look and the answers to Questions mean: which records
// are mined, confirmed, final, reorganized away or superseded, and which need
// another nonce. look must not be behind.
func (v *View) confirm(c *Rules, now time.Time, look *Look, answers *Answers) Batch {
	b := v.Batch()
	before := v.seen
	v.begin(&b, c, now, look)
	at := answers.seenFrom(look)
	verified := at.Number
	for i := range v.Open {
		r := v.Open[i].clone()
		events := len(b.Events)
		if r.inFlight() {
			if before != nil && before.Final <= r.Nonce {
				r.Unused = max(r.Unused, before.Finalized)
			}
			v.findMined(&b, c, now, look, answers, &r)
			if r.State == Mined { // a receipt alone does not prove that the block is on the chain
				verified = min(verified, r.Height)
			}
		} else if block, known := answers.Blocks[r.Height]; known && block != r.Block || r.Height > look.Number {
			r.Reason = fmt.Sprintf("block %d is now %v", r.Height, block)
			b.move(now, &r, Broadcast, EventReorged)
			r.setReceipt(common.Hash{}, Receipt{})
			r.Reason = ""
			for k := range r.Attempts {
				r.Attempts[k].SentAt = time.Time{}
			}
			delete(v.sent, r.ID) // send the same bytes at once
		} else if known {
			advanceMined(&b, now, c, &at, &r)
		} else {
			verified = min(verified, v.verifiedAt)
		}
		if len(b.Events) > events || r.GoneAt != v.Open[i].GoneAt || r.Reason != v.Open[i].Reason {
			b.Records = append(b.Records, r)
			if c.Requeue && r.State == Superseded && !r.own() {
				again := v.Open[i].Request
				again.Key = fmt.Sprintf("%s~%d", r.Key, r.ID)
				b.Add = append(b.Add, again)
			}
		}
	}
	v.verifiedAt = verified
	v.markHoles(&b, c, now, look)
	return b
}

// begin updates the counts: used nonces are not free, and the next nonce is
// never a used one.
func (v *View) begin(b *Batch, c *Rules, now time.Time, look *Look) {
	v.findUnknownUse(b, c, now, max(look.Latest, look.Pending))
	if !b.Head.Started {
		b.Head.Started, b.Head.Next = true, max(b.Head.Next, look.Pending)
	}
	b.Head.Next = max(b.Head.Next, look.Latest)
	b.Head.Floor = max(b.Head.Floor, look.Final)
	used := func(n uint64) bool { return n < look.Latest }
	b.Head.Holes = slices.DeleteFunc(b.Head.Holes, used)
	if n, _ := v.InFlight(); n == 0 || b.Head.Count < look.Latest || b.Head.Since.IsZero() || b.Head.Since.After(now) {
		b.Head.Count, b.Head.Since = look.Latest, now
	}
	l := *look
	if v.seen != nil && v.seen.Latest < look.Latest {
		v.wakeBehind(look.Latest)
		v.wakeFirst(look.Latest)
	}
	v.seen, v.height = &l, look.Number
}

// findMined searches for an attempt that is in a block, or for proof that none
// ever will be.
func (v *View) findMined(b *Batch, c *Rules, now time.Time, look *Look, answers *Answers, r *Record) {
	missing := true
	for k := range r.Attempts {
		a := &r.Attempts[k]
		if a.Void {
			continue
		}
		receipt, found := answers.Receipts[a.Hash]
		if found && receipt.Number <= look.Number {
			r.setReceipt(a.Hash, receipt)
			v.learnPrice(r, k)
			r.GoneAt, r.Used, r.Reason = 0, 0, ""
			if r.State == Prepared { // no node confirmed the send
				b.addEvent(now, EventSubmitted, r)
			}
			b.move(now, r, Mined, EventMined)
			if !r.Success {
				b.addEvent(now, EventReverted, r)
			}
			return
		}
		missing = missing && answers.Missing[a.Hash]
	}
	switch {
	case r.Nonce >= look.Final:
		r.GoneAt, r.Used = 0, 0
	case !missing || answers.Number < look.Number:
		// No proof either way: ask again later.
	case r.GoneAt == 0:
		r.GoneAt, r.Used = look.Number, look.Finalized
	case look.Finalized >= r.GoneAt:
		// A lagging node cannot report this at both heads.
		if user, known := answers.Users[r.Nonce]; known {
			b.lose(c, now, r, user)
		}
	}
}

// lose takes the nonce from a request because something else has used it: user,
// or no transaction if user is zero. The request then gets another nonce. If it
// belongs to a group, it does not, because members behind it may be in blocks.
func (b *Batch) lose(c *Rules, now time.Time, r *Record, user common.Hash) {
	if user != (common.Hash{}) {
		if slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Hash == user }) {
			// Only the receipt tells whether the transaction succeeded.
			r.Reason = fmt.Sprintf("transaction %v is final, but the node has no receipt of it: connect a node that has", user)
			return
		}
		r.Reason = fmt.Sprintf("transaction %v has nonce %d", user, r.Nonce)
		if r.Nonce >= b.Head.Accepted {
			b.unknownUse(c, now, r.Reason)
		}
		if b.Head.Stop.Cause == CauseNone {
			b.move(now, r, Superseded, EventSuperseded)
		}
		return
	}
	r.Reason = fmt.Sprintf("nonce %d was used without a transaction", r.Nonce)
	switch {
	case r.Cancelling:
		b.move(now, r, Cancelled, EventCancelled)
	case r.Group != "":
		b.move(now, r, Superseded, EventSuperseded)
	default:
		r.voidAttempts()
		r.GoneAt, r.Unused, r.Used, r.Urgent, r.Capped = 0, 0, 0, false, false
		b.move(now, r, Pending, EventRequeued)
	}
}

// advanceMined follows a mined record to its end. The caller has checked that
// the record's block is on the chain; a receipt alone does not prove that.
func advanceMined(b *Batch, now time.Time, c *Rules, look *Look, r *Record) {
	if r.State == Mined && r.Height <= look.Number && look.Number-r.Height+1 >= c.Confirmations {
		b.move(now, r, Confirmed, EventConfirmed)
	}
	if r.Height > look.Finalized {
		return
	}
	cancelled, gaveUp, why := false, false, ""
	for k := range r.Attempts {
		a := &r.Attempts[k]
		if cancelled = cancelled || a.Hash == r.Tx && a.Noop && !r.Noop; a.Result == Rejected && !a.Noop {
			why, gaveUp = a.Why, a.Refusals >= giveUpAfter && r.endedBy(Classify(a.Why))
		}
	}
	switch {
	case cancelled && gaveUp:
		r.Reason = why
		b.move(now, r, Failed, EventFailed)
	case cancelled:
		r.Reason = why
		b.move(now, r, Cancelled, EventCancelled)
	case !r.Success:
		r.Reason = "mined, and reverted"
		b.move(now, r, Failed, EventFailed)
	default:
		b.move(now, r, Final, EventFinal)
	}
}

// markHoles finds the nonces without a known transaction once they hold up the
// account. It marks all of them at once.
func (v *View) markHoles(b *Batch, c *Rules, now time.Time, look *Look) {
	if now.Sub(b.Head.Since) < c.Fees.StallTimeout || look.Latest >= b.Head.Next || v.holds(look.Latest) {
		return
	}
	for n := max(look.Latest, b.Head.Floor); n < b.Head.Next && len(b.Head.Holes) < maxHoles; n++ {
		if !v.holds(n) && !slices.Contains(b.Head.Holes, n) {
			b.Head.Holes = append(b.Head.Holes, n)
		}
	}
	slices.Sort(b.Head.Holes)
}
