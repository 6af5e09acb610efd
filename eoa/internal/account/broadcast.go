package account

import (
	"iter"
	"time"

	"github.com/jamq/jamq/internal/backoff"
)

// Outgoing is a signed transaction that is to be sent to a node now.
type Outgoing struct {
	// ID is the record's id.
	ID uint64
	// Attempt is the index of the attempt in the record.
	Attempt int
	// First means that this attempt was never sent before, as far as is known.
	First bool
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Blobs are the blobs that are sent with it.
	Blobs [][]byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// ToSend returns the attempts that must be sent now, in nonce order, at most limit: those
// that were never sent; those whose last send is unknown or was refused, after a back-off;
// and every Config.Rebroadcast those that a node has accepted, because nodes forget. The
// bytes are always those in the store.
func (v *View) ToSend(c *Rules, now time.Time, limit int) []Outgoing {
	if now.Before(v.Quiet) {
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

// sendQueue iterates, by nonce, over the records in flight that nodes can take now. Nodes
// keep an account in one of two pools at a time (blobs or not), so it stops at the first
// record that belongs to the other pool. A delegated account may have one transaction in the
// pool, so only its first record is in the queue.
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
			if (r.Kind == Blob) != (first.Kind == Blob) || !yield(r) || v.delegated() {
				return
			}
		}
	}
}

// SendTimes iterates over the times at which records of the send queue are due. The executor
// sleeps until the first of them.
func (v *View) SendTimes(c *Rules, now time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for r := range v.sendQueue() {
			if !yield(v.sendAt(c, now, r)) {
				return
			}
		}
	}
}

// sendAt returns when a record is due to be sent.
func (v *View) sendAt(c *Rules, now time.Time, r *Record) time.Time {
	last, sent := v.sent[r.ID]
	a := &r.Attempts[sendable(r)]
	// An earlier worker's clock may have been ahead.
	if !sent || last.tx != a.Hash || last.at.After(now) {
		return time.Time{}
	}
	switch {
	case last.gap && !v.lacksPredecessor(r):
		return last.at.Add(c.Retry)
	case last.gap || last.tries == 0:
		return last.at.Add(c.Rebroadcast)
	}
	return last.at.Add(backoff.Wait(c.Retry, MaxRetry, last.tries))
}

// lacksPredecessor reports whether the transaction with the nonce before r's may not be on a
// node. Then r waits: the earlier one is sent again first, and when a node accepts it,
// makeFollowersDue makes r due.
func (v *View) lacksPredecessor(r *Record) bool {
	at, held := v.find(r.Nonce - 1)
	if !held || !v.Open[at].inFlight() || r.Nonce <= v.Latest() {
		return false
	}
	before := v.sent[v.Open[at].ID]
	return before.gap || before.tries > 0
}

// makeFollowersDue makes transactions due at once that nodes have refused only because they
// lacked the one before. It begins with the given nonce, whose predecessor a node now has.
func (v *View) makeFollowersDue(nonce uint64) {
	for at, _ := v.find(nonce); at < len(v.Open); at++ {
		r := &v.Open[at]
		if r.Nonce != nonce || !v.sent[r.ID].gap {
			return
		}
		delete(v.sent, r.ID)
		nonce++
	}
}

// makeDueIfPoolWasFull makes the transaction with the given nonce due at once if a node has
// refused it for lack of room. The one before it has just been mined, so that there may be
// room now.
func (v *View) makeDueIfPoolWasFull(nonce uint64) {
	if at, held := v.find(nonce); held && Classify(v.Open[at].Newest().Why) == ReasonFull && v.Open[at].Newest().Result == Rejected {
		delete(v.sent, v.Open[at].ID)
	}
}

// makePredecessorDue makes the transaction before nonce due at once, because a node has just
// said that it lacks it. It does so once; after that, the usual back-off applies.
func (v *View) makePredecessorDue(nonce uint64) {
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

// ApplyResults decides what follows from the results of sends. Whatever they are, a request
// keeps its nonce: a gateway may return the refusal of one node for bytes that another node
// has taken.
func (v *View) ApplyResults(c *Rules, now time.Time, out []Outgoing, results []Sent) Batch {
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
		v.applyResult(&b, c, now, r, o.Attempt, s)
	}
	if again && !v.resendDue(c, now) {
		b.Head.Resent = now
	}
	return b
}

// resendDue reports whether an attempt that a node has accepted is due to be sent again, or
// whether its last send had no certain answer.
func (v *View) resendDue(c *Rules, now time.Time) bool {
	for r := range v.sendQueue() {
		if r.Attempts[sendable(r)].Result == Accepted && (v.sent[r.ID].tries > 0 || !now.Before(v.sendAt(c, now, r))) {
			return true
		}
	}
	return false
}

// SetQuietUntil stops all calls to the node for the wait that it requested, at least
// Config.Retry and at most MaxRetry.
func (v *View) SetQuietUntil(c *Rules, now time.Time, wait time.Duration) {
	v.Quiet = now.Add(min(max(wait, c.Retry), MaxRetry))
}

// applyResult applies the result of one send to its record.
func (v *View) applyResult(b *Batch, c *Rules, now time.Time, old *Record, attempt int, s Sent) {
	last := v.sent[old.ID]
	if last.tx != old.Attempts[attempt].Hash {
		last = sending{tx: old.Attempts[attempt].Hash}
	}
	last.at, last.gap = now, s.Reason == ReasonNonceGap
	if s.Result == Accepted {
		last.tries = 0
		v.makeFollowersDue(old.Nonce + 1)
	} else if !last.gap {
		last.tries++
	}
	v.sent[old.ID] = last
	if last.gap {
		v.makePredecessorDue(old.Nonce)
	}

	r := old.clone()
	a := &r.Attempts[attempt]
	changed := a.recordResult(now, s)
	switch {
	case s.Result == Accepted && r.State == Prepared:
		b.changeState(now, &r, Broadcast, EventSubmitted)
		changed = true
	case a.Refusals >= giveUpAfter && r.isFinalRefusal(s.Reason) && !r.Cancelling && r.allRejected() && (r.State == Prepared || v.stalled(c, now)):
		// A node may have it nevertheless, so the record keeps its nonce, and a transaction
		// that does nothing is signed for the nonce. If a node has accepted the request
		// before, a rejection by another node counts only once the account has stalled.
		r.Cancelling, r.Urgent = true, true
		changed = true
	}
	if changed {
		b.Records = append(b.Records, r)
	}
}
