package account

import "time"

// This file decides what the refusals of nodes mean. A refusal does not prove that
// no node has the transaction, because a gateway may return the refusal of one node
// for bytes that another node took. So a refusal never takes the nonce from its
// request.

// hear notes the result of a send in the attempt, and reports whether that changed
// the attempt. If a node only lacks the transaction before, an earlier acceptance
// still holds.
func (a *Attempt) hear(now time.Time, s Sent) (changed bool) {
	if a.Result == Accepted && (s.Result == Unknown || s.Reason == ReasonNonceGap) {
		return false
	}
	untimed := a.SentAt.IsZero() || a.SentAt.After(now)
	if a.Result != s.Result || s.Result == Accepted && untimed {
		changed = true
		if untimed { // disagreement must not delay the bump
			a.SentAt = now
		}
	}
	before := a.Refusals
	switch {
	case s.Result == Accepted:
		a.Refusals = 0
	case s.Result == Rejected && s.Reason.isTerms():
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

// isTerms reports whether a rejection is about the transaction itself. The
// other reasons depend on the node's pool and on the account, and may pass.
func (r Reason) isTerms() bool {
	return r == ReasonUnderpriced || r == ReasonFeeCap || r == ReasonGasLimit || r == ReasonInvalid
}

// endedBy reports whether a refusal is permanent. A gas limit with a margin is
// tried once more without it.
func (r *Record) endedBy(reason Reason) bool {
	return reason == ReasonInvalid || reason == ReasonGasLimit && (r.Gas > 0 || r.overGasLimit() > 1)
}

// overruled returns why the request must be signed again with its nonce: nodes
// have refused the newest attempt several times in a row because of its prices
// or its gas. It returns ReasonNone if they have not.
func (r *Record) overruled() Reason {
	a := r.Newest()
	if a.Result != Rejected || a.Refusals < signAfter {
		return ReasonNone
	}
	switch reason := Classify(a.Why); {
	case reason == ReasonUnderpriced, reason == ReasonFeeCap, reason == ReasonGasLimit && !r.endedBy(reason):
		return reason
	}
	return ReasonNone
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
