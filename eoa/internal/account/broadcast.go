package account

import (
	"iter"
	"time"

	"github.com/jamq/jamq/internal/backoff"
)

// Outgoing is an attempt to be sent to a node.
type Outgoing struct {
	// ID is the record's id.
	ID uint64
	// Attempt is the index of the attempt in the record.
	Attempt int
	// First means that no earlier send of the attempt is known.
	First bool
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Blobs are the blobs that are sent with it.
	Blobs [][]byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// toSend returns the attempts that must be sent now, in nonce order, at most
// limit: attempts that were never sent, attempts whose last send had an unknown
// result, and every Config.Rebroadcast the accepted ones, because nodes forget.
// The bytes are always those that the store holds.
func (v *View) toSend(c *Rules, now time.Time, limit int) []Outgoing {
	if now.Before(v.quiet) {
		return nil
	}
	var out []Outgoing
	for r := range v.sendQueue() {
		if now.Before(v.sendAt(c, now, r)) {
			continue
		}
		if len(out) == limit {
			break
		}
		k := sendable(r)
		a := &r.Attempts[k]
		first := a.Result == Unknown && v.sent[r.ID].tx != a.Hash
		out = append(out, Outgoing{ID: r.ID, Attempt: k, First: first, Raw: a.Raw, Blobs: r.blobsOf(a), Proofs: a.Proofs})
	}
	return out
}

// sendQueue iterates, by nonce, over the records in flight that nodes can take
// now. It stops at the first record for another pool than the first one's,
// because nodes keep an account in one pool at a time. If the account has become
// delegated, nodes take only the first record.
func (v *View) sendQueue() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		var first *Record
		for i := range v.Open {
			r := &v.Open[i]
			if !r.inFlight() || r.Nonce < v.Latest() {
				continue
			}
			if first == nil {
				first = r
			}
			if (r.Kind == Blob) != (first.Kind == Blob) || !yield(r) || v.seen != nil && v.seen.Delegated {
				return
			}
		}
	}
}

// SendTimes iterates over the times at which the records of the send queue are due.
func (v *View) SendTimes(c *Rules, now time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for r := range v.sendQueue() {
			if !yield(v.sendAt(c, now, r)) {
				return
			}
		}
	}
}

// sendAt returns when the record's bytes are due.
func (v *View) sendAt(c *Rules, now time.Time, r *Record) time.Time {
	last, sent := v.sent[r.ID]
	a := &r.Attempts[sendable(r)]
	// An earlier worker's clock may have been ahead.
	if !sent || last.tx != a.Hash || last.at.After(now) {
		return time.Time{}
	}
	switch {
	case last.gap && !v.follows(r):
		return last.at.Add(c.Retry)
	case last.gap || last.tries == 0:
		return last.at.Add(c.Rebroadcast)
	}
	return last.at.Add(backoff.Wait(c.Retry, MaxRetry, last.tries))
}

// follows reports whether the transaction with the nonce before r's is not known
// to be on a node. That transaction is then sent again first, and wakeBehind wakes
// r when a node has accepted it.
func (v *View) follows(r *Record) bool {
	at, held := v.find(r.Nonce - 1)
	if !held || !v.Open[at].inFlight() || r.Nonce <= v.Latest() {
		return false
	}
	before := v.sent[v.Open[at].ID]
	return before.gap || before.tries > 0
}

// wakeBehind makes transactions due at once if nodes have refused them only
// because of a gap: the nodes lacked the transaction before, and now have it. It
// begins with the transaction that has the given nonce.
func (v *View) wakeBehind(nonce uint64) {
	for at, _ := v.find(nonce); at < len(v.Open); at++ {
		r := &v.Open[at]
		if r.Nonce != nonce || !v.sent[r.ID].gap {
			return
		}
		delete(v.sent, r.ID)
		nonce++
	}
}

// wakeFirst makes the transaction with the given nonce due at once if a node has
// refused it for lack of room. The one before it has been mined, so that nodes
// which limit the account's transactions may have room now.
func (v *View) wakeFirst(nonce uint64) {
	if at, held := v.find(nonce); held && Classify(v.Open[at].Newest().Why) == ReasonFull && v.Open[at].Newest().Result == Rejected {
		delete(v.sent, v.Open[at].ID)
	}
}

// sendBefore makes the transaction before nonce due at once, because a node
// lacks it. It does so once; after that, the usual back-off applies.
func (v *View) sendBefore(nonce uint64) {
	at, held := v.find(nonce - 1)
	if !held || nonce == 0 {
		return
	}
	id := v.Open[at].ID
	if last := v.sent[id]; last.tries == 1 && !last.gap {
		last.at = time.Time{}
		v.sent[id] = last
	}
}

// takeResults decides what the results of sends mean. No result takes a nonce from its
// request: a gateway may return the refusal of one node for bytes that another
// node has taken.
func (v *View) takeResults(c *Rules, now time.Time, out []Outgoing, results []Sent) Batch {
	b, again := v.Batch(), false
	for i, o := range out {
		r := v.byID(o.ID)
		if r == nil || o.Attempt >= len(r.Attempts) {
			continue
		}
		s := Sent{}
		if i < len(results) {
			s = results[i]
		}
		if s.Reason == ReasonBusy || s.RetryAfter > 0 {
			v.SetQuietUntil(c, now, s.RetryAfter)
		}
		again = again || s.Result == Accepted && r.Attempts[o.Attempt].Result == Accepted
		v.sentOne(&b, c, now, r, o.Attempt, s)
	}
	if again && !v.resendDue(c, now) {
		b.Head.Resent = now
	}
	return b
}

// resendDue reports whether an accepted attempt is due to be sent again, or its
// last send had no definite answer.
func (v *View) resendDue(c *Rules, now time.Time) bool {
	for r := range v.sendQueue() {
		if r.Attempts[sendable(r)].Result == Accepted && (v.sent[r.ID].tries > 0 || !now.Before(v.sendAt(c, now, r))) {
			return true
		}
	}
	return false
}

// SetQuietUntil stops the use of the node for wait, at least Config.Retry and
// at most maxRetry.
func (v *View) SetQuietUntil(c *Rules, now time.Time, wait time.Duration) {
	v.quiet = now.Add(min(max(wait, c.Retry), MaxRetry))
}

// sentOne applies the result of one send to its record.
func (v *View) sentOne(b *Batch, c *Rules, now time.Time, old *Record, attempt int, s Sent) {
	last := v.sent[old.ID]
	if last.tx != old.Attempts[attempt].Hash {
		last = sending{tx: old.Attempts[attempt].Hash}
	}
	last.at, last.gap = now, s.Reason == ReasonNonceGap
	if s.Result == Accepted {
		last.tries = 0
		v.wakeBehind(old.Nonce + 1)
	} else if !last.gap {
		last.tries++
	}
	v.sent[old.ID] = last
	if last.gap {
		v.sendBefore(old.Nonce)
	}

	r := old.clone()
	a := &r.Attempts[attempt]
	changed := a.hear(now, s)
	switch {
	case s.Result == Accepted && r.State == Prepared:
		b.move(now, &r, Broadcast, EventSubmitted)
		changed = true
	case a.Refusals >= giveUpAfter && r.endedBy(s.Reason) && !r.Cancelling && r.refused() && (r.State == Prepared || v.stalled(c, now)):
		// A node may have it nevertheless, so the record keeps its nonce, and a
		// noop fills the nonce. If a node accepted it before, a rejection by
		// another counts only once the account has stalled.
		r.Cancelling, r.Urgent = true, true
		changed = true
	}
	if changed {
		b.Records = append(b.Records, r)
	}
}
