package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Batch contains the changes that one or several decisions make to an account, for
// the store to write. A store writes either the whole batch or nothing of it.
type Batch struct {
	// Head is the new head of the account. Head.Version is still the version on
	// which the decision was based. If the store has another version by now, it
	// refuses the batch; otherwise it stores the head with Version+1.
	Head Head
	// Records replace the stored records that have the same ids. A store may rely
	// on these rules:
	//
	//   - The key and the priority of a record never change.
	//   - A record that is Broadcast, Mined or Confirmed was Prepared in an earlier
	//     batch.
	//   - SentAt of a new attempt is zero.
	Records []Record
	// Events are appended to the outbox, from which they are delivered. The store
	// gives them their sequence numbers.
	Events []Event
	// Done contains the sequence numbers (Order.Seq) of the orders that were
	// carried out.
	Done []uint64
	// Drop contains the records whose history the store deletes, because
	// [Retention] no longer keeps it. Of each record, the store keeps only the key,
	// id, state and digest. Get and Submit then return a record with only these
	// fields, and List and ByHash no longer find the record.
	Drop []Record
	// Add contains new requests that the executor makes itself. The store accepts
	// them in the same way as Submit does, except that it skips a request whose key
	// exists.
	Add []Request
}

// Join merges the changes of two decisions into one batch, so that the store writes
// both or neither. b is the earlier decision and may be nil. If both change the
// same record, the change in next wins, because next was decided on the outcome of
// b.
func Join(b *Batch, next Batch) *Batch {
	if b == nil || len(b.Records)+len(b.Events)+len(b.Done)+len(b.Add)+len(b.Drop) == 0 {
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

// Batch returns a batch without changes, to which a decision adds its own changes.
func (v *View) Batch() Batch {
	h := v.Head
	h.Gaps, h.Resets = slices.Clone(h.Gaps), slices.Clone(h.Resets)
	return Batch{Head: h}
}

// Changes reports whether b must be written to the store. A batch that only raises
// Head.Floor or moves Head.Since later need not be written, because the next
// worker learns the same from the chain.
func (v *View) Changes(b *Batch) bool {
	old := &v.Head
	return len(b.Records)+len(b.Events)+len(b.Done)+len(b.Add)+len(b.Drop) > 0 || b.Head.Next != old.Next || b.Head.Started != old.Started || b.Head.Count != old.Count ||
		b.Head.Since.Before(old.Since) || !b.Head.Resent.Equal(old.Resent) || !slices.Equal(b.Head.Gaps, old.Gaps) ||
		b.Head.Stop != old.Stop || !b.Head.BelowSince.Equal(old.BelowSince) || !b.Head.BelowAt.Equal(old.BelowAt) || !b.Head.AheadSince.Equal(old.AheadSince)
}

// addEvent appends an event about r to the batch.
func (b *Batch) addEvent(now time.Time, kind EventKind, r *Record) {
	e := Event{Kind: kind, At: now, ID: r.ID, Key: r.Key, Nonce: r.Nonce, Tx: r.Tx, Height: r.Height, Success: r.Success, Reason: r.Reason}
	if n := r.Newest(); n != nil && e.Tx == (common.Hash{}) {
		e.Tx = n.Hash
	}
	b.Events = append(b.Events, e)
}

// changeState sets the state of r and adds an event about it.
func (b *Batch) changeState(now time.Time, r *Record, to State, kind EventKind) {
	// A change that nextStates forbids is a bug in this package, and the wrong
	// state must not be stored.
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
