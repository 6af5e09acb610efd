package eoa

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Questions returns what must be asked to confirm: the attempts whose nonces are used, or promised to be, and the blocks that records are in.
func (v *View) Questions(look *Look) Questions {
	var q Questions
	for i := range v.Open {
		r := &v.Open[i]
		switch {
		case !r.InFlight():
			q.Heights = append(q.Heights, r.Height)
		case r.Nonce < max(look.Latest, look.Preconfirmed):
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

// Behind reports whether a look is older than one that was acted upon, by an earlier worker too, so that nothing may be decided on it. A head that stays
// behind for the time of a stall is the chain's, not the node's: then it is believed.
func (v *View) Behind(c *Config, now time.Time, look *Look) bool {
	if look.Number >= v.tall && (v.look == nil || look.Finalized >= v.look.Finalized) {
		v.lagsSince = time.Time{}
		return false
	}
	if v.lagsSince.IsZero() {
		v.lagsSince = now
	}
	return now.Sub(v.lagsSince) < c.Fees.StallTimeout
}

// Confirm decides what a look at the chain and the answers to Questions mean: what is mined, final, reorganized away, or taken by somebody else.
// The look must not be Behind.
func (v *View) Confirm(c *Config, now time.Time, look *Look, answers *Answers) Batch {
	b := v.batch()
	v.begin(&b, now, look)
	at := answers.seenFrom(look)
	for i := range v.Open {
		r := v.Open[i].clone()
		before := len(b.Events)
		if r.InFlight() {
			v.findMined(&b, now, look, answers, &r)
		} else if block, known := answers.Blocks[r.Height]; known && block != r.Block || r.Height > look.Number {
			r.Reason = fmt.Sprintf("block %d is now %v", r.Height, block)
			b.move(now, &r, Broadcast, EventReorged)
			r.Height, r.Block, r.Tx, r.Success, r.GasUsed, r.Reason = 0, common.Hash{}, common.Hash{}, false, 0, ""
			for k := range r.Attempts {
				r.Attempts[k].SentAt = time.Time{}
			}
			delete(v.sent, r.ID) // at once, and the same bytes
		} else if known {
			deepen(&b, now, c, &at, &r)
		}
		if len(b.Events) > before || r.GoneAt != v.Open[i].GoneAt {
			b.Records = append(b.Records, r)
			if c.Requeue && r.State == Superseded && !r.own() {
				again := v.Open[i].Request
				again.Key = fmt.Sprintf("%s~%d", r.Key, r.ID)
				b.Add = append(b.Add, again)
			}
		}
	}
	v.markHoles(&b, c, now, look)
	return b
}

// begin takes over counts: what is used is not free, and the next nonce is never one that is used.
func (v *View) begin(b *Batch, now time.Time, look *Look) {
	if !b.Head.Started {
		b.Head.Started, b.Head.Next = true, max(look.Latest, look.Pending)
	}
	b.Head.Next = max(b.Head.Next, look.Latest)
	b.Head.Floor = max(b.Head.Floor, look.Final)
	used := func(n uint64) bool { return n < look.Latest }
	b.Head.Recycled = slices.DeleteFunc(b.Head.Recycled, used)
	b.Head.Holes = slices.DeleteFunc(b.Head.Holes, used)
	if n, _ := v.inFlight(); n == 0 || b.Head.Count < look.Latest || b.Head.Since.IsZero() || b.Head.Since.After(now) {
		b.Head.Count, b.Head.Since = look.Latest, now
	}
	l := *look
	v.look, v.tall = &l, look.Number
}

// findMined looks for an attempt that is in a block, or for proof that none ever will be.
func (v *View) findMined(b *Batch, now time.Time, look *Look, answers *Answers, r *Record) {
	missing := true
	for k := range r.Attempts {
		a := &r.Attempts[k]
		if a.Void {
			continue
		}
		receipt, found := answers.Receipts[a.Hash]
		if found && receipt.Number <= look.Number {
			r.Tx, r.Height, r.Block, r.Success, r.GasUsed = a.Hash, receipt.Number, receipt.Block, receipt.Success, receipt.GasUsed
			r.GoneAt, r.Reason = 0, ""
			if r.State == Prepared { // no answer ever said so
				b.tell(now, EventSubmitted, r)
			}
			b.move(now, r, Mined, EventMined)
			return
		}
		missing = missing && answers.Missing[a.Hash]
	}
	switch {
	case r.Nonce >= look.Final:
		r.GoneAt = 0
	case !missing || answers.Number < look.Number:
		// No proof either way: ask again.
	case r.GoneAt == 0:
		r.GoneAt = look.Number
	case look.Finalized >= r.GoneAt: // a node that lags by less than that does not say so twice
		r.Reason = fmt.Sprintf("another transaction has nonce %d", r.Nonce)
		b.move(now, r, Superseded, EventSuperseded)
	}
}

// seenFrom is the look as a node has it that is as far as the answering one. One that is behind may be on a fork that the chain has left: a block is as deep
// as it is under the head of whoever says that it is there, and what is final is as far below that head as it is below the other.
func (a *Answers) seenFrom(look *Look) Look {
	at := *look
	if a.Number < look.Number {
		behind := look.Number - a.Number
		at.Number, at.Finalized = a.Number, look.Finalized-min(look.Finalized, behind)
	}
	return at
}

// deepen follows a mined record to its end. The chain's block at its height is its own: a receipt alone does not say that.
func deepen(b *Batch, now time.Time, c *Config, look *Look, r *Record) {
	if r.State == Mined && r.Height <= look.Number && look.Number-r.Height+1 >= c.Confirmations {
		b.move(now, r, Confirmed, EventConfirmed)
	}
	if r.Height > look.Finalized {
		return
	}
	cancelled, why := false, ""
	for k := range r.Attempts {
		a := &r.Attempts[k]
		if cancelled = cancelled || a.Hash == r.Tx && a.Noop && !r.Noop; a.Result == Rejected && !a.Noop {
			why = a.Why
		}
	}
	switch {
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

// stalled reports whether the account's count has not moved for the time of a stall.
func (v *View) stalled(c *Config, now time.Time) bool {
	return v.look != nil && now.Sub(v.Head.Since) >= c.Fees.StallTimeout
}

// markHoles finds nonces that nobody knows a transaction of, once they hold up the account: all of them then, not one after the other.
func (v *View) markHoles(b *Batch, c *Config, now time.Time, look *Look) {
	if now.Sub(b.Head.Since) < c.Fees.StallTimeout || look.Latest >= b.Head.Next || v.holds(look.Latest) {
		return
	}
	for n := max(look.Latest, b.Head.Floor); n < b.Head.Next && len(b.Head.Holes) < maxHoles; n++ {
		if !v.holds(n) && !slices.Contains(b.Head.Recycled, n) && !slices.Contains(b.Head.Holes, n) {
			b.Head.Holes = append(b.Head.Holes, n)
		}
	}
	slices.Sort(b.Head.Holes)
}
