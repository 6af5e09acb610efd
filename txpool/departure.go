package txpool

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Departure is the reason and the time at which a transaction left the pool
// other than by inclusion.
type Departure struct {
	// Kind is Replaced or Dropped.
	Kind Kind
	// Hash is the hash of the transaction.
	Hash common.Hash
	// By is the hash of the replacing transaction. It is zero if Kind is
	// Dropped.
	By common.Hash
	// Reason is why the transaction was dropped. It is nil if Kind is Replaced.
	// It wraps the same error of this package as Event.Reason. Of an error of
	// the host it has only the text, at most 256 bytes.
	Reason error
	// At is the time at which the transaction left.
	At time.Time
}

// Departure returns why a transaction left the pool, and whether the pool
// remembers it. The pool remembers the newest 65,536 departures for a day, and
// across restarts if the host restores the pool. A transaction
// that is in the pool or was included has no departure.
func (p *Pool) Departure(hash common.Hash) (Departure, bool) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.core.aside.txs[hash] != nil { // one in the pool has none: see core.enter
		return Departure{}, false
	}
	d, left := p.core.departures.find(hash, now)
	return d, left > 0
}

// departure returns the Departure for an event.
func (e *Event) departure(now int64) Departure {
	d := Departure{Kind: Dropped, Hash: e.Tx.Hash(), At: time.Unix(0, now)}
	if e.By != (common.Hash{}) {
		d.Kind, d.By = Replaced, e.By
		return d
	}
	d.Reason = remembered(e.Reason)
	return d
}

// reason is a remembered error: its text, and the error of this package that it
// wrapped.
type reason struct {
	text string
	kind error // nil if none
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.kind }

// maxReason is the maximum length of a reason's text, in bytes.
const maxReason = 256

// remembered returns err as a reason. Most errors are plain errors of this package
// and need none, so that an eviction allocates nothing.
func remembered(err error) error {
	kind := labelOf(err).err
	if kind != nil && err == kind {
		return err
	}
	text := err.Error()
	return &reason{text[:min(len(text), maxReason)], kind}
}

// recalled returns the reason with the label and the text of a record.
func recalled(name, text string) error {
	r := &reason{text: text}
	for _, l := range labels {
		if l.label == name {
			r.kind = l.err
		}
	}
	return r
}
