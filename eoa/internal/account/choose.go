package account

import "time"

// Choose selects the waiting requests that may get nonces now, in the order in
// which they should get them. pending contains the requests without a nonce, the
// most urgent first. Choose stops when the limit of requests in flight is reached.
// The batch ends the requests whose deadline has passed, and the no-op requests
// that no longer have a gap to fill.
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
			// A correct store never returns such a record.
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
		// Earlier members of the group may change the state that a gas estimate depends on, so
		// wait until they are mined.
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
			// A request without an estimate needs at least the gas of a transfer.
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

// Room returns how many more requests may get a nonce now. Even if the account is
// at its limit, there is room for the no-ops that fill gaps, because nothing can be
// mined without them.
func (v *View) Room(c *Rules) int {
	n, sure := v.InFlight()
	most := c.maxInFlight(sure)
	if v.delegated() {
		most = 1
	}
	return max(most-n, min(len(v.Head.Gaps), c.Batch))
}

// groupsInFlight returns each group in flight with its highest nonce plus one.
func (v *View) groupsInFlight() map[string]uint64 {
	ahead := map[string]uint64{}
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() && r.Group != "" {
			ahead[r.Group] = r.Nonce + 1
		}
	}
	return ahead
}

// Refusal is a request that cannot be sent now, together with the reason.
type Refusal struct {
	// Record is the current record of the request.
	Record Record
	// Reason explains why it cannot be sent.
	Reason string
}

// pools counts an account's transactions in flight separately for the two pools in
// which nodes keep them: one for blob transactions, and one for all other kinds.
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

// takes reports whether nodes would accept one more transaction of kind k.
func (p *pools) takes(k Kind) bool {
	// A node keeps an account's transactions in one of its two pools only, so only the
	// requests for that pool can be sent.
	if k == Blob {
		return p.others == 0 && p.blobs < maxBlobTxs
	}
	return p.blobs == 0
}

// filler returns the kind of no-op that can fill the gap at nonce.
func (v *View) filler(nonce uint64) Kind {
	at, _ := v.find(nonce)
	// The gap must be filled by a transaction for the same pool as the transaction behind it.
	// If that one has blobs, the no-op needs a blob too.
	if at < len(v.Open) && v.Open[at].Kind == Blob {
		return Blob
	}
	return DynamicFee
}
