package account

import (
	"cmp"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// View is an account as its worker sees it, together with the decisions on it.
// It is a deterministic state machine without a clock, and it calls nothing. A
// method that decides returns a [Batch]; the worker commits it and passes it to
// apply. It is not safe for concurrent use.
//
// All state beyond what was loaded may be lost: a new view of the same account
// decides the same or waits longer. In particular, it assumes that every signed
// transaction may be on a node.
type View struct {
	// Account is the account.
	Account Account
	// Head is the account's head, including the batches applied.
	Head Head
	// Open are the records with a nonce that may still change, by nonce.
	Open []Record

	// sent holds, by record id, the last send of the newest attempt. A send by
	// an earlier worker counts if the node accepted it.
	sent map[uint64]sending
	// Asking has the records that wait for the end of a call for their gas.
	Asking map[uint64]bool

	// seen is the last look that was acted upon; nil for none.
	seen *Look
	// height is the highest chain height that was acted upon. Records carry it
	// over from an earlier worker.
	height uint64
	// verifiedAt is a height at which the blocks of all mined records were part of the
	// chain at the last look; 0 means that none is known.
	verifiedAt uint64
	// mined is the height of the highest block that is known to have a
	// transaction of the account; 0 means that none is known.
	mined uint64

	// laggingSince is when the node's head fell behind one seen before; zero if
	// it has not.
	laggingSince time.Time
	quiet        time.Time // end of the requested wait
	unpaid       unpaid    // zero: nothing
	waiting      Refusal   // last request that waits for its own price or gas
	// proven are the prices of the last transaction that was mined only after its
	// price had been raised, so that its earlier prices were too low; zero if a
	// cheaper one has been mined since.
	proven Fees
	// blocked means that choose reached a request that must wait until
	// nothing of the other pool is in flight.
	blocked bool
}

// sending remembers the last send of a record's attempt.
type sending struct {
	tx    common.Hash
	at    time.Time
	tries int  // sends since then that no node accepted, without gaps
	gap   bool // the last one lacked the nonce before
}

// NewView returns the view of a loaded account. It drops records that are not
// open.
func NewView(a Account, l Loaded) *View {
	open := slices.DeleteFunc(slices.Clone(l.Open), func(r Record) bool { return !r.Open() || len(r.Attempts) == 0 })
	v := &View{Account: a, Head: l.Head, Open: open, sent: map[uint64]sending{}}
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

// Look returns the last look that was acted upon; nil for none.
func (v *View) Look() *Look { return v.seen }

// QuietUntil returns the end of the wait that the node requested; zero for none.
func (v *View) QuietUntil() time.Time { return v.quiet }

// Verified returns a height at which the blocks of all mined records were part of
// the chain at the last look; 0 means that none is known.
func (v *View) Verified() uint64 { return v.verifiedAt }

// PoolBlocked reports whether the last call of choose reached a request that must
// wait until nothing of the other pool is in flight.
func (v *View) PoolBlocked() bool { return v.blocked }

// Apply updates the view with a batch that the store has committed.
func (v *View) Apply(b Batch) {
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
			v.waiting = Refusal{}
		}
	}
	if len(over) > 0 {
		// Delete all at once: removing one by one from the front of
		// thousands is slow.
		v.Open = slices.DeleteFunc(v.Open, func(r Record) bool { return over[r.ID] })
	}
}

// Latest returns the account's transaction count that was last acted upon.
func (v *View) Latest() uint64 {
	if v.seen == nil {
		return v.Head.Floor
	}
	return v.seen.Latest
}

// InFlight returns the number of records in flight, and whether a node is known
// to have each of them.
func (v *View) InFlight() (n int, sure bool) {
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
func (v *View) holds(nonce uint64) bool {
	_, found := v.find(nonce)
	return found
}

// find returns the position in Open of the record with the nonce. If there is
// none, it returns that of the first record above.
func (v *View) find(nonce uint64) (at int, found bool) {
	return slices.BinarySearchFunc(v.Open, nonce, func(o Record, n uint64) int { return cmp.Compare(o.Nonce, n) })
}

// byID returns the open record with the given id, or nil.
func (v *View) byID(id uint64) *Record {
	for i := range v.Open {
		if v.Open[i].ID == id {
			return &v.Open[i]
		}
	}
	return nil
}

// Loaded is the persisted state of an account, as returned by [Store.Load].
type Loaded struct {
	// Head is the account's head.
	Head Head
	// Open are the records for which [Record.Open] holds, by nonce.
	Open []Record
	// MayLose means that the store may lose writes that it has acknowledged, for
	// example because a replica is promoted. The account is then exclusive; see
	// [Config.Exclusive].
	MayLose bool
}

// stalled reports whether the transaction count has not changed for
// Fees.StallTimeout.
func (v *View) stalled(c *Rules, now time.Time) bool {
	return v.seen != nil && now.Sub(v.Head.Since) >= c.Fees.StallTimeout
}
