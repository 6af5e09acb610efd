package bundlequeue

import "time"

// jitter is how far the clock may go back without consequences: the queue then acts as
// if no time had passed. If the clock goes back further, the queue assumes that the
// earlier readings were wrong and that the new one is right.
const jitter = instant(time.Second)

func instantOf(t time.Time) instant { return instant(t.UnixNano()) }

func (i instant) time() time.Time { return time.Unix(0, int64(i)).UTC() }

// readClock returns the time that the queue uses for an event.
func (q *Queue) readClock(now time.Time) instant {
	at := instantOf(now)
	if at >= q.now-jitter {
		// The clock went back by at most jitter: act as if no time had passed.
		return max(at, q.now)
	}
	return at
}

// clockWentBack shortens every wait to the longest wait that could begin now.
func (q *Queue) clockWentBack(now instant) {
	// All deadlines were computed from a clock that was ahead. Unless they are shortened, the
	// queue would stand still until the clock reaches them again.
	wait := instant(max(q.cfg.SubmitRetryInterval, q.cfg.BackoffMax+q.cfg.BackoffMax/8))
	for place := q.active; place < q.end(); place++ {
		it := q.at(place)
		if it.state == Reserved {
			it.notBefore = min(it.notBefore, now+instant(q.cfg.ReservationTimeout))
		} else {
			it.notBefore = min(it.notBefore, now+wait)
		}
		it.queuedAt = min(it.queuedAt, now)
		for _, v := range it.versions {
			v.nextSend = min(v.nextSend, now+wait)
			v.lastSend, v.firstSend = min(v.lastSend, now), min(v.firstSend, now)
		}
		q.plan(it)
	}
}
