package account

import (
	"iter"
	"time"

	"github.com/jamq/jamq/internal/backoff"
)

// Outgoing is a signed transaction that must be sent to a node now.
type Outgoing struct {
	// ID is the record's id.
	ID uint64
	// Attempt is the index of the attempt in Record.Attempts.
	Attempt int
	// First means that, as far as the worker knows, this attempt was never sent
	// before.
	First bool
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Blobs are the blobs that are sent with the transaction; nil for other kinds.
	Blobs [][]byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// ToSend returns at most limit attempts that must be sent now, in nonce order. An
// attempt is due in these cases:
//
//   - It was never sent.
//   - Its last send was refused or had no certain answer, and the back-off has
//     passed.
//   - A node has accepted it and Config.Rebroadcast has passed, because nodes
//     forget transactions.
//
// The bytes are always the stored bytes, never a new signature.
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

// sendQueue iterates, in nonce order, over the records that nodes can accept now.
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
			// A node keeps an account's transactions in its blob pool or in its other pool,
			// never in both. Transactions for the second pool must wait until the first ones
			// are mined. From an account with code, nodes accept only one transaction at a
			// time.
			if (r.Kind == Blob) != (first.Kind == Blob) || !yield(r) || v.delegated() {
				return
			}
		}
	}
}

// SendTimes iterates over the times at which the signed transactions must be sent
// next. The executor sleeps until the earliest of these times.
func (v *View) SendTimes(c *Rules, now time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for r := range v.sendQueue() {
			if !yield(v.sendAt(c, now, r)) {
				return
			}
		}
	}
}

// sendAt returns when a record must be sent next; zero means at once.
func (v *View) sendAt(c *Rules, now time.Time, r *Record) time.Time {
	last, sent := v.sent[r.ID]
	a := &r.Attempts[sendable(r)]
	// If the last send lies in the future, an earlier worker's clock was ahead.
	if !sent || last.tx != a.Hash || last.at.After(now) {
		return time.Time{}
	}
	switch {
	// A node lacked the transaction before r, but that transaction is probably
	// there now.
	case last.gap && !v.lacksPredecessor(r):
		return last.at.Add(c.Retry)
	// Either a node already has this transaction, or it waits for the one before it. In the
	// second case it is sent as soon as that one is accepted.
	case last.gap || last.tries == 0:
		return last.at.Add(c.Rebroadcast)
	}
	return last.at.Add(backoff.Wait(c.Retry, MaxRetry, last.tries))
}

// lacksPredecessor reports whether nodes may lack the transaction with the nonce
// before r.
func (v *View) lacksPredecessor(r *Record) bool {
	at, held := v.find(r.Nonce - 1)
	if !held || !v.Open[at].inFlight() || r.Nonce <= v.Latest() {
		return false
	}
	before := v.sent[v.Open[at].ID]
	return before.gap || before.tries > 0
}

// makeFollowersDue makes due the transactions that were refused only because their
// predecessor was missing.
func (v *View) makeFollowersDue(nonce uint64) {
	// A node now has the transaction before nonce.
	for at, _ := v.find(nonce); at < len(v.Open); at++ {
		r := &v.Open[at]
		if r.Nonce != nonce || !v.sent[r.ID].gap {
			return
		}
		// Without an entry in sent, a transaction is due at once.
		delete(v.sent, r.ID)
		nonce++
	}
}

// makeDueIfPoolWasFull makes the transaction due if a pool had no room for it.
func (v *View) makeDueIfPoolWasFull(nonce uint64) {
	// The node's pool was full. A transaction of the account was just mined, so there may be
	// room for this one now.
	if at, held := v.find(nonce); held && Classify(v.Open[at].Newest().Why) == ReasonFull && v.Open[at].Newest().Result == Rejected {
		delete(v.sent, v.Open[at].ID)
	}
}

// makePredecessorDue makes the transaction before nonce due at once.
func (v *View) makePredecessorDue(nonce uint64) {
	at, held := v.find(nonce - 1)
	if !held || nonce == 0 {
		return
	}
	id := v.Open[at].ID
	// A node has reported that it lacks this transaction, which blocks the later ones. Send it
	// again at once, but only after its first failed send, so that a node that always refuses
	// it is not flooded.
	if last := v.sent[id]; last.tries == 1 && !last.gap {
		last.at = time.Time{}
		v.sent[id] = last
	}
}

// ApplyResults decides how the records change after a round of sends. No result
// takes the nonce from a request, because a gateway may return the refusal of one
// node although another node has accepted the same bytes.
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

// resendDue reports whether an accepted transaction still waits to be sent again.
func (v *View) resendDue(c *Rules, now time.Time) bool {
	for r := range v.sendQueue() {
		// The transaction must be sent again now, or it was sent again and got no certain
		// answer.
		if r.Attempts[sendable(r)].Result == Accepted && (v.sent[r.ID].tries > 0 || !now.Before(v.sendAt(c, now, r))) {
			return true
		}
	}
	return false
}

// SetQuietUntil stops all calls to the node for as long as the node has asked.
// Waits below Config.Retry or above MaxRetry count as these limits.
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
		// Nodes have refused every attempt for good, so cancel the request. One of them
		// may have the transaction nevertheless, so the record keeps its nonce, and a
		// no-op is signed for that nonce.
		r.Cancelling, r.Urgent = true, true
		changed = true
	}
	if changed {
		b.Records = append(b.Records, r)
	}
}
