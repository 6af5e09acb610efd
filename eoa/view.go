package eoa

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// view is an account as its worker sees it, together with the decisions on it.
// It is a deterministic state machine without a clock, and it calls nothing. A
// method that decides returns a [Batch]; the worker commits it and passes it to
// apply. It is not safe for concurrent use.
//
// All state beyond what was loaded may be lost: a new view of the same account
// decides the same or waits longer. In particular, it assumes that every signed
// transaction may be on a node.
type view struct {
	// Account is the account.
	Account Account
	// Head is the account's head, including the batches applied.
	Head Head
	// Open are the records with a nonce that may still change, by nonce.
	Open []Record

	// sent holds, by record id, the last send of the newest attempt. A send by
	// an earlier worker counts if the node accepted it.
	sent map[uint64]sending
	// look is the last one that was acted upon; nil for none.
	look *Look
	// height is the highest chain height that was acted upon. Records carry it
	// over from an earlier worker.
	height uint64
	// verified is a height at which the blocks of all mined records were part of the
	// chain at the last look; 0 means that none is known.
	verified uint64
	// mined is the height of the highest block that is known to have a
	// transaction of the account; 0 means that none is known.
	mined uint64

	// laggingSince is when the node's head fell behind one seen before; zero if
	// it has not.
	laggingSince time.Time
	quietUntil   time.Time // end of the requested wait
	unpaid       unpaid    // zero: nothing
	waiting      refusal   // last request that waits for its own price or gas
	// proven are the prices of the last transaction that was mined only after its
	// price had been raised, so that its earlier prices were too low; zero if a
	// cheaper one has been mined since.
	proven Fees
	// asking has the records that wait for the end of a call for their gas.
	asking map[uint64]bool
	// poolBlocked means that choose reached a request that must wait until
	// nothing of the other pool is in flight.
	poolBlocked bool
}

// sending remembers the last send of a record's attempt.
type sending struct {
	tx    common.Hash
	at    time.Time
	tries int  // sends since then that no node accepted, without gaps
	gap   bool // the last one lacked the nonce before
}

// newView returns the view of a loaded account. It drops records that are not
// open.
func newView(a Account, l Loaded) *view {
	open := slices.DeleteFunc(slices.Clone(l.Open), func(r Record) bool { return !r.Open() || len(r.Attempts) == 0 })
	v := &view{Account: a, Head: l.Head, Open: open, sent: map[uint64]sending{}}
	slices.SortFunc(v.Open, func(x, y Record) int { return cmp.Compare(x.Nonce, y.Nonce) })
	for i := range v.Open {
		r := &v.Open[i]
		v.height, v.mined = max(v.height, r.Height), max(v.mined, r.Height)
		if a := &r.Attempts[sendable(r)]; a.Result == Accepted && !a.SentAt.IsZero() {
			at := a.SentAt
			if l.Head.Resent.After(at) {
				at = l.Head.Resent
			}
			v.sent[r.ID] = sending{tx: a.Hash, at: at}
		}
	}
	return v
}

// apply updates the view with a batch that the store has committed.
func (v *view) apply(b Batch) {
	v.Head = b.Head
	v.Head.Version++
	over := map[uint64]bool{}
	for i := range b.Records {
		r := b.Records[i]
		v.mined = max(v.mined, r.Height)
		at, found := v.find(r.Nonce)
		found = found && v.Open[at].ID == r.ID
		switch {
		case r.Open() && found:
			v.Open[at] = r
		case r.Open():
			v.Open = slices.Insert(v.Open, at, r)
		case found:
			over[r.ID] = true
		}
		if !r.Open() {
			delete(v.sent, r.ID)
		}
		if r.ID == v.unpaid.id && r.State.Terminal() {
			v.unpaid = unpaid{}
		}
		if r.ID == v.waiting.Record.ID && r.State != Pending {
			v.waiting = refusal{}
		}
	}
	if len(over) > 0 {
		// Delete all at once: removing one by one from the front of
		// thousands is slow.
		v.Open = slices.DeleteFunc(v.Open, func(r Record) bool { return over[r.ID] })
	}
}

// and returns one batch with the changes of b, which was decided first and may
// be nil, and of next.
func (b *Batch) and(next Batch) *Batch {
	if b == nil {
		return &next
	}
	again := make(map[uint64]bool, len(next.Records))
	for i := range next.Records {
		again[next.Records[i].ID] = true
	}
	first := slices.DeleteFunc(slices.Clone(b.Records), func(r Record) bool { return again[r.ID] })
	next.Records, next.Events = append(first, next.Records...), slices.Concat(b.Events, next.Events)
	next.Done, next.Add, next.Drop = slices.Concat(b.Done, next.Done), slices.Concat(b.Add, next.Add), slices.Concat(b.Drop, next.Drop)
	return &next
}

// batch returns an empty batch.
func (v *view) batch() Batch {
	h := v.Head
	h.Holes, h.Resets = slices.Clone(h.Holes), slices.Clone(h.Resets)
	return Batch{Head: h}
}

// changes reports whether b must be written. A change of Floor alone, or a
// later Since, need not be.
func (v *view) changes(b *Batch) bool {
	old := &v.Head
	return len(b.Records)+len(b.Events)+len(b.Done)+len(b.Add)+len(b.Drop) > 0 || b.Head.Next != old.Next || b.Head.Started != old.Started || b.Head.Count != old.Count ||
		b.Head.Since.Before(old.Since) || !b.Head.Resent.Equal(old.Resent) || !slices.Equal(b.Head.Holes, old.Holes) ||
		b.Head.Stop != old.Stop || !b.Head.BelowSince.Equal(old.BelowSince) || !b.Head.AheadSince.Equal(old.AheadSince)
}

// addEvent adds an event about r.
func (b *Batch) addEvent(now time.Time, kind EventKind, r *Record) {
	e := Event{Kind: kind, At: now, ID: r.ID, Key: r.Key, Nonce: r.Nonce, Tx: r.Tx, Height: r.Height, Success: r.Success, Reason: r.Reason}
	if n := r.Newest(); n != nil && e.Tx == (common.Hash{}) {
		e.Tx = n.Hash
	}
	b.Events = append(b.Events, e)
}

// move changes the state of r. It panics if the state table forbids the change,
// which is a bug of this package; nothing is written then.
func (b *Batch) move(now time.Time, r *Record, to State, kind EventKind) {
	if !r.State.canBecome(to) {
		panic(fmt.Sprintf("eoa: record %d cannot become %v from %v", r.ID, to, r.State))
	}
	r.State = to
	if to.Terminal() {
		r.EndedAt = now
	}
	r.dropBlobs()
	b.addEvent(now, kind, r)
}

// latest returns the account's transaction count that was last acted upon.
func (v *view) latest() uint64 {
	if v.look == nil {
		return v.Head.Floor
	}
	return v.look.Latest
}

// inFlight returns the number of records in flight, and whether a node is known
// to have each of them.
func (v *view) inFlight() (n int, sure bool) {
	sure = true
	for i := range v.Open {
		if v.Open[i].inFlight() {
			n++
			sure = sure && v.Open[i].State == Broadcast
		}
	}
	return n, sure
}

// holds reports whether an open record has the nonce.
func (v *view) holds(nonce uint64) bool {
	_, found := v.find(nonce)
	return found
}

// find returns the position in Open of the record with the nonce. If there is
// none, it returns that of the first record above.
func (v *view) find(nonce uint64) (at int, found bool) {
	return slices.BinarySearchFunc(v.Open, nonce, func(o Record, n uint64) int { return cmp.Compare(o.Nonce, n) })
}

// byID returns the open record with the given id, or nil.
func (v *view) byID(id uint64) *Record {
	for i := range v.Open {
		if v.Open[i].ID == id {
			return &v.Open[i]
		}
	}
	return nil
}
