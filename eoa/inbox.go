package eoa

import "slices"

// inbox has the waiting requests of the account, as far as the executor has read them from
// the store.
type inbox struct {
	wake    uint64   // wake version of pending and orders
	seen    uint64   // newest wake version from the store
	pending []Record // first requests without a nonce
	more    bool     // store may have more pending
	low     int      // pending count that triggers a read
	window  int      // number of requests to read
}

// reset forgets the requests, because the account was loaded again.
func (i *inbox) reset(c *Config) {
	i.pending, i.more, i.window = nil, true, leastWindow*c.Batch
}

// expire makes the next read ask the store.
func (i *inbox) expire() { i.seen = i.wake + 1 }

// current reports whether a read of the store would show nothing that is needed now.
func (i *inbox) current() bool {
	return i.seen == i.wake && !(i.more && len(i.pending) <= i.low)
}

// replace replaces the requests by those that were read.
func (i *inbox) replace(read *Inbox, c *Config) {
	i.wake, i.seen, i.pending, i.more = read.Wake, read.Wake, read.Pending, read.More
	i.low = min(c.Batch-1, len(read.Pending)/2)
}

// widen makes the next read return more requests, because all that were read must wait, and
// those behind them may not have to. It reports whether the store may have more.
func (i *inbox) widen() bool {
	if !i.more || i.window >= maxWindow {
		return false
	}
	i.window *= 2
	i.expire()
	return true
}

// committed brings the requests up to date with a batch that was written.
func (i *inbox) committed(b *Batch) {
	gone := make(map[uint64]bool, len(b.Records))
	for k := range b.Records {
		r := &b.Records[k]
		gone[r.ID] = r.State != Pending
		at := slices.IndexFunc(i.pending, func(p Record) bool { return p.ID == r.ID })
		switch {
		case r.State == Pending && at >= 0:
			i.pending[at] = *r
		case r.State == Pending:
			i.pending, i.more = nil, true // pending again: read all
		}
	}
	i.pending = slices.DeleteFunc(i.pending, func(p Record) bool { return gone[p.ID] })
	if len(b.Add) > 0 {
		i.pending, i.more = nil, true
	}
}

// has reports whether any request may be waiting.
func (i *inbox) has() bool { return len(i.pending) > 0 || i.more }
