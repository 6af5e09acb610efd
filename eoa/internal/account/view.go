package account

import (
	"cmp"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// View is an account as its worker sees it: the state in the store, and notes that
// only this worker has. Its methods make the decisions. A decision returns a
// [Batch], which the worker writes to the store and then passes to Apply. A View
// has no clock and calls nothing, so that the same calls always give the same
// results. A View is not safe for concurrent use.
//
// A crash may lose everything in a View that was not loaded from the store. A new
// View of the same account then makes the same decisions or waits longer. In
// particular, it assumes that a node may have any signed transaction.
type View struct {
	// Account is the account that the view belongs to.
	Account Account
	// Head is the account's head, with all applied batches.
	Head Head
	// Open contains the records that have a nonce and may still change, ordered by
	// nonce.
	Open []Record

	// sent has, for each record id, when and how often the newest attempt was sent. After a
	// restart it has only the sends that a node accepted, because only these are stored.
	sent map[uint64]sending
	// Asking contains the ids of the records whose gas the node has been asked to
	// estimate, until it answers. Choose leaves these records out.
	Asking map[uint64]bool

	// LastLook is the last Look that was trusted and applied to the records; nil
	// before the first one.
	LastLook *Look
	// height is the greatest block height of all reports of nodes that were acted on. A report
	// of a lower height is outdated.
	height uint64
	// VerifiedAt is the newest block height at which all mined records were known
	// to be on the chain; 0 means that none is known. [Handle.Wait] measures
	// depths from it.
	VerifiedAt uint64
	// mined is the height of the newest block known to contain a transaction of the
	// account; 0 means that none is known.
	mined uint64

	// laggingSince is when the node began to report older blocks than before, and
	// laggingAt is when it last did so; zero if it does not.
	laggingSince, laggingAt time.Time
	// Quiet is the end of the wait that the node requested; zero if it requested
	// none.
	Quiet   time.Time
	unpaid  unpaid  // first request that the balance did not cover; zero: none
	waiting Refusal // last request that waits for its own price or gas; zero: none
	// proven are the prices of the last transaction that was mined only after a
	// bump. Transactions behind it that pay less are raised at once, because they
	// would probably stall too.
	proven Fees
	// PoolBlocked means that the last Choose met a request for which nodes have no room. Nodes
	// keep an account's blob transactions in one pool and all others in another, and only one
	// of the two at a time. Either the account's transactions in flight fill that pool, or
	// they are in the pool that the request does not belong to.
	PoolBlocked bool
}

// sending remembers the last send of a record's newest attempt.
type sending struct {
	tx    common.Hash
	at    time.Time
	tries int  // sends since the last accepted one, except refusals because of a gap
	gap   bool // the node lacked the nonce before
}

// NewView returns the view of an account that was loaded from the store. It leaves
// out records that are not open.
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

// Apply updates the view with a batch that has been written or is going to be
// written.
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
		// Delete all at once, because removing thousands of records from the front
		// one by one is slow.
		v.Open = slices.DeleteFunc(v.Open, func(r Record) bool { return over[r.ID] })
	}
}

// Latest returns the account's transaction count in the last Look on which a
// decision was made, or Head.Floor if there was none.
func (v *View) Latest() uint64 {
	if v.LastLook == nil {
		return v.Head.Floor
	}
	return v.LastLook.Latest
}

// InFlight returns the number of requests that have a nonce and are in no block. sure is
// true if one node is known to have the transactions of all of them, so that it accepts
// many more: see Rules.MaxInFlight.
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

// find returns the index in Open of the record with the nonce.
func (v *View) find(nonce uint64) (at int, found bool) {
	// If no record has this nonce, at is the index at which such a record would be inserted.
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

// Loaded is the stored state of an account, as [Store.Load] returns it.
type Loaded struct {
	// Head is the account's head.
	Head Head
	// Open contains the records for which [Record.Open] returns true, ordered by
	// nonce.
	Open []Record
	// MayLose means that the store may lose writes that it has acknowledged, for
	// example by promoting a replica. The account is then treated as exclusive; see
	// [Rules.Exclusive].
	MayLose bool
}

// stalled reports whether the transaction count has not risen for
// Fees.StallTimeout.
func (v *View) stalled(c *Rules, now time.Time) bool {
	return v.LastLook != nil && now.Sub(v.Head.Since) >= c.Fees.StallTimeout
}
