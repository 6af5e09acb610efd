package eoa

import (
	"context"
	"slices"
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
func (v *view) dropOld(c *Config, now time.Time, newest uint64, records []Record) Batch {
	b := v.batch()
	for i := range records {
		if c.Retention.drops(now, newest, &records[i]) {
			b.Drop = append(b.Drop, records[i])
		}
	}
	return b
}

const (
	// dropPage is the number of records that one step looks through, and
	// dropPeek the number of those that show whether that is worth it.
	dropPage, dropPeek = 500, 16
	// dropEvery is the time between two passes over an account's history.
	dropEvery = 10 * time.Minute
)

// history is an executor's pass over the records of its account.
type history struct {
	after  uint64    // id of the last record of this pass; 0 before
	newest uint64    // highest id known
	next   time.Time // start of the next pass
	begun  bool      // a pass has begun
}

// see remembers the highest id.
func (h *history) see(records []Record) {
	for i := range records {
		h.newest = max(h.newest, records[i].ID)
	}
}

// dropOld drops what Config.Retention does not keep, one page at a time. A pass
// begins when the account has no work left, and every dropEvery while it has.
func (e *Executor) dropOld(ctx context.Context, idle bool) error {
	now, h := e.cfg.Now(), &e.history
	if h.next.IsZero() || h.next.Sub(now) > dropEvery { // a clock that was ahead
		h.next = now.Add(dropEvery)
	}
	if h.after == 0 && now.Before(h.next) && (h.begun || !idle) {
		return nil
	}
	h.next, h.begun = now.Add(dropEvery), true
	if h.after == 0 {
		if err := e.dropEvents(ctx, now); err != nil {
			return err
		}
	}
	if e.cfg.Retention.Age == 0 && e.cfg.Retention.Count == 0 {
		return nil
	}
	page := dropPeek
	if h.after > 0 {
		page = dropPage
	}
	e.report.Reads++
	records, err := e.store.List(ctx, e.account, h.after, page)
	if err != nil {
		return err
	}
	h.see(records)
	b := e.view.dropOld(&e.cfg, now, h.newest, records)
	e.report.Dropped += len(b.Drop)
	open := slices.IndexFunc(records, func(r Record) bool { return r.State.Terminal() }) < 0
	if h.after = 0; len(records) == page && (len(b.Drop) > 0 || open) {
		h.after = records[page-1].ID // later ones may be old, too
	}
	return e.commit(ctx, b)
}

// dropEvents drops the events that were not acknowledged for too long.
func (e *Executor) dropEvents(ctx context.Context, now time.Time) error {
	if e.cfg.Retention.EventAge == 0 {
		return nil
	}
	dropped := 0
	for page := dropPeek; ; page = dropPage {
		e.report.Reads++
		events, err := e.store.Events(ctx, e.account, 0, page)
		if err != nil {
			return err
		}
		old := 0
		for old < len(events) && now.Sub(events[old].At) >= e.cfg.Retention.EventAge {
			old++
		}
		if dropped += old; old > 0 {
			e.report.Commits++
			if err := e.store.Acknowledge(ctx, e.account, events[old-1].Seq); err != nil {
				return err
			}
		}
		if old < page {
			break
		}
	}
	if dropped > 0 {
		e.cfg.Logger.Warn("eoa: unacknowledged events dropped", "account", e.account.String(), "events", dropped)
	}
	return nil
}
