package account

import "time"

// choose returns the pending requests that may be sent now, best first. Their
// number is limited by the room in flight. The batch ends requests whose
// deadline has passed and noops that are not needed. pending are requests
// without a nonce, in order of rank.
func (v *View) choose(c *Rules, now time.Time, pending []Record) ([]Job, Batch) {
	b := v.Batch()
	room, free, pools := v.Room(c), v.free(), v.pools()
	v.blocked = false
	ahead, held := v.groupsInFlight(), map[string]bool{}
	var jobs []Job
	fills := len(v.Head.Holes)
	for i := range pending {
		r := &pending[i]
		switch {
		case r.State != Pending:
			// The store must not offer it.
		case !r.Deadline.IsZero() && !now.Before(r.Deadline):
			gone := r.clone()
			gone.Reason = "deadline passed"
			b.move(now, &gone, Failed, EventFailed)
			b.Records = append(b.Records, gone)
		case r.own() && fills == 0:
			gone := r.clone()
			b.move(now, &gone, Cancelled, EventCancelled)
			b.Records = append(b.Records, gone)
		case v.seen == nil || len(jobs) >= room || r.waits(now) || v.Asking[r.ID]:
			held[r.Group] = true
		case r.Group != "" && (held[r.Group] || r.Gas == 0 && !r.Noop && ahead[r.Group] > 0):
			held[r.Group] = true
		default:
			j := Job{Record: *r, Gas: r.Gas, Noop: r.Noop}
			if j.Noop {
				j.Gas = v.noopGas(c)
			}
			if r.own() {
				j.Record.Kind = v.filler(v.Head.Holes[len(v.Head.Holes)-fills])
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
			if r.own() {
				fills--
			} else if v.blocked = v.blocked || !pools.takes(r.Kind); v.blocked {
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

// Room returns how many more requests may be in flight. A request that fills a
// nonce below others always has room.
func (v *View) Room(c *Rules) int {
	n, sure := v.InFlight()
	most := c.maxInFlight(sure)
	if v.delegated(c) {
		most = 1
	}
	return max(most-n, min(len(v.Head.Holes), c.Batch))
}

// groupsInFlight returns, for each group with members in flight, the highest
// nonce of those plus one.
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

// pools counts an account's transactions in flight by the node pool that they
// belong to.
type pools struct{ blobs, others int }

func (v *View) pools() (p pools) {
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() {
			p.add(r.Kind)
		}
	}
	return p
}

// HasBlobs reports whether a blob transaction is in flight.
func (v *View) HasBlobs() bool {
	p := v.pools()
	return p.blobs > 0
}

func (p *pools) add(k Kind) {
	if k == Blob {
		p.blobs++
	} else {
		p.others++
	}
}

// takes reports whether nodes take one more transaction of kind k.
func (p *pools) takes(k Kind) bool {
	if k == Blob {
		return p.others == 0 && p.blobs < maxBlobTxs
	}
	return p.blobs == 0
}

// filler returns the kind of a noop that fills nonce. It is for the pool of the
// next open record.
func (v *View) filler(nonce uint64) Kind {
	at, _ := v.find(nonce)
	if at < len(v.Open) && v.Open[at].Kind == Blob {
		return Blob
	}
	return DynamicFee
}
