package eoa

import (
	"iter"
	"slices"
	"time"
)

// Outgoing are signed bytes to be given to a node.
type Outgoing struct {
	// ID is the record's, Attempt the index of its attempt, Raw and Proofs are that one's, Blobs those it is sent with.
	ID      uint64
	Attempt int
	Raw     []byte
	Blobs   [][]byte
	Proofs  []byte
}

// Recover returns what must be sent now, in nonce order, at most limit: what was never answered, what had no verdict, and from time to time what was
// accepted, because nodes forget. The bytes are always those that the store holds.
func (v *View) Recover(c *Config, now time.Time, limit int) []Outgoing {
	if now.Before(v.quietUntil) {
		return nil
	}
	var out []Outgoing
	for r := range v.line() {
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

// line are the records in flight that nodes can take now, by nonce: all, or those before the first that is for another pool, which would take the account to it.
func (v *View) line() iter.Seq[*Record] {
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

// sendable is the newest attempt that was not rejected, or the newest if all were.
func sendable(r *Record) int {
	for k := len(r.Attempts) - 1; k >= 0; k-- {
		if r.Attempts[k].Result != Rejected && !r.Attempts[k].Void {
			return k
		}
	}
	return len(r.Attempts) - 1
}

// refused reports whether a node said no to all of the record's bytes: none of them is in its pool.
func (r *Record) refused() bool {
	for k := range r.Attempts {
		if r.Attempts[k].Result != Rejected && !r.Attempts[k].Void {
			return false
		}
	}
	return true
}

// sendAt is when the record's bytes are due.
func (v *View) sendAt(c *Config, now time.Time, r *Record) time.Time {
	last, sent := v.sent[r.ID]
	a := &r.Attempts[sendable(r)]
	if !sent || last.tx != a.Hash || last.at.After(now) { // an earlier worker's clock may be ahead
		return time.Time{}
	}
	if last.tries == 0 {
		return last.at.Add(c.Rebroadcast)
	}
	return last.at.Add(backOff(c.Retry, last.tries))
}

// backOff doubles a wait with each failure after the first, to maxRetry.
func backOff(first time.Duration, tries int) time.Duration {
	return min(first<<min(max(tries-1, 0), 16), maxRetry)
}

// Sent decides what the results of sends mean. Only one thing ever takes a nonce from a request: a certain no to the only bytes it has, from the
// first node they were given to, heard by the worker that signed them.
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
			v.quiet(c, now, s.RetryAfter)
		}
		again = again || s.Result == Accepted && r.Attempts[o.Attempt].Result == Accepted
		v.sentOne(&b, c, now, r, o.Attempt, s)
	}
	if again && !v.owes(c, now) {
		b.Head.Resent = now
	}
	v.release(&b)
	return b
}

// owes reports whether something that a node had accepted is due to be given to one again, or was without a verdict.
func (v *View) owes(c *Config, now time.Time) bool {
	for r := range v.line() {
		if r.Attempts[sendable(r)].Result == Accepted && (v.sent[r.ID].tries > 0 || !now.Before(v.sendAt(c, now, r))) {
			return true
		}
	}
	return false
}

// quiet leaves the node alone for as long as it asks, within bounds.
func (v *View) quiet(c *Config, now time.Time, wait time.Duration) {
	v.quietUntil = now.Add(min(max(wait, c.Retry), maxRetry))
}

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
		if untimed { // nodes that disagree do not put off the bump
			a.SentAt = now
		}
	}
	switch {
	case s.Result == Accepted && r.State == Prepared:
		b.move(now, &r, Broadcast, EventSubmitted)
		changed = true
	case s.Result == Rejected && fresh && unbinds(s.Reason):
		v.unbind(b, c, now, &r, s)
		changed = true
	case s.Result == Rejected && fresh:
		v.fresh[old.ID] = true // a certain no is none the less certain the next time
	case s.Reason == ReasonInvalid && !r.Cancelling && r.refused() && (r.State == Prepared || v.stalled(c, now)):
		// It may be out none the less, so its nonce stays its own: what no node takes is filled in its place. Where one took it, another's no is believed only
		// when nothing moves.
		r.Cancelling, r.Hurry = true, true
		changed = true
	}
	if changed {
		b.Records = append(b.Records, r)
	}
}

// unbinds reports whether a refusal is about the transaction itself: with the others it is in its place, and only too early.
func unbinds(r Reason) bool { return r == ReasonFunds || r == ReasonUnderpriced || r == ReasonInvalid }

// unbind takes the nonce from a request whose bytes are nowhere.
func (v *View) unbind(b *Batch, c *Config, now time.Time, r *Record, s Sent) {
	r.Reason = s.Reason.String() + ": " + s.Text
	for k := range r.Attempts {
		r.Attempts[k].Void = true
		r.Attempts[k].forget()
	}
	if s.Reason == ReasonInvalid {
		b.move(now, r, Failed, EventFailed)
	} else {
		r.State = Pending
		r.NotBefore = now.Add(backOff(c.Retry, len(r.Attempts)))
	}
	b.Head.Recycled = append(b.Head.Recycled, r.Nonce)
	slices.Sort(b.Head.Recycled)
}

// release gives back recycled nonces from the top, so that only those below something in use need filling.
func (v *View) release(b *Batch) {
	for n := len(b.Head.Recycled); n > 0 && b.Head.Recycled[n-1] == b.Head.Next-1 && b.Head.Next > v.latest(); n-- {
		b.Head.Recycled = b.Head.Recycled[:n-1]
		b.Head.Next--
	}
}
