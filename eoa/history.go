package eoa

import (
	"context"
	"slices"
	"time"
)

const (
	// When the executor looks for old records to delete, it first checks dropPeek records.
	// Only if one of them is old enough, the following steps check dropPage records each.
	dropPage, dropPeek = 500, 16
	// dropEvery is the time between two passes over the records of an account.
	dropEvery = 10 * time.Minute
)

// history is how far the executor's search for old records has come.
type history struct {
	after  uint64    // id of the last record that this pass has checked; 0: not started
	newest uint64    // highest id known
	next   time.Time // start of the next pass
	begun  bool      // a pass has been started before
}

// noteIDs remembers the highest id of any record that was read.
func (h *history) noteIDs(records []Record) {
	for i := range records {
		h.newest = max(h.newest, records[i].ID)
	}
}

// dropOld deletes the history that Config.Retention no longer keeps, one page per
// step.
func (e *Executor) dropOld(ctx context.Context, idle bool) error {
	now, h := e.cfg.Now(), &e.history
	if h.next.IsZero() || h.next.Sub(now) > dropEvery { // a clock that was ahead
		h.next = now.Add(dropEvery)
	}
	// A search for old records begins every dropEvery. The first search begins as soon as the
	// account has no work.
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
	h.noteIDs(records)
	b := e.view.DropOld(&e.rules, now, h.newest, records)
	e.report.Dropped += len(b.Drop)
	open := slices.IndexFunc(records, func(r Record) bool { return r.State.Terminal() }) < 0
	if h.after = 0; len(records) == page && (len(b.Drop) > 0 || open) {
		h.after = records[page-1].ID // later ones may be old, too
	}
	return e.commit(ctx, b)
}

// dropEvents deletes events that were unacknowledged for longer than
// Retention.EventAge.
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
