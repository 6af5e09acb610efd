package eoa

import (
	"context"
	"slices"
	"time"
)

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
	b := e.view.Drop(&e.rules, now, h.newest, records)
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
