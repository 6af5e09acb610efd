package account

import (
	"cmp"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// View is an account as its worker sees it: the state that the store has, and notes of this
// worker. Its methods are the decisions. It has no clock and calls nothing, so that the same
// calls always give the same results. A decision returns a [Batch]; the worker writes it to
// the store and passes it to Apply. A View is not safe for concurrent use.
//
// Everything in a View that was not loaded from the store may be lost in a crash. A new View
// of the same account then decides the same or waits longer. In particular, it assumes that
// every signed transaction may be on a node.
type View struct {
	// Account is the account.
	Account Account
	// Head is the account's head, including the batches applied.
	Head Head
	// Open are the records with a nonce that may still change, by nonce.
	Open []Record

	// sent remembers, by record id, the last send of the newest attempt. For the sends of an
	// earlier worker it has only those that a node accepted, because these are in the store.
	sent map[uint64]sending
	// Asking has the records for whose gas a node has been asked and has not answered yet.
	// Choose leaves them out.
	Asking map[uint64]bool

	// LastLook is the last look that a decision was made on; nil if there was none.
	LastLook *Look
	// height is the greatest height of a newest block that a decision was made on, also by an
	// earlier worker, as far as records show it. A lower look is outdated.
	height uint64
	// VerifiedAt is a height at which the blocks of all mined records were part of the chain
	// at the last look; 0 means that none is known. [Handle.Wait] measures depths from it.
	VerifiedAt uint64
	// mined is the height of the newest block that is known to have a transaction of the
	// account; 0 means that none is known.
	mined uint64

	// laggingSince is when the node began to report older blocks than before; zero if it does
	// not.
	laggingSince time.Time
	// Quiet is the end of the wait that the node requested; zero if it requested none.
	Quiet   time.Time
	unpaid  unpaid  // zero: nothing
	waiting Refusal // last request that waits for its own price or gas
	// proven are the prices of the last transaction that was mined only after a bump.
	// Transactions behind it that pay less would probably stall one after the other, so they
	// are raised at once. It is zero after a cheaper transaction was mined.
	proven Fees
	// PoolBlocked means that the last Choose met a request that must wait until no transaction of
	// the other pool (blobs or not) is in flight.
	PoolBlocked bool
}

// sending remembers the last send of a record's attempt.
type sending struct {
	tx    common.Hash
	at    time.Time
	tries int  // sends since then that no node accepted, without gaps
	gap   bool // the last one lacked the nonce before
}

// NewView returns the view of an account that was loaded from the store. Records that are not
// open are left out.
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

// Apply brings the view up to date with a batch that will be written, or has been.
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

// Latest returns the account's transaction count in the last look that a decision was made
// on.
func (v *View) Latest() uint64 {
	if v.LastLook == nil {
		return v.Head.Floor
	}
	return v.LastLook.Latest
}

// InFlight returns the number of records in flight, and whether a node is known to have all
// of them.
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

// isTaken reports whether an open record has the nonce.
func (v *View) isTaken(nonce uint64) bool {
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

// Loaded is the state of an account in the store, as returned by [Store.Load].
type Loaded struct {
	// Head is the account's head.
	Head Head
	// Open are the records for which [Record.Open] holds, by nonce.
	Open []Record
	// MayLose means that the store may lose writes that it has acknowledged, for example if
	// it promotes a replica. The account is then treated as exclusive; see [Rules.Exclusive].
	MayLose bool
}

// stalled reports whether the transaction count has not changed for
// Fees.StallTimeout.
func (v *View) stalled(c *Rules, now time.Time) bool {
	return v.LastLook != nil && now.Sub(v.Head.Since) >= c.Fees.StallTimeout
}
