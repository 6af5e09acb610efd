package account

import (
	"fmt"

	"github.com/holiman/uint256"
)

// price returns the prices for a new transaction; why tells if none is valid.
func (p *FeePolicy) price(look *Look, r *Record) (f Fees, why string) {
	limits := p.limits(r.limits())
	f.Tip = look.Tip
	// Twice the base fee keeps the transaction valid while the base fee rises.
	f.Cap.Lsh(&look.BaseFee, 1)
	f.Cap.Add(&f.Cap, &look.Tip)
	if r.Kind == Blob {
		if look.BlobFee.IsZero() {
			return Fees{}, "the price of blobs is unknown"
		}
		f.Blob.Lsh(&look.BlobFee, 1)
	}
	for _, x := range []struct {
		price, base, limit *uint256.Int
		names              string
	}{
		{&f.Cap, &look.BaseFee, limits.Fee, "the price limit is below the base fee"},
		{&f.Blob, &look.BlobFee, limits.BlobFee, "the limit for blobs is below their price"},
	} {
		// Offer at most the limit. If even the present base fee exceeds the limit, the request
		// must wait.
		if x.limit != nil && x.limit.Lt(x.price) {
			if x.limit.Lt(x.base) {
				return Fees{}, fmt.Sprintf("%s of %v wei", x.names, x.base)
			}
			x.price.Set(x.limit)
		}
	}
	if f.Cap.Lt(&f.Tip) {
		f.Tip = f.Cap
	}
	return singlePrice(r, f), ""
}

// singlePrice sets the tip to the cap if the transaction type has only one
// price.
func singlePrice(r *Record, f Fees) Fees {
	if r.Kind == Legacy || r.Kind == AccessList {
		f.Tip = f.Cap
	}
	return f
}

// free returns the balance that remains if every transaction in flight costs its
// maximum.
func (v *View) free() *uint256.Int {
	if v.LastLook == nil || v.LastLook.Balance == nil {
		// nil means that the balance is unknown.
		return nil
	}
	free, spent := new(uint256.Int).Set(v.LastLook.Balance), v.inFlightCost()
	deduct(free, &spent)
	return free
}

// inFlightCost returns the most that all transactions in flight can cost together,
// in wei.
func (v *View) inFlightCost() (sum uint256.Int) {
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() && r.Nonce >= v.LastLook.Latest {
			if _, over := sum.AddOverflow(&sum, &r.Newest().Cost); over {
				// A sum above 256 bits counts as the largest number.
				sum.SetAllOne()
			}
		}
	}
	return sum
}

// deduct subtracts cost, but not below zero, and reports whether the balance was
// enough.
func deduct(from, cost *uint256.Int) bool {
	if from.Lt(cost) {
		from.Clear()
		return false
	}
	from.Sub(from, cost)
	return true
}

// NoEstimate is the Reason of a request that waits because the node could not
// estimate its gas.
const NoEstimate = "gas could not be estimated"

// afford sets the job's prices; why tells why the job cannot be sent now.
func (v *View) afford(c *Rules, j *Job, free *uint256.Int) (why string) {
	j.Fees, why = c.Fees.price(v.LastLook, &j.Record)
	cost := j.cost()
	if why == "" && j.Gas == 0 {
		why = NoEstimate
	}
	if why != "" {
		// View.Problems reports the reason.
		v.waiting = Refusal{j.Record, why}
		return why
	}
	if v.waiting.Record.ID == j.Record.ID {
		v.waiting = Refusal{}
	}
	// An unknown balance (nil) counts as unlimited.
	covered := free == nil || !free.Lt(&cost)
	v.unpaid.noteCover(j.Record.ID, &cost, covered)
	if !covered {
		return "the balance does not cover it"
	}
	return ""
}

// learnPrice remembers the prices of a transaction that was mined only after a
// bump.
func (v *View) learnPrice(r *Record, k int) {
	switch fees := r.Attempts[k].Fees; {
	case k > 0 && r.Attempts[k-1].Fees.Cap.Lt(&fees.Cap) && !r.Attempts[k-1].Void:
		// The transaction was mined only after its price was raised. Transactions behind it
		// that pay less would probably stall too, one after the other, so they can be raised at
		// once.
		v.proven = fees
	case fees.below(&v.proven):
		v.proven = Fees{}
	}
}

// below reports whether the cap or the tip in f is lower than in g.
func (f *Fees) below(g *Fees) bool { return f.Cap.Lt(&g.Cap) || f.Tip.Lt(&g.Tip) }

// unpaid is the first transaction that the balance did not cover. [View.Problems]
// reports it.
type unpaid struct {
	id   uint64      // id of its record; 0 if there is none
	more uint256.Int // cost in addition to all transactions in flight
}

// noteCover remembers the first transaction that the balance does not cover.
func (u *unpaid) noteCover(id uint64, more *uint256.Int, covered bool) {
	switch {
	case covered && u.id == id:
		*u = unpaid{}
	case !covered && (u.id == 0 || u.id == id):
		// more is the cost of the transaction in addition to those in flight.
		*u = unpaid{id, *more}
	}
}
