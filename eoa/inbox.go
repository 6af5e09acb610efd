package eoa

import "slices"

// inbox is the executor's copy of the waiting requests in the store.
type inbox struct {
	wake    uint64   // wake version at which pending and orders were read
	seen    uint64   // newest wake version that the store has returned
	pending []Record // first requests without a nonce
	more    bool     // the store may have more of them
	low     int      // when this few are left, the store is read again
	window  int      // number of requests to read at once
}

// reset drops the requests that were read, because the account was loaded again.
func (i *inbox) reset(c *Config) {
	i.pending, i.more, i.window = nil, true, leastWindow*c.Batch
}

// expire marks the requests as outdated, so that the next readInbox asks the store.
func (i *inbox) expire() { i.seen = i.wake + 1 }

// current reports whether the store need not be read now.
func (i *inbox) current() bool {
	return i.seen == i.wake && !(i.more && len(i.pending) <= i.low)
}

// replace replaces the requests by those that were just read.
func (i *inbox) replace(read *Inbox, c *Config) {
	i.wake, i.seen, i.pending, i.more = read.Wake, read.Wake, read.Pending, read.More
	i.low = min(c.Batch-1, len(read.Pending)/2)
}

// widen makes the next read return more requests, and returns false if it cannot.
func (i *inbox) widen() bool {
	if !i.more || i.window >= maxWindow {
		return false
	}
	// None of the waiting requests can be sent, for example because their price limits are too
	// low. Read twice as many, because one behind them may be sendable.
	i.window *= 2
	i.expire()
	return true
}

// committed updates the requests with a batch that was written.
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

// has reports whether any request may be waiting for a nonce.
func (i *inbox) has() bool { return len(i.pending) > 0 || i.more }
