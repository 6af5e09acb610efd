package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Batch is the outcome of one or several decisions: everything that changes in the store. A
// store writes all of it or nothing.
type Batch struct {
	// Head is the new head of the account. Its Version is the one that the decision was made
	// on: the store refuses the batch if it has another version by now, and otherwise stores
	// Version+1.
	Head Head
	// Records replace the stored records with the same ids. A store may rely on three rules:
	// the key and the priority of a record never change; a record that is Broadcast, Mined or
	// Confirmed was Prepared in an earlier batch; and SentAt of a new attempt is zero.
	Records []Record
	// Events are appended to the outbox. The store numbers them.
	Events []Event
	// Done are the Seqs of the orders that were carried out.
	Done []uint64
	// Drop are records whose history is deleted, because [Retention] does not keep it. The
	// store keeps their keys, ids, states and digests. Get and Submit then return a record
	// with only these, and List and ByHash no longer find it.
	Drop []Record
	// Add are new requests of the executor itself. They are accepted as by Submit, except
	// that a request whose key exists is skipped.
	Add []Request
}

// Join returns one batch with the changes of two decisions. b was decided first and may be
// nil. If both change a record, the change of next counts, because it was decided on the
// outcome of b.
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

// Batch returns an empty batch.
func (v *View) Batch() Batch {
	h := v.Head
	h.Gaps, h.Resets = slices.Clone(h.Gaps), slices.Clone(h.Resets)
	return Batch{Head: h}
}

// Changes reports whether b must be written. If only Floor has risen, or Since has become
// later, it need not be: the next worker sees the same on the chain.
func (v *View) Changes(b *Batch) bool {
	old := &v.Head
	return len(b.Records)+len(b.Events)+len(b.Done)+len(b.Add)+len(b.Drop) > 0 || b.Head.Next != old.Next || b.Head.Started != old.Started || b.Head.Count != old.Count ||
		b.Head.Since.Before(old.Since) || !b.Head.Resent.Equal(old.Resent) || !slices.Equal(b.Head.Gaps, old.Gaps) ||
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

// changeState sets the state of r and adds the event. It panics if the table of states
// forbids the change: that would be a bug of this package, and the panic prevents that it is
// written.
func (b *Batch) changeState(now time.Time, r *Record, to State, kind EventKind) {
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
