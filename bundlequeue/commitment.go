package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/internal/wire"
)

// A bundle that was executed on a failed block must never be enqueued, even if its number fits
// again. Numbers are used again after a failure, so blocks are recognized by their commitments.

// spent is the commitment of a bundle that has failed. No later bundle may use it or build on it.
type spent struct {
	commitment common.Hash
	place      uint64 // of the bundle
}

// maxSpent is how many commitments of failed bundles the queue remembers. It forgets the oldest
// ones first.
const maxSpent = 1 << 14

// checkCommitments checks whether a bundle may take a place in the queue, by its commitment and
// that of its parent. A commitment of zero is unknown and fits everywhere.
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

// commitmentBefore returns the commitment of the bundle before a place. It is zero if the host has
// given none.
func (q *Queue) commitmentBefore(place uint64) common.Hash {
	if place == q.firstPlace {
		return q.base
	}
	return q.at(place - 1).commitment
}

// Head returns the commitment that the next bundle must have as its Parent: that of the last bundle
// that was accepted and has not failed. If there is no such bundle, it is the Parent of the first
// one. Zero means that the queue does not know it.
func (q *Queue) Head() common.Hash { return q.commitmentBefore(q.end()) }

// spend records that a bundle has failed, so that no other bundle uses its commitment.
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

// forgetSpent forgets failed bundles whose place in the queue is that of a final bundle now. A host
// cannot build on them by mistake any more, because their parents are not the head.
func (q *Queue) forgetSpent() {
	q.spent = slices.DeleteFunc(q.spent, func(s spent) bool {
		if s.place < q.active {
			delete(q.commitments, s.commitment)
		}
		return s.place < q.active
	})
}

// commit records the commitment of an enqueued bundle and that of its parent. If the bundle before
// it is only reserved, its commitment is known from now on and must be the one that was named.
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

// setBase sets the commitment of the bundle before items[0], which the queue has retired.
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

// useOnce records a commitment that a snapshot contains, and lets the reader fail if the snapshot
// contains it twice.
func (q *Queue) useOnce(r *wire.Reader, commitment common.Hash) {
	if q.isUsed(commitment) {
		r.Fail("commitment %s twice", commitment)
	}
	q.use(commitment)
}
