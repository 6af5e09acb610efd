package account

import (
	"time"

	"github.com/jamq/jamq/internal/fields"
)

// Retention limits the history of an account in its store. The executor applies
// it when the account has no work left, and every ten minutes while it has.
//
// Of a dropped request, the store keeps the key, the id, the state and a digest
// of the payload: submitting it again still finds the same request and executes
// nothing, and [Client.Get] returns a record without the rest. Its hashes and
// its place in [Client.List] are gone.
type Retention struct {
	// Age is how long the record of a finished request is kept; at least 0. 0
	// means without a limit. The default is 7 days.
	Age time.Duration
	// Count is the number of the newest requests whose records are kept even if
	// all others are dropped before Age; at least 0. 0 means without a limit. The
	// default is 100,000.
	Count int
	// EventAge is how long an unacknowledged event is kept; at least 0.
	// 0 means without a limit. The default is 30 days.
	EventAge time.Duration
}

// DefaultRetention returns the defaults.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{Age: 7 * day, Count: 100_000, EventAge: 30 * day}
}

// Validate returns an error that lists each field out of range. The error wraps
// ErrInvalidConfig.
func (r *Retention) Validate() error {
	var wrong fields.Errors
	wrong.Want(r.Age >= 0, "Retention.Age", r.Age, "at least 0")
	wrong.Want(r.Count >= 0, "Retention.Count", r.Count, "at least 0")
	wrong.Want(r.EventAge >= 0, "Retention.EventAge", r.EventAge, "at least 0")
	return wrong.Wrap(ErrInvalidConfig)
}

// drops reports whether a record is dropped. newest is the highest id known.
func (c *Retention) drops(now time.Time, newest uint64, r *Record) bool {
	ended := r.EndedAt
	if ended.IsZero() { // written by an older version
		ended = r.QueuedAt
	}
	return r.State.Terminal() && (c.Age > 0 && now.Sub(ended) >= c.Age || c.Count > 0 && r.ID+uint64(c.Count) <= newest)
}

// dropOld returns a step that drops those of the records whose time has come.
func (v *View) dropOld(c *Rules, now time.Time, newest uint64, records []Record) Batch {
	b := v.Batch()
	for i := range records {
		if c.Retention.drops(now, newest, &records[i]) {
			b.Drop = append(b.Drop, records[i])
		}
	}
	return b
}
