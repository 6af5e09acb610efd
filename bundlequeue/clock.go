package bundlequeue

import "time"

// jitter is how far a clock may go back without being taken at its word: then it counts as standing still.
const jitter = instant(time.Second)

// readClock returns the time of an event. A clock that goes back by much was wrong before: what waits for the wrong time is brought
// near, so that one bad reading does not stop the queue for as long as it was off.
func (q *Queue[B]) readClock(now time.Time) instant {
	at := instant(now.UnixNano())
	if at >= q.now-jitter {
		return max(at, q.now)
	}
	return at
}

// clockWentBack shortens every wait to what it can be at most from now on.
func (q *Queue[B]) clockWentBack(now instant) {
	wait := max(q.cfg.SubmitRetryInterval, q.cfg.BackoffMax+q.cfg.BackoffMax/8)
	for place := q.active; place < q.end(); place++ {
		it := q.at(place)
		if it.state == Reserved {
			it.notBefore = min(it.notBefore, now+instant(q.cfg.ReservationTimeout))
		} else {
			it.notBefore = min(it.notBefore, now+instant(wait))
		}
		for _, v := range it.versions {
			v.nextSend = min(v.nextSend, now+instant(wait))
			v.lastSend = min(v.lastSend, now)
			if v.told != nil && v.told.deadline.Queued() {
				longest := now + instant(max(q.cfg.GuaranteeTimeout, q.cfg.AccumulateTimeout))
				q.timers.Set(&v.told.deadline, min(v.told.deadline.Key(), longest))
			}
		}
		q.plan(it)
	}
}
