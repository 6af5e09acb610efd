package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/internal/wire"
)

// A bundle that was executed on a failed block must never be enqueued, even if it has the next
// number. Numbers are used again after a failure, so the queue recognizes blocks by their
// commitments.

// spent is the commitment of a bundle that has failed. No later bundle may use it or build on it.
type spent struct {
	commitment common.Hash
	place      uint64 // of the bundle
}

// maxSpent is how many commitments of failed bundles the queue remembers, so that memory stays
// bounded. It forgets the oldest ones first.
const maxSpent = 1 << 14

// checkCommitments checks whether a bundle may be enqueued at a place: its commitment must be new,
// and it must have been executed on the bundle before that place. A commitment of zero is unknown
// and passes the check.
func (q *Queue) checkCommitments(place uint64, ev *Enqueue) error {
	var none common.Hash
	if q.isUsed(ev.Commitment) || ev.Commitment != none && ev.Commitment == ev.Parent {
		return fmt.Errorf("%w: %s, for bundle %d", ErrCommitmentUsed, ev.Commitment, ev.Number)
	}
	head, parentUsed := q.commitmentBefore(place), q.isUsed(ev.Parent)
	if ev.Parent != none && ev.Parent != head && (head != none || parentUsed) {
		return fmt.Errorf("%w: bundle %d was executed on %s, want %s", ErrWrongParent, ev.Number, ev.Parent, head)
	}
	if it := q.at(place); it != nil && it.awaited != nil && ev.Commitment != none && ev.Commitment != *it.awaited {
		return fmt.Errorf("%w: bundle %d is %s, want %s, on which the next one was executed", ErrWrongParent, ev.Number, ev.Commitment, *it.awaited)
	}
	return nil
}

// commitmentBefore returns the commitment of the bundle before a place of the queue, or zero if the
// host has given none.
func (q *Queue) commitmentBefore(place uint64) common.Hash {
	if place == q.firstPlace {
		return q.base
	}
	return q.at(place - 1).commitment
}

// Head returns the commitment that the next bundle must have as its Parent: that of the last bundle
// which was accepted and has not failed. If there is no such bundle, Head returns the Parent of the
// first one. Zero means that the queue does not know the commitment.
func (q *Queue) Head() common.Hash { return q.commitmentBefore(q.end()) }

// spend remembers the commitment of a bundle that has failed, so that no later bundle can use the
// commitment or build on it.
func (q *Queue) spend(it *item) {
	if it.commitment == (common.Hash{}) {
		return
	}
	if len(q.spent) == maxSpent {
		delete(q.commitments, q.spent[0].commitment)
		q.spent = q.spent[1:]
	}
	q.spent = append(q.spent, spent{it.commitment, it.place})
}

// forgetSpent forgets a failed bundle when the bundle at the same place of the queue is final. A
// host cannot build on the failed bundle by mistake any more, because its parent is not the head.
func (q *Queue) forgetSpent() {
	q.spent = slices.DeleteFunc(q.spent, func(s spent) bool {
		if s.place < q.active {
			delete(q.commitments, s.commitment)
		}
		return s.place < q.active
	})
}

// commit records the commitment of an enqueued bundle and that of its parent. If the bundle before
// it is only reserved, that bundle must have the named commitment when it is enqueued.
func (q *Queue) commit(it *item, ev *Enqueue) {
	it.commitment, it.awaited = ev.Commitment, nil
	if parent := ev.Parent; parent != (common.Hash{}) {
		if it.place == q.firstPlace {
			q.setBase(parent)
		} else if before := q.at(it.place - 1); before.state == Reserved {
			before.awaited = &parent
		}
	}
	q.use(ev.Commitment)
}

// setBase sets the commitment of the bundle before the first one in the queue. The queue has
// forgotten that bundle, but the first one must still have been executed on it.
func (q *Queue) setBase(commitment common.Hash) {
	delete(q.commitments, q.base)
	q.base = commitment
	q.use(commitment)
}

func (q *Queue) isUsed(commitment common.Hash) bool {
	_, used := q.commitments[commitment]
	return used
}

// use records that a commitment is used.
func (q *Queue) use(commitment common.Hash) {
	if commitment != (common.Hash{}) {
		q.commitments[commitment] = struct{}{}
	}
}

// useOnce records a commitment that was read from a snapshot. If the snapshot contains the
// commitment twice, the reader fails, because the snapshot is then corrupt.
func (q *Queue) useOnce(r *wire.Reader, commitment common.Hash) {
	if q.isUsed(commitment) {
		r.Fail("commitment %s twice", commitment)
	}
	q.use(commitment)
}
