package txpool

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

// Departure records when and why a transaction has left the pool other than by
// inclusion in a block.
type Departure struct {
	// Kind is Replaced or Dropped.
	Kind Kind
	// Hash is the hash of the transaction.
	Hash common.Hash
	// By is the hash of the replacing transaction. It is zero if Kind is
	// Dropped.
	By common.Hash
	// Reason is why the transaction was dropped; it is nil if Kind is Replaced. It
	// wraps the same error of this package as Event.Reason. If the error came from
	// the host, Reason keeps only its text, up to 256 bytes.
	Reason error
	// At is the time at which the transaction left.
	At time.Time
}

// departure returns the Departure that belongs to an event.
func (e *Event) departure(now int64) Departure {
	d := Departure{Kind: Dropped, Hash: e.Tx.Hash(), At: time.Unix(0, now)}
	if e.By != (common.Hash{}) {
		d.Kind, d.By = Replaced, e.By
		return d
	}
	d.Reason = rememberReason(e.Reason)
	return d
}

// reason is the copy of an error that the pool remembers: its text, and the error of
// this package that it wrapped. The original is not kept, because a host's error may
// keep much memory alive.
type reason struct {
	text string
	kind error // nil if it wrapped none
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.kind }

// maxReason is the maximum length of a reason's text, in bytes.
const maxReason = 256

// rememberReason returns the copy of an error that the pool remembers.
func rememberReason(err error) error {
	kind := labelOf(err).err
	if kind != nil && err == kind {
		// Most errors are the plain errors of this package. Keeping them as they are saves a
		// copy for each evicted transaction.
		return err
	}
	text := err.Error()
	return &reason{text[:min(len(text), maxReason)], kind}
}

// recallReason restores an error from a record, which has its label and its text.
func recallReason(name, text string) error {
	r := &reason{text: text}
	for _, l := range labels {
		if l.label == name {
			r.kind = l.err
		}
	}
	return r
}

// record encodes the departure as a record for the host's log.
func (d *Departure) record() []byte {
	var label, text string
	if d.Kind == Dropped {
		label, text = labelOf(d.Reason).label, d.Reason.Error()
	}
	return encode(recordDeparted, d.Hash, uint64(d.At.UnixNano()), d.By, label, text)
}

// departureOf reads the record of a departure.
func departureOf(record []byte) (Departure, error) {
	d := Departure{Kind: Replaced}
	var at uint64
	var label, text string
	err := decode(record, &d.Hash, &at, &d.By, &label, &text)
	d.At = time.Unix(0, int64(at))
	if d.By == (common.Hash{}) {
		d.Kind, d.Reason = Dropped, recallReason(label, text[:min(len(text), maxReason)])
	}
	return d, err
}

// recent remembers transactions for a limited time, each with a value, for example why
// it left the pool. If there are too many, it forgets the oldest.
type recent[V any] struct {
	lasts time.Duration
	lru.BasicLRU[common.Hash, stamped[V]]
}

type stamped[V any] struct {
	value V
	at    int64
}

func newRecent[V any](most int, lasts time.Duration) recent[V] {
	return recent[V]{lasts, lru.NewBasicLRU[common.Hash, stamped[V]](most)}
}

// remember keeps a value for a transaction.
func (r *recent[V]) remember(hash common.Hash, value V, at int64) {
	r.prune(at)
	r.Add(hash, stamped[V]{value, at})
}

// prune removes the transactions that have been remembered for the full time.
func (r *recent[V]) prune(now int64) {
	for {
		hash, oldest, some := r.GetOldest()
		if !some || r.timeLeft(oldest, now) > 0 {
			return
		}
		r.Remove(hash)
	}
}

// timeLeft returns how much longer a value is remembered; it may be negative.
func (r *recent[V]) timeLeft(one stamped[V], now int64) time.Duration {
	return r.lasts - time.Duration(now-one.at)
}

// find returns the value for a transaction, and how much longer it is remembered.
func (r *recent[V]) find(hash common.Hash, now int64) (value V, left time.Duration) {
	one, there := r.Peek(hash)
	if there && r.timeLeft(one, now) > 0 {
		return one.value, r.timeLeft(one, now)
	}
	return value, 0
}

// all returns the remembered values, oldest first.
func (r *recent[V]) all(now int64) (all []V) {
	for _, hash := range r.Keys() {
		one, left := r.find(hash, now)
		if left > 0 {
			all = append(all, one)
		}
	}
	return all
}
