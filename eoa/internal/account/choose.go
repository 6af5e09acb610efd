package account

import "time"

// Choose returns the requests that may get nonces now, in the order in which they should.
// pending are the requests without a nonce, those that go first in front. Choose returns at
// most as many as may be in flight in addition. The batch ends requests whose deadline has
// passed, and fillers of gaps that are not needed any more.
func (v *View) Choose(c *Rules, now time.Time, pending []Record) ([]Job, Batch) {
	b := v.Batch()
	room, free, pools := v.Room(c), v.free(), v.pools()
	v.PoolBlocked = false
	ahead, held := v.groupsInFlight(), map[string]bool{}
	var jobs []Job
	fills := len(v.Head.Gaps)
	for i := range pending {
		r := &pending[i]
		switch {
		case r.State != Pending:
			// The store must not offer it.
		case !r.Deadline.IsZero() && !now.Before(r.Deadline):
			gone := r.clone()
			gone.Reason = "deadline passed"
			b.changeState(now, &gone, Failed, EventFailed)
			b.Records = append(b.Records, gone)
		case r.madeByExecutor() && fills == 0:
			gone := r.clone()
			b.changeState(now, &gone, Cancelled, EventCancelled)
			b.Records = append(b.Records, gone)
		case v.LastLook == nil || len(jobs) >= room || r.isDelayed(now) || v.Asking[r.ID]:
			held[r.Group] = true
		case r.Group != "" && (held[r.Group] || r.Gas == 0 && !r.Noop && ahead[r.Group] > 0):
			held[r.Group] = true
		default:
			j := Job{Record: *r, Gas: r.Gas, Noop: r.Noop}
			if j.Noop {
				j.Gas = v.noopGas()
			}
			if r.madeByExecutor() {
				j.Record.Kind = v.filler(v.Head.Gaps[len(v.Head.Gaps)-fills])
			}
			least := j
			least.Gas = max(j.Gas, noopGas)
			if why := v.afford(c, &least, free); why != "" {
				held[r.Group] = true
				if r.Reason == "" && len(b.Records) < c.Batch { // say it once
					waits := r.clone()
					waits.Reason = why
					b.Records = append(b.Records, waits)
				}
				continue
			}
			if r.madeByExecutor() {
				fills--
			} else if v.PoolBlocked = v.PoolBlocked || !pools.takes(r.Kind); v.PoolBlocked {
				held[r.Group] = true
				continue
			}
			pools.add(j.Record.Kind)
			jobs = append(jobs, j)
			ahead[r.Group]++
		}
	}
	return jobs, b
}

// Room returns how many more requests may be in flight. If there are gaps, there is always
// room for the transactions that fill them.
func (v *View) Room(c *Rules) int {
	n, sure := v.InFlight()
	most := c.maxInFlight(sure)
	if v.delegated() {
		most = 1
	}
	return max(most-n, min(len(v.Head.Gaps), c.Batch))
}

// groupsInFlight returns the groups that have members in flight, each with the highest nonce
// of these plus one.
func (v *View) groupsInFlight() map[string]uint64 {
	ahead := map[string]uint64{}
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() && r.Group != "" {
			ahead[r.Group] = r.Nonce + 1
		}
	}
	return ahead
}

// Refusal is a request that cannot be sent now, and the reason.
type Refusal struct {
	// Record is the current record of the request.
	Record Record
	// Reason explains why it cannot be sent.
	Reason string
}

// pools counts the transactions in flight by the pool in which nodes keep them: that for blob
// transactions, or the other one.
type pools struct{ blobs, others int }

func (v *View) pools() (p pools) {
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() {
			p.add(r.Kind)
		}
	}
	return p
}

func (p *pools) add(k Kind) {
	if k == Blob {
		p.blobs++
	} else {
		p.others++
	}
}

// takes reports whether nodes have room for one more transaction of kind k. They keep an
// account in one pool at a time.
func (p *pools) takes(k Kind) bool {
	if k == Blob {
		return p.others == 0 && p.blobs < maxBlobTxs
	}
	return p.blobs == 0
}

// filler returns the kind of a transaction that fills the gap at nonce: that of the
// transaction which comes next, because both must be in the same pool.
func (v *View) filler(nonce uint64) Kind {
	at, _ := v.find(nonce)
	if at < len(v.Open) && v.Open[at].Kind == Blob {
		return Blob
	}
	return DynamicFee
}
