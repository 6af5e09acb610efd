package bundlequeue

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Info describes one bundle at one moment.
type Info struct {
	// Number is the rollup block, Commitment what Enqueue said.
	Number     uint64
	Commitment common.Hash
	// State is where it stands on the best chain.
	State State
	// Core is the core that it holds, or held last.
	Core jamq.CoreIndex
	// Versions are its packages, oldest first.
	Versions []VersionInfo
}

// VersionInfo describes one package of a bundle.
type VersionInfo struct {
	// Version counts from 1.
	Version int
	// Package is its hash, Context its refine context.
	Package jamq.PackageHash
	Context jamq.RefineContext
	// Attempts is how often it was sent.
	Attempts int
	// Reported, Available and Accumulated are the blocks of the best chain in which that happened, or zero.
	Reported, Available, Accumulated anchor.Point
	// Dead is why it can never accumulate on the best chain, DeadSince since which block.
	Dead      anchor.Reason
	DeadSince anchor.Point
}

// Info describes the bundle with the given number, if the queue still holds it. The result shares nothing with the queue.
func (q *Queue[B]) Info(number uint64) (Info, bool) {
	if number < q.base || number >= q.Next() {
		return Info{}, false
	}
	it := q.items[number-q.base]
	info := Info{Number: it.number, Commitment: it.commitment, State: it.state, Core: it.core}
	for _, v := range it.versions {
		context := v.context
		context.Prerequisites = slices.Clone(context.Prerequisites)
		info.Versions = append(info.Versions, VersionInfo{
			Version: v.number, Package: v.pkg, Context: context, Attempts: v.attempts,
			Reported: v.status.Reported, Available: v.status.Available, Accumulated: v.status.Accumulated,
			Dead: v.status.Dead, DeadSince: v.status.DeadSince,
		})
	}
	return info, true
}

// numStates is the number of states.
const numStates = int(FailedState) + 1

// Totals count what happened since the queue was made.
type Totals struct {
	// Enqueued counts bundles, Built packages, Sends the times that one was handed out, Died the deaths of packages.
	Enqueued, Built, Sends, Died uint64
	// Transitions counts how often a bundle entered each state.
	Transitions [numStates]uint64
}

// Stats is a summary for people and metrics.
type Stats struct {
	// Base is the number of the oldest bundle held, Next that of the bundle to come.
	Base, Next uint64
	// Count is the number of bundles held in each state.
	Count [numStates]int
	// Totals count since the queue was made.
	Totals Totals
}

// Stats returns a summary.
func (q *Queue[B]) Stats() Stats {
	s := Stats{Base: q.base, Next: q.Next(), Totals: q.total}
	for _, it := range q.items {
		s.Count[it.state]++
	}
	return s
}

// CanEnqueue reports whether the queue would take another bundle now.
func (q *Queue[B]) CanEnqueue() bool {
	waiting := 0
	for _, it := range q.items[q.active:] {
		if it.state == Queued {
			waiting++
		}
	}
	return waiting < q.cfg.MaxQueueDepth
}

// Pending returns how many bundles are not final.
func (q *Queue[B]) Pending() int { return len(q.items) - q.active }
