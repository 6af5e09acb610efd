package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Batch is one step of an account. A store writes all of it or nothing.
type Batch struct {
	// Head is the new head. Its Version is the version that the step was
	// decided on; the store writes Version+1.
	Head Head
	// Records replace the stored records with the same ids. The key and the
	// priority of a record never change, a record that is Broadcast, Mined or
	// Confirmed was Prepared in an earlier step, and a new attempt has a zero SentAt.
	Records []Record
	// Events are appended to the outbox. The store numbers them.
	Events []Event
	// Done are the Seqs of the orders that were carried out.
	Done []uint64
	// Drop are records of ended requests whose history is deleted. The store
	// keeps their keys, ids, states and digests: Get and Submit return a record
	// with these only, and List and ByHash no longer find it.
	Drop []Record
	// Add are new requests of the executor, accepted as by Submit. A request
	// whose key exists is skipped.
	Add []Request
}

// Join returns one batch with the changes of b, which was decided first and may
// be nil, and of next.
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
	h.Holes, h.Resets = slices.Clone(h.Holes), slices.Clone(h.Resets)
	return Batch{Head: h}
}

// Changes reports whether b must be written. A change of Floor alone, or a
// later Since, need not be.
func (v *View) Changes(b *Batch) bool {
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
