package eoa

import (
	"iter"
	"slices"
	"time"
)

// Outgoing is an attempt to be sent to a node.
type Outgoing struct {
	// ID is the record's id.
	ID uint64
	// Attempt is the index of the attempt in the record.
	Attempt int
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Blobs are the blobs that are sent with it.
	Blobs [][]byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// Recover returns the attempts that must be sent now, in nonce order, at most
// limit: attempts that were never sent, attempts whose last send had an unknown
// result, and every Config.Rebroadcast the accepted ones, because nodes forget.
// The bytes are always those that the store holds.
func (v *View) Recover(c *Config, now time.Time, limit int) []Outgoing {
	if now.Before(v.quietUntil) {
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
		out = append(out, Outgoing{ID: r.ID, Attempt: k, Raw: a.Raw, Blobs: r.blobsOf(a), Proofs: a.Proofs})
	}
	return out
}

// sendQueue iterates, by nonce, over the records in flight that nodes can take
// now. It stops at the first record for another pool than the first one's,
// because nodes keep an account in one pool at a time.
func (v *View) sendQueue() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		var first *Record
		for i := range v.Open {
			r := &v.Open[i]
			if !r.InFlight() || r.Nonce < v.latest() {
				continue
			}
			if first == nil {
				first = r
			}
			if (r.Kind == Blob) != (first.Kind == Blob) || !yield(r) {
				return
			}
		}
	}
}

// sendable returns the index of the newest attempt that was not rejected, or of
// the newest one if all were rejected.
func sendable(r *Record) int {
	for k := len(r.Attempts) - 1; k >= 0; k-- {
		if r.Attempts[k].Result != Rejected && !r.Attempts[k].Void {
			return k
		}
	}
	return len(r.Attempts) - 1
}

// refused reports whether nodes rejected all attempts of the record, so that no
// node has any of them.
func (r *Record) refused() bool {
	for k := range r.Attempts {
		if r.Attempts[k].Result != Rejected && !r.Attempts[k].Void {
			return false
		}
	}
	return true
}

// sendAt returns when the record's bytes are due.
func (v *View) sendAt(c *Config, now time.Time, r *Record) time.Time {
	last, sent := v.sent[r.ID]
	a := &r.Attempts[sendable(r)]
	// An earlier worker's clock may have been ahead.
	if !sent || last.tx != a.Hash || last.at.After(now) {
		return time.Time{}
	}
	if last.tries == 0 {
		return last.at.Add(c.Rebroadcast)
	}
	return last.at.Add(backOff(c.Retry, last.tries))
}

// backOff doubles the wait with each try after the first, up to maxRetry.
func backOff(first time.Duration, tries int) time.Duration {
	return min(first<<min(max(tries-1, 0), 16), maxRetry)
}

// Sent decides what the results of sends mean. A request loses its nonce only
// if it has exactly one attempt, the first node it was sent to definitely
// rejected it, and this worker signed it.
func (v *View) Sent(c *Config, now time.Time, out []Outgoing, results []Sent) Batch {
	b, again := v.batch(), false
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
			v.setQuietUntil(c, now, s.RetryAfter)
		}
		again = again || s.Result == Accepted && r.Attempts[o.Attempt].Result == Accepted
		v.sentOne(&b, c, now, r, o.Attempt, s)
	}
	if again && !v.resendDue(c, now) {
		b.Head.Resent = now
	}
	v.release(&b)
	return b
}

// resendDue reports whether an accepted attempt is due to be sent again, or its
// last send had no definite answer.
func (v *View) resendDue(c *Config, now time.Time) bool {
	for r := range v.sendQueue() {
		if r.Attempts[sendable(r)].Result == Accepted && (v.sent[r.ID].tries > 0 || !now.Before(v.sendAt(c, now, r))) {
			return true
		}
	}
	return false
}

// setQuietUntil stops the use of the node for wait, at least Config.Retry and
// at most maxRetry.
func (v *View) setQuietUntil(c *Config, now time.Time, wait time.Duration) {
	v.quietUntil = now.Add(min(max(wait, c.Retry), maxRetry))
}

// sentOne applies the result of one send to its record.
func (v *View) sentOne(b *Batch, c *Config, now time.Time, old *Record, attempt int, s Sent) {
	fresh := v.fresh[old.ID] && old.live() == 1 && old.State == Prepared
	delete(v.fresh, old.ID)
	last := v.sent[old.ID]
	if last.tx != old.Attempts[attempt].Hash {
		last = sending{tx: old.Attempts[attempt].Hash}
	}
	last.at = now
	if last.tries++; s.Result == Accepted {
		last.tries = 0
	}
	v.sent[old.ID] = last

	r := old.clone()
	a := &r.Attempts[attempt]
	untimed := a.SentAt.IsZero() || a.SentAt.After(now)
	changed := a.Result != s.Result && !(a.Result == Accepted && s.Result == Unknown) || s.Result == Accepted && untimed
	if changed {
		a.Result, a.Why = s.Result, s.Text
		if untimed { // disagreement must not delay the bump
			a.SentAt = now
		}
	}
	switch {
	case s.Result == Accepted && r.State == Prepared:
		b.move(now, &r, Broadcast, EventSubmitted)
		changed = true
	case s.Result == Rejected && fresh && freesNonce(s.Reason):
		v.freeNonce(b, c, now, &r, s)
		changed = true
	case s.Result == Rejected && fresh:
		v.fresh[old.ID] = true // the rejection still counts next time
	case r.endedBy(s.Reason) && !r.Cancelling && r.refused() && (r.State == Prepared || v.stalled(c, now)):
		// A node may have it nevertheless, so the record keeps its nonce, and a
		// noop fills the nonce. If a node accepted it before, a rejection by
		// another counts only once the account has stalled.
		r.Cancelling, r.Hurry = true, true
		changed = true
	}
	if changed {
		b.Records = append(b.Records, r)
	}
}

// freesNonce reports whether a rejection is about the transaction itself. The
// other reasons depend on the node's pool and may pass.
func freesNonce(r Reason) bool {
	return r == ReasonFunds || r == ReasonUnderpriced || r == ReasonInvalid || r == ReasonGasLimit
}

// endedBy reports whether a refusal is permanent. A gas limit with a margin is
// tried once more without it.
func (r *Record) endedBy(reason Reason) bool {
	return reason == ReasonInvalid || reason == ReasonGasLimit && (r.Gas > 0 || r.overGasLimit() > 1)
}

// freeNonce takes the nonce from a request whose bytes are on no node.
func (v *View) freeNonce(b *Batch, c *Config, now time.Time, r *Record, s Sent) {
	r.Reason = s.Reason.String() + ": " + s.Text
	r.voidAttempts()
	if r.endedBy(s.Reason) {
		b.move(now, r, Failed, EventFailed)
	} else {
		r.State = Pending
		r.NotBefore = now.Add(backOff(c.Retry, len(r.Attempts)))
	}
	// The account's authorizations in it use no nonces either.
	for n := b.Head.Next; n > r.Nonce+1 && n > v.latest() && n-1 <= r.Nonce+r.usesMore(v.Account, r.Nonce) && !v.holds(n-1); n-- {
		b.Head.Next = n - 1
	}
	b.Head.Recycled = append(b.Head.Recycled, r.Nonce)
	slices.Sort(b.Head.Recycled)
}

// voidAttempts marks all attempts as transactions that can never be mined.
func (r *Record) voidAttempts() {
	for k := range r.Attempts {
		r.Attempts[k].Void = true
		r.Attempts[k].dropBlobs()
	}
}

// release returns recycled nonces directly below Next to the range of new
// nonces. Only recycled nonces below a used one need filling.
func (v *View) release(b *Batch) {
	for n := len(b.Head.Recycled); n > 0 && b.Head.Recycled[n-1] == b.Head.Next-1 && b.Head.Next > v.latest(); n-- {
		b.Head.Recycled = b.Head.Recycled[:n-1]
		b.Head.Next--
	}
}
