package account

import (
	"errors"
	"time"

	"github.com/holiman/uint256"

	"github.com/jamq/jamq/internal/backoff"
)

// bumps returns the replacements that are due: once the account has stalled, the
// lowest transaction in flight if its back-off has passed, and those behind it
// that pay less than today's price themselves; and every request that the user
// changed. A changed request may have Gas 0; it must be estimated first. The batch
// records the requests whose next price would exceed a limit; they wait.
func (v *View) bumps(c *Rules, now time.Time) ([]Job, Batch) {
	b := v.Batch()
	var jobs []Job
	free := v.free()
	head := true
	for i := range v.Open {
		r := &v.Open[i]
		if v.seen == nil || !r.inFlight() || r.Nonce < v.seen.Latest {
			continue
		}
		// Only the transaction before holds this one up.
		blocked := !head && v.pays(r) && !r.Urgent && r.overruled() == ReasonNone
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
			j.Gas = v.noopGas(c)
		case j.Gas == 0 && !r.Urgent && Classify(old.Why) != ReasonGasLimit:
			j.Gas = old.Gas
		}
		cost := j.cost()
		if more := cost; free != nil {
			if more.Lt(&old.Cost) {
				more = old.Cost
			}
			more.Sub(&more, &old.Cost)
			covered := take(free, &more)
			if v.unpaid.considered(r.ID, &more, covered); !covered {
				continue
			}
		}
		j.Record.Capped = false
		jobs = append(jobs, j)
	}
	return jobs, b
}

// pays reports whether the record's newest attempt pays the base fee, the price of
// blobs, at least half of the usual tip, and the price that was proven last, so
// that only the transactions before it keep it from being mined. Usual tips change
// with each block, so that a comparison with the whole tip would raise all prices
// with each small change.
func (v *View) pays(r *Record) bool {
	fees := &r.Newest().Fees
	if fees.below(&v.proven) || fees.Cap.Lt(&v.seen.BaseFee) || r.Kind == Blob && fees.Blob.Lt(&v.seen.BlobFee) {
		return false
	}
	tip := new(uint256.Int).Sub(&fees.Cap, &v.seen.BaseFee)
	if fees.Tip.Lt(tip) {
		tip = &fees.Tip
	}
	half := new(uint256.Int).Rsh(&v.seen.Tip, 1)
	return !tip.Lt(half)
}

// errNotLower means that no lower price is possible now.
var errNotLower = errors.New("eoa: a lower price would not pay the base fee")

// reprice returns the prices of the record's replacement. They are above those
// of all its attempts, unless nodes have refused all of them: because of their
// fees, or in favour of a noop at the limit.
func (v *View) reprice(c *Rules, r *Record) (Fees, error) {
	market, payable := c.Fees.price(v.seen, r)
	offered, policy := r.offered(), c.Fees
	for _, x := range [][2]*uint256.Int{{&market.Cap, &v.proven.Cap}, {&market.Tip, &v.proven.Tip}} {
		if x[0].Lt(x[1]) {
			x[0].Set(x[1])
		}
	}
	switch r.overruled() {
	case ReasonFeeCap:
		if r.refused() {
			// The base fee can rise by an eighth per block (EIP-1559).
			next := new(uint256.Int).Add(&v.seen.BaseFee, new(uint256.Int).Rsh(&v.seen.BaseFee, 3))
			if next.Add(next, &market.Tip); next.Lt(&market.Cap) {
				market.Cap = *next
			}
			if !payable || !market.Cap.Lt(&r.Newest().Fees.Cap) {
				return Fees{}, errNotLower
			}
			return market, nil
		}
	case ReasonUnderpriced:
		policy.BumpPercent = max(policy.BumpPercent, refusedBump)
	}
	fees, err := policy.replace(&offered, &market, r.limits())
	if err != nil && r.Cancelling && payable && r.refused() {
		return market, nil // nothing to replace on any node
	}
	return fees, err
}

// offered returns the highest prices that the record's attempts offer.
func (r *Record) offered() (f Fees) {
	for k := range r.Attempts {
		a := &r.Attempts[k]
		if a.Void {
			continue
		}
		for _, x := range [][2]*uint256.Int{{&f.Cap, &a.Fees.Cap}, {&f.Tip, &a.Fees.Tip}, {&f.Blob, &a.Fees.Blob}} {
			if x[0].Lt(x[1]) {
				x[0].Set(x[1])
			}
		}
	}
	return f
}

// bumpDue reports whether a record in flight is due to be replaced. A record
// whose newest bytes were not sent yet is not, and neither is one that nodes
// refuse only because they lack the nonce before.
func (v *View) bumpDue(c *Rules, now time.Time, r *Record) bool {
	switch {
	case r.waits(now) || !v.wasSent(r) && r.Newest().Result != Rejected:
		return false
	case r.Urgent:
		return true
	case v.sent[r.ID].gap:
		return false
	case r.overruled() != ReasonNone:
		at := r.BumpedAt.Add(backoff.Wait(c.Retry, MaxRetry, r.Bumps))
		return !now.Before(at) || r.BumpedAt.After(now) // the clock may have been ahead
	}
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

// wasSent reports whether this worker has sent the newest bytes.
func (v *View) wasSent(r *Record) bool { return v.sent[r.ID].tx == r.Newest().Hash }
