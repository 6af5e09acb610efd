package account

import "time"

// This file decides how a request goes on after nodes have refused its transaction.
// A refusal does not prove that no node has the transaction, because a gateway may
// return the refusal of one node for bytes that another node has accepted.
// Therefore no refusal takes the nonce from its request.

// recordResult stores the result of a send, and reports whether the attempt
// changed.
func (a *Attempt) recordResult(now time.Time, s Sent) (changed bool) {
	// A node that accepted the attempt before probably still has it.
	if a.Result == Accepted && (s.Result == Unknown || s.Reason == ReasonNonceGap) {
		return false
	}
	untimed := a.SentAt.IsZero() || a.SentAt.After(now)
	if a.Result != s.Result || s.Result == Accepted && untimed {
		changed = true
		if untimed { // disagreement between nodes must not delay the bump
			a.SentAt = now
		}
	}
	before := a.Refusals
	switch {
	case s.Result == Accepted:
		a.Refusals = 0
	case s.Result == Rejected && s.Reason.isAboutTransaction():
		// Refusals counts only refusals in a row for the same reason.
		if Classify(a.Why) != s.Reason {
			a.Refusals = 0
		}
		a.Refusals = min(a.Refusals+1, giveUpAfter)
	}
	if changed = changed || a.Refusals != before; changed {
		a.Result, a.Why = s.Result, s.Text
	}
	return changed
}

// isAboutTransaction reports whether the reason lies in the transaction itself.
func (r Reason) isAboutTransaction() bool {
	// The other reasons, such as a full pool or a low balance, can pass without a change of
	// the transaction.
	return r == ReasonUnderpriced || r == ReasonFeeCap || r == ReasonGasLimit || r == ReasonInvalid
}

// isFinalRefusal reports whether nodes will never accept the request in its present
// form.
func (r *Record) isFinalRefusal(reason Reason) bool {
	// Nodes may refuse a gas limit only because of the margin that was added to the estimate.
	// The request then gets one more try without the margin.
	return reason == ReasonInvalid || reason == ReasonGasLimit && (r.Gas > 0 || r.overGasLimit() > 1)
}

// reasonToSignAgain returns why the request must be signed again with its nonce, or
// ReasonNone.
func (r *Record) reasonToSignAgain() Reason {
	a := r.Newest()
	// A few refusals prove nothing, because another node may have accepted the
	// transaction.
	if a.Result != Rejected || a.Refusals < signAfter {
		return ReasonNone
	}
	switch reason := Classify(a.Why); {
	case reason == ReasonUnderpriced, reason == ReasonFeeCap, reason == ReasonGasLimit && !r.isFinalRefusal(reason):
		return reason
	}
	return ReasonNone
}

// allRejected reports whether nodes have rejected all attempts of the record.
func (r *Record) allRejected() bool {
	for k := range r.Attempts {
		if r.Attempts[k].Result != Rejected && !r.Attempts[k].Void {
			return false
		}
	}
	return true
}
