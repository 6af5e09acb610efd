package eoa

import "time"

// count adds a batch to the report.
func (e *Executor) count(b Batch) {
	queued := make(map[uint64]time.Time, len(b.Records))
	for i := range b.Records {
		queued[b.Records[i].ID] = b.Records[i].QueuedAt
	}
	for i := range b.Events {
		took := b.Events[i].At.Sub(queued[b.Events[i].ID])
		switch b.Events[i].Kind {
		case EventSubmitted:
			e.report.ToSubmitted = append(e.report.ToSubmitted, took)
		case EventConfirmed:
			e.report.ToConfirmed = append(e.report.ToConfirmed, took)
		case EventBumped:
			e.report.Bumped++
		case EventMined:
			e.report.Mined++
		case EventFinal, EventCancelled, EventSuperseded:
			e.report.Ended++
		case EventFailed:
			e.report.Failed++
		}
	}
}
