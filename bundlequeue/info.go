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
	// Package is its hash.
	Package jamq.PackageHash
	// Anchor is the block that it is anchored to, LookupAnchorSlot the slot of its lookup anchor; zero with told evidence.
	Anchor           anchor.Point
	LookupAnchorSlot jamq.Slot
	// Prerequisites are the packages that it names.
	Prerequisites []jamq.PackageHash
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
	it := q.find(number)
	if it == nil {
		return Info{}, false
	}
	info := Info{Number: it.number, Commitment: it.commitment, State: it.state, Core: it.core}
	for _, v := range it.versions {
		s := v.status()
		vi := VersionInfo{
			Version: v.number, Package: v.pkg, Prerequisites: slices.Clone(v.prerequisites()), Attempts: v.attempts,
			Reported: s.Reported, Available: s.Available, Accumulated: s.Accumulated, Dead: s.Dead, DeadSince: s.DeadSince,
		}
		if v.trace != nil {
			vi.Anchor, vi.LookupAnchorSlot = v.trace.Anchor(), v.trace.LookupAnchorSlot()
		}
		info.Versions = append(info.Versions, vi)
	}
	return info, true
}

// Infos describes all bundles that the queue holds, by number.
func (q *Queue[B]) Infos() []Info {
	infos := make([]Info, 0, len(q.items))
	for _, it := range q.items {
		info, _ := q.Info(it.number)
		infos = append(infos, info)
	}
	return infos
}

// Totals count what happened since the queue was made.
type Totals struct {
	// Enqueued counts bundles, Built packages, Sends the times that one was handed out, Died the deaths of packages.
	Enqueued, Built, Sends, Died uint64
	// BuildsFailed and SendsFailed count what the host could not do.
	BuildsFailed, SendsFailed uint64
	// DuplicateGuaranteeRejected counts guarantees of a version while another one of its bundle, or itself, had one;
	// DuplicateAccumulateRejected the same for accumulation. With chain evidence the second stays 0: see promise B1.
	DuplicateGuaranteeRejected, DuplicateAccumulateRejected uint64
	// AccumulatedAfterFailed counts packages accumulated after the clock had given their bundle up: see [Resurrected].
	AccumulatedAfterFailed uint64
	// NonWinningVersionsCanceled counts versions that were dropped, built or in building, because another one was first.
	NonWinningVersionsCanceled uint64
	// Transitions counts how often a bundle went from one state to another: [from][to].
	Transitions [NumStates][NumStates]uint64
}

// Entered returns how often a bundle entered a state.
func (t Totals) Entered(to State) uint64 {
	n := uint64(0)
	for from := range t.Transitions {
		n += t.Transitions[from][to]
	}
	return n
}

// Stats is a summary for people and metrics.
type Stats struct {
	// Base is the number of the oldest bundle held, Next that of the bundle to come.
	Base, Next uint64
	// Depth is how many may wait in Queued and Reserved.
	Depth int
	// Count is the number of bundles held in each state.
	Count [NumStates]int
	// Totals count since the queue was made.
	Totals Totals
}

// Stats returns a summary.
func (q *Queue[B]) Stats() Stats {
	s := Stats{Base: q.next, Next: q.next, Depth: q.depth, Count: q.counts, Totals: q.total}
	if len(q.items) > 0 {
		s.Base = q.items[0].number
	}
	return s
}

// Pending returns how many bundles are not final.
func (q *Queue[B]) Pending() int { return int(q.end() - q.active) }
