package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/internal/wire"
)

// A bundle that was executed on a block that has failed since must never be
// enqueued, even if its number fits again. Numbers are used again after a
// failure, so blocks are recognized by their commitments.

// spent is the commitment of a failed bundle.
type spent struct {
	commitment common.Hash
	place      uint64 // of the bundle
}

// maxSpent limits how many commitments of failed bundles the queue remembers.
const maxSpent = 1 << 14

// checkCommitments checks the commitments of a bundle for a place. Zero means that a
// commitment is unknown, and fits everywhere.
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

// commitmentBefore returns the commitment of the bundle before a place, or zero
// if it is unknown.
func (q *Queue) commitmentBefore(place uint64) common.Hash {
	if place == q.firstPlace {
		return q.base
	}
	return q.at(place - 1).commitment
}

// Head returns the commitment of the last bundle that the queue accepted and
// that has not failed: the Parent of the next one. If there is none, it returns
// the Parent of the first bundle. Zero means unknown.
func (q *Queue) Head() common.Hash { return q.commitmentBefore(q.end()) }

// spend records the commitment of a bundle that fails.
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

// forgetSpent forgets the commitments of failed bundles whose places belong to
// final bundles now. The parent of such a bundle is not the head any more.
func (q *Queue) forgetSpent() {
	q.spent = slices.DeleteFunc(q.spent, func(s spent) bool {
		if s.place < q.active {
			delete(q.commitments, s.commitment)
		}
		return s.place < q.active
	})
}

// commit records the commitments of an enqueued bundle.
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

// setBase sets the commitment of the bundle before items[0].
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

// useOnce records a commitment of a snapshot.
func (q *Queue) useOnce(r *wire.Reader, commitment common.Hash) {
	if q.isUsed(commitment) {
		r.Fail("commitment %s twice", commitment)
	}
	q.use(commitment)
}
