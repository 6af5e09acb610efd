package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Questions returns what the executor must ask the node before [View.Confirm] can
// use look, the node's report about the account:
//
//   - whether any attempt is in a block, for requests whose nonces are used or
//     promised to be used
//   - which blocks are now at the heights of the mined records
//   - which transactions have used nonces, if none of the attempts did
func (v *View) Questions(look *Look) Questions {
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

// Confirm updates the records in flight and in blocks. It uses look, a report of
// the node that [View.Trust] has accepted, and the node's answers to the
// questions. A record may now be mined, confirmed or final, a reorg may have
// removed its block, or something else may have used its nonce.
func (v *View) Confirm(c *Rules, now time.Time, look *Look, answers *Answers) Batch {
	b := v.Batch()
	before := v.LastLook
	v.applyCounts(&b, c, now, look)
	at := answers.asSeenByNode(look)
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
			b.changeState(now, &r, Broadcast, EventReorged)
			r.setReceipt(common.Hash{}, Receipt{})
			r.Reason = ""
			for k := range r.Attempts {
				r.Attempts[k].SentAt = time.Time{}
			}
			delete(v.sent, r.ID) // send the same bytes at once
		} else if known {
			advanceMined(&b, now, c, &at, &r)
		} else {
			verified = min(verified, v.VerifiedAt)
		}
		if len(b.Events) > events || r.GoneAt != v.Open[i].GoneAt || r.Reason != v.Open[i].Reason {
			b.Records = append(b.Records, r)
			if c.Requeue && r.State == Superseded && !r.madeByExecutor() {
				again := v.Open[i].Request
				again.Key = fmt.Sprintf("%s~%d", r.Key, r.ID)
				b.Add = append(b.Add, again)
			}
		}
	}
	v.VerifiedAt = verified
	v.markGaps(&b, c, now, look)
	return b
}

// applyCounts updates the nonces in the head from the transaction counts in look.
func (v *View) applyCounts(b *Batch, c *Rules, now time.Time, look *Look) {
	v.findUnknownUse(b, c, now, max(look.Latest, look.Pending))
	if !b.Head.Started {
		b.Head.Started, b.Head.Next = true, max(b.Head.Next, look.Pending)
	}
	// The next nonce must not be a used one.
	b.Head.Next = max(b.Head.Next, look.Latest)
	b.Head.Floor = max(b.Head.Floor, look.Final)
	// A used nonce is no longer a gap.
	used := func(n uint64) bool { return n < look.Latest }
	b.Head.Gaps = slices.DeleteFunc(b.Head.Gaps, used)
	// Since is the time of the last progress. It is set again whenever a transaction was
	// mined, and while nothing is in flight. An account without progress for StallTimeout
	// counts as stalled.
	if n, _ := v.InFlight(); n == 0 || b.Head.Count < look.Latest || b.Head.Since.IsZero() || b.Head.Since.After(now) {
		b.Head.Count, b.Head.Since = look.Latest, now
	}
	l := *look
	if v.LastLook != nil && v.LastLook.Latest < look.Latest {
		v.makeFollowersDue(look.Latest)
		v.makeDueIfPoolWasFull(look.Latest)
	}
	v.LastLook, v.height = &l, look.Number
}

// findMined checks whether a block contains an attempt, or something else used the
// nonce.
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
			if !r.isWithdrawnBy(a) && !r.isCarriedBy(a) {
				r.Reason = "the transaction from before the replacement was mined"
			}
			if r.State == Prepared { // no node confirmed the send
				b.addEvent(now, EventSubmitted, r)
			}
			b.changeState(now, r, Mined, EventMined)
			if !r.Success {
				b.addEvent(now, EventReverted, r)
			}
			return
		}
		missing = missing && answers.Missing[a.Hash]
	}
	switch {
	// No finalized block shows the nonce as used.
	case r.Nonce >= look.Final:
		r.GoneAt, r.Used = 0, 0
	case !missing || answers.Number < look.Number:
		// A block may contain one of the attempts, or the node has not told. Ask again later.
	// This is the first sign that something else has used the nonce. The node may be behind, so
	// wait until a block that is finalized later shows the same.
	case r.GoneAt == 0:
		r.GoneAt, r.Used = look.Number, look.Finalized
	case look.Finalized >= r.GoneAt:
		// The head at the first sign is final now, and the nonce is still used although no
		// block contains an attempt. A node that was merely behind would have noticed by now
		// that one of the attempts is in a block.
		if user, known := answers.Users[r.Nonce]; known {
			b.loseNonce(c, now, r, user)
		}
	}
}

// loseNonce updates a request whose nonce was used although no receipt was found.
func (b *Batch) loseNonce(c *Rules, now time.Time, r *Record, user common.Hash) {
	// user is the transaction that used the nonce; the zero hash means that no
	// transaction did.
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
		// Unless the account has just been stopped, the request has ended.
		if b.Head.Stop.Cause == CauseNone {
			b.changeState(now, r, Superseded, EventSuperseded)
		}
		return
	}
	r.Reason = fmt.Sprintf("nonce %d was used without a transaction", r.Nonce)
	switch {
	case r.Cancelling:
		b.changeState(now, r, Cancelled, EventCancelled)
	// A member of a group gets no second nonce, because later members may be mined already,
	// and the group would then be executed out of order.
	case r.Group != "":
		b.changeState(now, r, Superseded, EventSuperseded)
	default:
		r.voidAttempts()
		r.GoneAt, r.Unused, r.Used, r.Urgent, r.Capped = 0, 0, 0, false, false
		b.changeState(now, r, Pending, EventRequeued)
	}
}

// advanceMined moves a mined record on when its block is deep enough or final.
func advanceMined(b *Batch, now time.Time, c *Rules, look *Look, r *Record) {
	// The caller has checked that the block is on the chain, which a receipt alone
	// does not prove.
	if r.State == Mined && r.Height <= look.Number && look.Number-r.Height+1 >= c.Confirmations {
		b.changeState(now, r, Confirmed, EventConfirmed)
	}
	if r.Height > look.Finalized {
		return
	}
	cancelled, gaveUp, why := false, false, ""
	for k := range r.Attempts {
		a := &r.Attempts[k]
		if cancelled = cancelled || a.Hash == r.Tx && r.isWithdrawnBy(a); a.Result == Rejected && !a.Noop {
			why, gaveUp = a.Why, a.Refusals >= giveUpAfter && r.isFinalRefusal(Classify(a.Why))
		}
	}
	switch {
	// The no-op was signed because nodes had refused the request for good.
	case cancelled && gaveUp:
		r.Reason = why
		b.changeState(now, r, Failed, EventFailed)
	case cancelled:
		r.Reason = why
		b.changeState(now, r, Cancelled, EventCancelled)
	case !r.Success:
		r.Reason = "mined, and reverted"
		b.changeState(now, r, Failed, EventFailed)
	default:
		b.changeState(now, r, Final, EventFinal)
	}
}

// markGaps adds the nonces that no known transaction has to Head.Gaps.
func (v *View) markGaps(b *Batch, c *Rules, now time.Time, look *Look) {
	// Look for gaps only if the account has stalled, and only if no record has the nonce at
	// which it has stalled.
	if now.Sub(b.Head.Since) < c.Fees.StallTimeout || look.Latest >= b.Head.Next || v.isTaken(look.Latest) {
		return
	}
	// Add all gaps at once, so that they are filled together.
	for n := max(look.Latest, b.Head.Floor); n < b.Head.Next && len(b.Head.Gaps) < maxGaps; n++ {
		if !v.isTaken(n) && !slices.Contains(b.Head.Gaps, n) {
			b.Head.Gaps = append(b.Head.Gaps, n)
		}
	}
	slices.Sort(b.Head.Gaps)
}
