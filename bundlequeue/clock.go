package bundlequeue

import "time"

// jitter is how far the clock may go back before the queue treats it as
// corrected. Smaller steps back count as no time passed.
const jitter = instant(time.Second)

func instantOf(t time.Time) instant { return instant(t.UnixNano()) }

func (i instant) time() time.Time { return time.Unix(0, int64(i)).UTC() }

// readClock returns the time of an event. If the clock went back by more than
// jitter, it was wrong before, and readClock returns the new reading.
func (q *Queue) readClock(now time.Time) instant {
	at := instantOf(now)
	if at >= q.now-jitter {
		return max(at, q.now)
	}
	return at
}

// clockWentBack limits every wait to the longest wait that can begin now, so
// that one wrong reading does not block the queue.
func (q *Queue) clockWentBack(now instant) {
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
