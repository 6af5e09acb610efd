package account

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// CarryOut carries out the orders that users have given, such as cancellations.
// records contains, by key, the stored record of each request that the orders name.
// An order for a request that is mined or has ended comes too late and changes
// nothing.
func (v *View) CarryOut(now time.Time, orders []Order, records map[string]Record) Batch {
	b := v.Batch()
	changed := map[string]Record{}
	for _, o := range orders {
		b.Done = append(b.Done, o.Seq)
		switch o.Kind {
		case OrderReset:
			v.reset(&b, now, o.Force, changed)
			continue
		case OrderResume:
			b.resume(now)
			continue
		}
		r, known := records[o.Key]
		if c, again := changed[o.Key]; again {
			r = c
		}
		if !known || !(r.State == Pending || r.inFlight()) {
			continue // mined or ended: too late
		}
		r = r.clone()
		switch {
		case o.Kind == OrderCancel && r.State == Pending:
			b.changeState(now, &r, Cancelled, EventCancelled)
		case o.Kind == OrderCancel:
			r.Cancelling, r.Urgent = true, true
		case o.Kind == OrderReplace && o.Payload != nil && CheckReplacement(&r.Request, o.Payload) == nil:
			r.replace(o.Payload)
		}
		changed[o.Key] = r
	}
	// By id, so that the order of the map has no effect.
	b.Records = slices.SortedFunc(maps.Values(changed), func(x, y Record) int { return cmp.Compare(x.ID, y.ID) })
	return b
}

// replace gives the request a new payload, but keeps its key, group and priority.
func (r *Record) replace(p *Request) {
	key, group, priority := r.Key, r.Group, r.Priority
	r.keepBlobs(p.Blobs)
	r.Request = *p
	r.Key, r.Group, r.Priority, r.Capped = key, group, priority, false
	r.Urgent = r.State != Pending
	r.Cancelling = false
}

// reset sets the next nonce as low as possible, but above all nonces that are used on the
// chain or that belong to a request in flight. If force is true, it first ends the
// requests in flight, so that their nonces become free.
func (v *View) reset(b *Batch, now time.Time, force bool, changed map[string]Record) {
	to := b.Head.Floor
	if v.LastLook != nil {
		to = v.LastLook.Latest
	}
	for i := range v.Open {
		r := v.Open[i].clone()
		if c, again := changed[r.Key]; again {
			r = c.clone()
		}
		// With force, the user asserts that the requests in flight can never be
		// mined.
		if force && r.inFlight() {
			r.Reason = "given up by a forced reset of nonces"
			b.changeState(now, &r, Superseded, EventSuperseded)
			changed[r.Key] = r
		} else if r.Open() {
			to = max(to, r.Nonce+1)
		}
	}
	b.Head.Gaps = slices.DeleteFunc(b.Head.Gaps, func(n uint64) bool { return n >= to })
	b.Head.Resets = append(b.Head.Resets, Reset{At: now, From: b.Head.Next, To: to, Forced: force})
	b.Head.Resets = b.Head.Resets[max(0, len(b.Head.Resets)-maxResets):]
	// Transactions that were given up may still be in pools.
	b.Head.Accepted = max(b.Head.Accepted, b.Head.Next)
	b.Head.Next = to
	b.Events = append(b.Events, Event{Kind: EventReset, At: now, Nonce: to, Reason: fmt.Sprintf("forced: %t", force)})
}
