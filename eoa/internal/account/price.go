package account

import (
	"fmt"

	"github.com/holiman/uint256"
)

// price returns the fees of a new transaction. It returns false if a limit is
// below the base fee, or if the price of blobs is needed and unknown.
func (p *FeePolicy) price(look *Look, r *Record) (Fees, bool) {
	f, limits := Fees{Tip: look.Tip}, p.limits(r.limits())
	f.Cap.Lsh(&look.BaseFee, 1)
	f.Cap.Add(&f.Cap, &look.Tip)
	if r.Kind == Blob {
		if look.BlobFee.IsZero() {
			return Fees{}, false
		}
		f.Blob.Lsh(&look.BlobFee, 1)
	}
	for _, x := range []struct{ price, base, limit *uint256.Int }{{&f.Cap, &look.BaseFee, limits.Fee}, {&f.Blob, &look.BlobFee, limits.BlobFee}} {
		if x.limit != nil && x.limit.Lt(x.price) {
			if x.limit.Lt(x.base) {
				return Fees{}, false
			}
			x.price.Set(x.limit)
		}
	}
	if f.Cap.Lt(&f.Tip) {
		f.Tip = f.Cap
	}
	return singlePrice(r, f), true
}

// singlePrice sets the tip to the cap if the transaction type has only one
// price.
func singlePrice(r *Record, f Fees) Fees {
	if r.Kind == Legacy || r.Kind == AccessList {
		f.Tip = f.Cap
	}
	return f
}

// free returns the balance less the cost of everything in flight; nil means
// unknown.
func (v *View) free() *uint256.Int {
	if v.seen == nil || v.seen.Balance == nil {
		return nil
	}
	free, spent := new(uint256.Int).Set(v.seen.Balance), v.inFlightCost()
	take(free, &spent)
	return free
}

// inFlightCost returns the most that the transactions in flight can cost, in wei,
// saturated.
func (v *View) inFlightCost() (sum uint256.Int) {
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() && r.Nonce >= v.seen.Latest {
			if _, over := sum.AddOverflow(&sum, &r.Newest().Cost); over {
				sum.SetAllOne()
			}
		}
	}
	return sum
}

// take subtracts cost from from, not below zero, and reports whether from was
// enough.
func take(from, cost *uint256.Int) bool {
	if from.Lt(cost) {
		from.Clear()
		return false
	}
	from.Sub(from, cost)
	return true
}

// NoEstimate is the reason of a request whose gas a node could not estimate.
const NoEstimate = "gas could not be estimated"

// afford prices a job. It returns the reason if the job cannot be sent with the
// free balance; a nil balance is unlimited. It notes the reason, and whether the
// balance covers the job.
func (v *View) afford(c *Rules, j *Job, free *uint256.Int) (why string) {
	fees, ok := c.Fees.price(v.seen, &j.Record)
	j.Fees = fees
	cost := j.cost()
	switch {
	case j.Record.Kind == Blob && v.seen.BlobFee.IsZero():
		why = "the price of blobs is unknown"
	case !ok:
		why = fmt.Sprintf("the price limit is below the base fee of %v wei", &v.seen.BaseFee)
	case j.Gas == 0:
		why = NoEstimate
	}
	if why != "" {
		v.waiting = Refusal{j.Record, why}
		return why
	}
	if v.waiting.Record.ID == j.Record.ID {
		v.waiting = Refusal{}
	}
	covered := free == nil || !free.Lt(&cost)
	v.unpaid.considered(j.Record.ID, &cost, covered)
	if !covered {
		return "the balance does not cover it"
	}
	return ""
}

// learnPrice learns from attempt k of a record, which is in a block. If the price
// had to be raised for that, the transactions behind it with a lower price would
// stall one after the other.
func (v *View) learnPrice(r *Record, k int) {
	switch fees := r.Attempts[k].Fees; {
	case k > 0 && r.Attempts[k-1].Fees.Cap.Lt(&fees.Cap) && !r.Attempts[k-1].Void:
		v.proven = fees
	case fees.below(&v.proven):
		v.proven = Fees{}
	}
}

// below reports whether the cap or the tip is lower than that of g.
func (f *Fees) below(g *Fees) bool { return f.Cap.Lt(&g.Cap) || f.Tip.Lt(&g.Tip) }

// unpaid is a transaction that the balance did not cover when it was last considered.
type unpaid struct {
	id   uint64      // of its record; 0 for none
	more uint256.Int // cost beyond all transactions in flight
}

// considered notes whether the balance covers what the record's next transaction
// costs beyond all transactions in flight. The first one that is not covered is
// kept.
func (u *unpaid) considered(id uint64, more *uint256.Int, covered bool) {
	switch {
	case covered && u.id == id:
		*u = unpaid{}
	case !covered && (u.id == 0 || u.id == id):
		*u = unpaid{id, *more}
	}
}
