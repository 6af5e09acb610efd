package bundlequeue

import "fmt"

// CanEnqueue reports whether the queue has room for another bundle. Bundles in the states Queued
// and Reserved count against Config.MaxQueueDepth.
func (q *Queue) CanEnqueue() bool { return q.waitingBundles() < q.cfg.MaxQueueDepth }

func (q *Queue) waitingBundles() int { return q.counts[Queued] + q.counts[Reserved] }

// mayAdd checks whether a bundle with this number can be appended to the queue.
func (q *Queue) mayAdd(number uint64) error {
	if number != q.next || number >= 2*most-1 {
		return fmt.Errorf("%w: bundle %d, want %d", ErrWrongNumber, number, q.next)
	}
	if !q.CanEnqueue() {
		return fmt.Errorf("%w: %d bundles are waiting", ErrQueueFull, q.waitingBundles())
	}
	return nil
}

// add appends a bundle with the next number to the queue.
func (q *Queue) add() *item {
	it := &item{number: q.next, place: q.end()}
	q.append(it)
	q.next++
	q.plan(it)
	return it
}

func (q *Queue) append(it *item) {
	it.turn.Value = it
	q.items = append(q.items, it)
	q.counts[it.state]++
}

func (q *Queue) reserve(now instant, ev Reserve) error {
	if err := q.mayAdd(ev.Number); err != nil {
		return err
	}
	q.add().notBefore = now + instant(q.cfg.ReservationTimeout)
	return nil
}

func (q *Queue) enqueue(now instant, ev Enqueue) error {
	it, place := q.find(ev.Number), q.end()
	if it == nil {
		if err := q.mayAdd(ev.Number); err != nil {
			return err
		}
	} else if place = it.place; it.state != Reserved {
		return fmt.Errorf("%w: bundle %d is %v, want %d or a reserved number", ErrWrongNumber, ev.Number, it.state, q.next)
	}
	if err := q.checkCommitments(place, &ev); err != nil {
		return err
	}
	if it == nil {
		it = q.add()
	}
	q.commit(it, &ev)
	it.bundle, it.notBefore = ev.Bundle, 0
	q.enter(it, Queued)
	it.queuedAt = now
	q.total.Enqueued++
	return nil
}

func (q *Queue) release(ev Release) error {
	it := q.find(ev.Number)
	if it == nil || it.state != Reserved {
		return fmt.Errorf("%w: %d is not reserved", ErrWrongNumber, ev.Number)
	}
	q.failFrom(it, 0, fmt.Sprintf("number %d was released", it.number))
	return nil
}

// expireReservation releases a reserved number when its time is over.
func (q *Queue) expireReservation() {
	// Only the first bundle that is not guaranteed can expire. Later reservations get their
	// turn when all bundles before them are guaranteed.
	if it := q.advance(); it != nil && it.state == Reserved && q.now >= it.notBefore {
		q.failFrom(it, 0, fmt.Sprintf("number %d was reserved and never filled", it.number))
	}
}

func (q *Queue) rekey(ev Rekey) error {
	it := q.find(ev.From)
	if it == nil || it.state == Finalized {
		return fmt.Errorf("%w: no bundle %d that is not final", ErrWrongNumber, ev.From)
	}
	least := q.least
	if p := q.predecessor(it); p != nil {
		least = p.number + 1
	}
	if ev.To < least || ev.To > most {
		return fmt.Errorf("%w: bundle %d cannot become %d, want %d to %d", ErrWrongNumber, ev.From, ev.To, least, uint64(most))
	}
	if last := q.at(q.end()-1).number + ev.To - ev.From; last > most { // may wrap around
		return fmt.Errorf("%w: bundle %d cannot become %d: the last one would be %d, want at most %d", ErrWrongNumber, ev.From, ev.To, last, uint64(most))
	}
	for place := it.place; place < q.end(); place++ {
		q.at(place).number += ev.To - ev.From // may wrap around
	}
	q.next += ev.To - ev.From
	return nil
}
