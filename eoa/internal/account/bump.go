package account

import (
	"errors"
	"slices"
	"time"

	"github.com/holiman/uint256"

	"github.com/jamq/jamq/internal/backoff"
)

// Bumps returns the transactions that must be signed again with the nonces they
// already have:
//
//   - requests that the user has changed
//   - requests that nodes refuse because of their price or gas
//   - if the account has stalled: the first request in flight, and those behind it
//     that pay too little for today's prices
//
// If a job's Gas is 0, its gas must be estimated before it is signed. The batch
// marks the requests whose next price would exceed a limit (Record.Capped); these
// wait.
func (v *View) Bumps(c *Rules, now time.Time) ([]Job, Batch) {
	b := v.Batch()
	var jobs []Job
	free := v.free()
	head := true
	for i := range v.Open {
		r := &v.Open[i]
		if v.LastLook == nil || !r.inFlight() || r.Nonce < v.LastLook.Latest {
			continue
		}
		// This transaction pays enough: it waits only for the transactions before
		// it.
		blocked := !head && v.pays(r) && !r.Urgent && r.reasonToSignAgain() == ReasonNone
		head = false
		if blocked || len(jobs) == c.Batch || !v.bumpDue(c, now, r) {
			continue
		}
		old := r.Newest()
		fees, err := v.reprice(c, r)
		if errors.Is(err, errNotLower) {
			continue // until the base fee falls
		} else if err != nil {
			if !r.Capped || r.Urgent {
				capped := r.clone()
				capped.Capped, capped.Urgent, capped.Reason = true, false, err.Error()
				b.addEvent(now, EventCapped, &capped)
				b.Records = append(b.Records, capped)
			}
			continue
		}
		j := Job{Record: r.clone(), Nonce: r.Nonce, Gas: r.Gas, Fees: singlePrice(r, fees), Noop: r.Noop || r.Cancelling}
		switch {
		case j.Noop:
			j.Gas = v.noopGas()
		case j.Gas == 0 && !r.Urgent && Classify(old.Why) != ReasonGasLimit:
			j.Gas = old.Gas
		}
		cost := j.cost()
		if more := cost; free != nil {
			if more.Lt(&old.Cost) {
				more = old.Cost
			}
			more.Sub(&more, &old.Cost)
			covered := deduct(free, &more)
			if v.unpaid.noteCover(r.ID, &more, covered); !covered {
				continue
			}
		}
		j.Record.Capped = false
		jobs = append(jobs, j)
	}
	return jobs, b
}

// EstimatedBumps returns the jobs of Bumps that can be signed now because their gas
// is known. The batch delays the jobs whose gas is unknown and those that would
// revert.
func (v *View) EstimatedBumps(c *Rules, now time.Time, jobs []Job, reverting []Refusal) ([]Job, Batch) {
	for _, j := range jobs {
		if j.Gas == 0 {
			reverting = append(reverting, Refusal{j.Record, NoEstimate})
		}
	}
	return slices.DeleteFunc(jobs, func(j Job) bool { return j.Gas == 0 }), v.postpone(c, now, reverting)
}

// pays reports whether the newest attempt offers enough to be mined at today's
// prices.
func (v *View) pays(r *Record) bool {
	fees := &r.Newest().Fees
	// The price must cover the base fee and the price of blobs. If a transaction has stalled
	// and was only mined after a higher price was offered, that price (proven) is needed too.
	if fees.below(&v.proven) || fees.Cap.Lt(&v.LastLook.BaseFee) || r.Kind == Blob && fees.Blob.Lt(&v.LastLook.BlobFee) {
		return false
	}
	tip := new(uint256.Int).Sub(&fees.Cap, &v.LastLook.BaseFee)
	if fees.Tip.Lt(tip) {
		tip = &fees.Tip
	}
	// Half of the usual tip is enough. The usual tip changes with every block, so asking for
	// all of it would lead to many replacements that gain little.
	half := new(uint256.Int).Rsh(&v.LastLook.Tip, 1)
	return !tip.Lt(half)
}

// errNotLower is returned by reprice if a node demands a lower price than before,
// but a lower price would not cover the base fee now.
var errNotLower = errors.New("eoa: a lower price would not pay the base fee")

// reprice returns the prices for signing a record again.
func (v *View) reprice(c *Rules, r *Record) (Fees, error) {
	market, why := c.Fees.price(v.LastLook, r)
	payable := why == ""
	offered, percent := r.offered(), c.Fees.BumpPercent
	market.raiseTo(&Fees{Cap: v.proven.Cap, Tip: v.proven.Tip})
	switch r.reasonToSignAgain() {
	case ReasonFeeCap:
		// A node refused the price as higher than it relays. If no node has an earlier attempt
		// that must be outbid, a lower price may be offered.
		if r.allRejected() {
			// The base fee can rise by an eighth per block (EIP-1559).
			next := new(uint256.Int).Add(&v.LastLook.BaseFee, new(uint256.Int).Rsh(&v.LastLook.BaseFee, 3))
			if next.Add(next, &market.Tip); next.Lt(&market.Cap) {
				market.Cap = *next
			}
			if !payable || !market.Cap.Lt(&r.Newest().Fees.Cap) {
				return Fees{}, errNotLower
			}
			return market, nil
		}
	case ReasonUnderpriced:
		percent = max(percent, refusedBump)
	}
	// Usually a node has an earlier attempt, and replaces it only if the new prices are higher
	// by a certain percentage.
	fees, err := offered.bump(&market, percent, c.Fees.limits(r.limits()))
	// This rise would take the price of a no-op that withdraws a request above the user's
	// limit. If no node has a transaction to replace, the no-op pays today's price instead.
	if err != nil && r.Cancelling && payable && r.allRejected() {
		return market, nil // nothing to replace on any node
	}
	return fees, err
}

// offered returns the highest prices that the record's attempts offer.
func (r *Record) offered() (f Fees) {
	for k := range r.Attempts {
		if a := &r.Attempts[k]; !a.Void {
			f.raiseTo(&a.Fees)
		}
	}
	return f
}

// bumpDue reports whether a record in flight must be signed again now.
func (v *View) bumpDue(c *Rules, now time.Time, r *Record) bool {
	switch {
	// The request is delayed, or its newest attempt has not been sent yet.
	case r.isDelayed(now) || !v.wasSent(r) && r.Newest().Result != Rejected:
		return false
	case r.Urgent:
		return true
	// Nodes refuse the newest attempt only because the transaction before it is
	// missing.
	case v.sent[r.ID].gap:
		return false
	case r.reasonToSignAgain() != ReasonNone:
		at := r.BumpedAt.Add(backoff.Wait(c.Retry, MaxRetry, r.Bumps))
		return !now.Before(at) || r.BumpedAt.After(now) // the clock may have been ahead
	}
	// Wait from the last progress: when the account's last transaction was mined, or when this
	// request was last signed or sent.
	last := v.Head.Since
	later := func(at time.Time) {
		if at.After(last) && !at.After(now) { // skip times of a clock ahead
			last = at
		}
	}
	later(r.BumpedAt)
	for k := range r.Attempts {
		if !r.Attempts[k].Void {
			later(r.Attempts[k].SentAt)
		}
	}
	return v.stalled(c, now) && now.Sub(last) >= c.Fees.due(r.Bumps)
}

// wasSent reports whether this worker has sent the newest attempt.
func (v *View) wasSent(r *Record) bool { return v.sent[r.ID].tx == r.Newest().Hash }
