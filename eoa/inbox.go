package eoa

import "slices"

// inbox has the requests that wait in the store, as far as an executor has read
// them.
type inbox struct {
	wake    uint64   // wake version of pending and orders
	seen    uint64   // newest wake version from the store
	pending []Record // first requests without a nonce
	more    bool     // store may have more pending
	low     int      // pending count that triggers a read
	window  int      // number of requests to read
}

// reset forgets the requests, because the account was loaded.
func (i *inbox) reset(c *Config) {
	i.pending, i.more, i.window = nil, true, leastWindow*c.Batch
}

// expire makes the next read ask the store.
func (i *inbox) expire() { i.seen = i.wake + 1 }

// current reports whether the store can have nothing new that is needed now.
func (i *inbox) current() bool {
	return i.seen == i.wake && !(i.more && len(i.pending) <= i.low)
}

// take replaces the requests by those that were read.
func (i *inbox) take(read *Inbox, c *Config) {
	i.wake, i.seen, i.pending, i.more = read.Wake, read.Wake, read.Pending, read.More
	i.low = min(c.Batch-1, len(read.Pending)/2)
}

// widen reads more requests next time, because all that were read must wait and
// those behind them may not have to. It reports whether that is possible.
func (i *inbox) widen() bool {
	if !i.more || i.window >= maxWindow {
		return false
	}
	i.window *= 2
	i.expire()
	return true
}

// committed updates the requests after a commit of b.
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

// has reports whether a request may wait.
func (i *inbox) has() bool { return len(i.pending) > 0 || i.more }
