package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/internal/wire"
)

// The functions in this file refuse a bundle that was executed on a block that has
// failed. Such a bundle can have the right number, because numbers are used again after
// a failure, so the queue recognizes blocks by their commitments.

// spent is the commitment of a failed bundle, which no later bundle may use.
type spent struct {
	commitment common.Hash
	place      uint64 // position of the failed bundle in the queue
}

// maxSpent limits how many commitments of failed bundles the queue remembers, so that its
// memory stays bounded. The oldest ones are forgotten first.
const maxSpent = 1 << 14

// checkCommitments checks that a bundle may be enqueued at the given position.
func (q *Queue) checkCommitments(place uint64, ev *Enqueue) error {
	var none common.Hash
	// The commitment must be new, so that it identifies one execution of one block. A
	// commitment of zero is unknown and passes all checks.
	if q.isUsed(ev.Commitment) || ev.Commitment != none && ev.Commitment == ev.Parent {
		return fmt.Errorf("%w: %s, for bundle %d", ErrCommitmentUsed, ev.Commitment, ev.Number)
	}
	// The bundle must have been executed on the bundle before it in the queue.
	head, parentUsed := q.commitmentBefore(place), q.isUsed(ev.Parent)
	if ev.Parent != none && ev.Parent != head && (head != none || parentUsed) {
		return fmt.Errorf("%w: bundle %d was executed on %s, want %s", ErrWrongParent, ev.Number, ev.Parent, head)
	}
	// While this number was only reserved, the host has already executed the next block on the
	// block that it promised here. It must keep that promise.
	if it := q.at(place); it != nil && it.awaited != nil && ev.Commitment != none && ev.Commitment != *it.awaited {
		return fmt.Errorf("%w: bundle %d is %s, want %s, on which the next one was executed", ErrWrongParent, ev.Number, ev.Commitment, *it.awaited)
	}
	return nil
}

// commitmentBefore returns the commitment of the bundle before a position, or zero.
func (q *Queue) commitmentBefore(place uint64) common.Hash {
	if place == q.firstPlace {
		return q.base
	}
	return q.at(place - 1).commitment
}

// Head returns the commitment of the block on which the host must execute the next
// bundle, and which Enqueue.Parent must name. This is the commitment of the last
// accepted bundle that has not failed or, if there is no such bundle, the Parent of the
// first one. Zero means that the queue does not know the commitment.
func (q *Queue) Head() common.Hash { return q.commitmentBefore(q.end()) }

// spend remembers the commitment of a failed bundle, so that no later bundle uses it.
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

// forgetSpent forgets failed bundles when the bundle that replaced them is final.
func (q *Queue) forgetSpent() {
	q.spent = slices.DeleteFunc(q.spent, func(s spent) bool {
		// The bundle that took the place of the failed one is final. No host can still build on
		// the failed block by mistake, so its commitment is forgotten.
		if s.place < q.active {
			delete(q.commitments, s.commitment)
		}
		return s.place < q.active
	})
}

// commit records the commitments of an enqueued bundle and of the block before it.
func (q *Queue) commit(it *item, ev *Enqueue) {
	it.commitment, it.awaited = ev.Commitment, nil
	if parent := ev.Parent; parent != (common.Hash{}) {
		if it.place == q.firstPlace {
			q.setBase(parent)
		} else if before := q.at(it.place - 1); before.state == Reserved {
			// The number before this one is only reserved, but this bundle was already executed
			// on its block. When the host fills the reservation, it must be with exactly that
			// block.
			before.awaited = &parent
		}
	}
	q.use(ev.Commitment)
}

// setBase sets the commitment of the block before the first bundle in the queue.
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

// useOnce is called for each commitment in a snapshot that is being read. If the snapshot
// has the commitment twice, it is damaged, because no two bundles share a commitment, and
// reading fails.
func (q *Queue) useOnce(r *wire.Reader, commitment common.Hash) {
	if q.isUsed(commitment) {
		r.Fail("commitment %s twice", commitment)
	}
	q.use(commitment)
}
